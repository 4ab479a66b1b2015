import { BoundbookError } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { formatVerifierKey, type VerifierKey } from '../signing/keys.js';
import { type CheckpointTrust, type SignedCheckpoint, verifyCheckpoint } from './checkpoint.js';
import { nameText, type WitnessPolicy } from './witness-policy.js';

/** Whether a checkpoint has the cosignatures that a policy asks for. Pure: bytes in, verdict out. */

/**
 * The keys that a policy trusts.
 *
 * @param logs further ledger keys, known from elsewhere: a policy may leave the ledger open.
 */
export function policyTrust(policy: WitnessPolicy, logs: readonly VerifierKey[] = []): CheckpointTrust {
  return {
    logs: [...policy.logs.map((log) => log.key), ...logs],
    witnesses: policy.witnesses.map((witness) => witness.key),
  };
}

export interface PolicyVerdict {
  readonly satisfied: boolean;
  readonly quorum: string;
  readonly witnesses: readonly {
    readonly name: string;
    readonly cosigned: boolean;
    /** POSIX seconds that the cosignature states. */
    readonly time: bigint | null;
  }[];
  /** Each group that is not satisfied, with what it has and needs. */
  readonly unsatisfied: readonly { readonly name: string; readonly has: number; readonly needs: number }[];
}

/** Whether enough witnesses cosigned a checkpoint that was verified with {@link policyTrust}. */
export function evaluatePolicy(policy: WitnessPolicy, signed: SignedCheckpoint): PolicyVerdict {
  const times = new Map(signed.cosignatures.map(({ key, time }) => [formatVerifierKey(key), time]));
  const witnesses = policy.witnesses.map(({ name, key }) => {
    const handle = formatVerifierKey(key);
    return { name, cosigned: times.has(handle), time: times.get(handle) ?? null };
  });
  const witnessed = new Set(witnesses.filter((witness) => witness.cosigned).map((witness) => witness.name));
  const unsatisfied: { name: string; has: number; needs: number }[] = [];
  // A group's members are defined before it, so that one pass in order of definition settles all.
  for (const group of policy.groups) {
    const has = group.members.filter((member) => witnessed.has(member)).length;
    if (has >= group.threshold) witnessed.add(group.name);
    else unsatisfied.push({ name: nameText(group.name), has, needs: group.threshold });
  }
  return {
    satisfied: policy.quorum === 'none' || witnessed.has(policy.quorum),
    quorum: nameText(policy.quorum),
    witnesses: witnesses.map((witness) => ({ ...witness, name: nameText(witness.name) })),
    unsatisfied,
  };
}

/**
 * Verifies a signed checkpoint and demands the policy's quorum.
 *
 * @throws {BoundbookError} QUORUM_UNMET naming who cosigned and who did not; and what `verifyCheckpoint` throws.
 */
export function requireQuorum(
  policy: WitnessPolicy,
  note: Uint8Array,
  logs: readonly VerifierKey[] = [],
): SignedCheckpoint & { readonly verdict: PolicyVerdict } {
  const signed = verifyCheckpoint(note, policyTrust(policy, logs));
  return { ...signed, verdict: assertQuorum(policy, signed) };
}

/** @throws {BoundbookError} QUORUM_UNMET naming who cosigned and who did not. */
export function assertQuorum(policy: WitnessPolicy, signed: SignedCheckpoint): PolicyVerdict {
  const verdict = evaluatePolicy(policy, signed);
  if (verdict.satisfied) return verdict;
  throw new BoundbookError('QUORUM_UNMET', `the quorum "${verdict.quorum}" has not cosigned the checkpoint`, {
    hint: 'Ask the missing witnesses to cosign it, and add their lines to the note.',
    evidence: quorumEvidence(verdict, signed),
  });
}

/** Who cosigned a checkpoint and who did not. */
export function quorumEvidence(verdict: PolicyVerdict, { checkpoint }: SignedCheckpoint): JsonObject {
  const named = (cosigned: boolean) =>
    verdict.witnesses.filter((witness) => witness.cosigned === cosigned).map(({ name }) => name);
  return {
    origin: checkpoint.origin,
    size: String(checkpoint.size),
    quorum: verdict.quorum,
    cosigned: named(true),
    missing: named(false),
    unsatisfied: verdict.unsatisfied.map((group) => ({ ...group })),
  };
}
