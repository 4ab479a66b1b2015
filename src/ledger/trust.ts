import { BoundbookError } from '../core/errors.js';
import { keyIdText, type VerifierKey } from '../signing/keys.js';
import { parseNote, verifyNote } from '../signing/note.js';
import { type CheckpointTrust, checkpointOf, type SignedCheckpoint, verifyCheckpoint } from './checkpoint.js';
import { keysForOrigin } from './origin.js';
import { assertQuorum, type PolicyVerdict } from './quorum.js';
import type { WitnessPolicy } from './witness-policy.js';

/** Whose signatures a reader trusts: keys and a policy that come from the reader alone. Pure: bytes in, verdict out. */

export interface Trust {
  /** Keys of ledgers, short or full, and of cosigners. */
  readonly keys: readonly VerifierKey[];
  readonly policy: WitnessPolicy | null;
}

/** The keys that count for an origin. */
export function trustFor(origin: string, { keys, policy }: Trust): CheckpointTrust {
  return {
    logs: keysForOrigin(origin, [...keys, ...(policy?.logs ?? []).map(({ key }) => key)]),
    witnesses: [
      ...keys.filter(({ type }) => type === 'cosignature'),
      ...(policy?.witnesses ?? []).map(({ key }) => key),
    ],
  };
}

/**
 * Verifies a signed checkpoint and demands the policy's quorum, if there is a policy.
 *
 * @throws {BoundbookError} NOTE_INVALID, SIGNATURE_INVALID, KEY_INVALID, QUORUM_UNMET.
 */
export function verifyTrusted(
  note: Uint8Array,
  trust: Trust,
): SignedCheckpoint & { readonly verdict: PolicyVerdict | null } {
  const signed = verifyCheckpoint(note, trustFor(checkpointOf(note).origin, trust));
  return { ...signed, verdict: trust.policy === null ? null : assertQuorum(trust.policy, signed) };
}

/** What the trusted keys make of a note. */
export type Judgement =
  | { readonly kind: 'verified'; readonly signed: SignedCheckpoint }
  /** No trusted key of its ledger signed it: nothing is known of it. */
  | { readonly kind: 'unknown' }
  /** A signature under the name and id of a trusted key does not verify. */
  | { readonly kind: 'failed'; readonly error: BoundbookError };

/** Judges a note without asking for a quorum. @throws {BoundbookError} NOTE_INVALID; KEY_INVALID for the trusted keys. */
export function judgeNote(note: Uint8Array, trust: Trust): Judgement {
  const { logs, witnesses = [] } = trustFor(checkpointOf(note).origin, trust);
  const named = new Set(parseNote(note).signatures.map(({ name, keyId }) => handle(name, keyId)));
  const isNamed = ({ name, id }: VerifierKey) => named.has(handle(name, id));
  try {
    if (logs.some(isNamed)) return { kind: 'verified', signed: verifyCheckpoint(note, { logs, witnesses }) };
    const others = witnesses.filter(isNamed);
    if (others.length > 0) verifyNote(note, others);
    return { kind: 'unknown' };
  } catch (error) {
    if (error instanceof BoundbookError && error.code === 'SIGNATURE_INVALID')
      return { kind: 'failed', error };
    throw error;
  }
}

function handle(name: string, id: number): string {
  return `${name}+${keyIdText(id)}`;
}
