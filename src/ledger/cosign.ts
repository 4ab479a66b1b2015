import { BoundbookError } from '../core/errors.js';
import { formatVerifierKey, type SignerKey, type VerifierKey } from '../signing/keys.js';
import {
  type CheckpointEvidence,
  checkpointOf,
  cosignCheckpoint,
  type SignedCheckpoint,
  verifyCheckpoint,
  verifyExtension,
} from './checkpoint.js';
import type { CosignerRecord } from './cosigner-record.js';
import { keysForOrigin } from './origin.js';

/**
 * Cosigning: a second party states that a checkpoint is the largest state of a ledger that it has seen and extends every
 * state that it cosigned before (c2sp.org/tlog-cosignature, tlog-witness).
 */

export interface CosignRequest {
  /** The signed note. */
  readonly note: Buffer;
  /** The cosigner's key. */
  readonly key: SignerKey;
  /** Keys of ledgers that the cosigner trusts, short or full. */
  readonly logs: readonly VerifierKey[];
  readonly record: CosignerRecord;
  /** The last note that this key cosigned, from elsewhere: when the record is lost or older. */
  readonly since: Buffer | null;
  /** The key has never cosigned this ledger. */
  readonly first: boolean;
  /** A consistency proof between two sizes. @throws PROOF_UNAVAILABLE when there is none at hand. */
  readonly proof: (oldSize: bigint, newSize: bigint) => Promise<readonly Uint8Array[]>;
  /** POSIX seconds. */
  readonly time: bigint;
}

export interface Cosigned {
  /** The note with the cosignature. */
  readonly note: Buffer;
  readonly signed: SignedCheckpoint;
  /** What it extends; null for the first one of this key. */
  readonly after: bigint | null;
  /** It carried a cosignature of this key before, and nothing was added. */
  readonly before: boolean;
}

/**
 * Verifies, proves, notes the new state durably, and only then signs.
 *
 * @throws {BoundbookError} SIGNATURE_INVALID, NOTE_INVALID, KEY_INVALID; CHECKPOINT_INCONSISTENT with both notes and the
 * failing proof; PROOF_UNAVAILABLE when the last state is not known, is newer, or no proof is at hand; LEDGER_BUSY.
 */
export async function cosign(request: CosignRequest): Promise<Cosigned> {
  const { note, key, record, time } = request;
  assertCosigner(key);
  const { origin } = checkpointOf(note);
  const trust = { logs: keysForOrigin(origin, request.logs), witnesses: [key.verifier] };
  const signed = verifyCheckpoint(note, trust);
  const last = await record.last(origin);
  const base = newer(last, request.since === null ? null : formerNote(request, origin));
  if (base === null && !request.first) throw unknownState(request, origin);
  if (base !== null) await assertExtends(request, base, signed);
  const before = signed.cosignatures.length > 0;
  if (last === null || last.checkpoint.size < signed.checkpoint.size) {
    await record.advance(origin, last, note);
  }
  return {
    note: before ? note : cosignCheckpoint(signed, key, time),
    signed,
    after: base?.checkpoint.size ?? null,
    before,
  };
}

async function assertExtends(
  { proof }: CosignRequest,
  base: CheckpointEvidence,
  signed: SignedCheckpoint,
): Promise<void> {
  const [from, to] = [base.checkpoint.size, signed.checkpoint.size];
  if (to < from) {
    throw new BoundbookError(
      'PROOF_UNAVAILABLE',
      `this key has cosigned ${from} entries; the note has ${to}`,
      {
        hint: 'A cosigner never goes back. Ask for a newer checkpoint.',
        evidence: { cosigned: String(from), asked: String(to) },
      },
    );
  }
  verifyExtension(base, signed, from === to ? [] : await proof(from, to));
}

/** The last note that the key cosigned, as it came from elsewhere: signed by the ledger and by this very key. */
function formerNote({ since, key, logs }: CosignRequest, origin: string): CheckpointEvidence {
  const former = verifyCheckpoint(since ?? Buffer.alloc(0), {
    logs: keysForOrigin(origin, logs),
    witnesses: [key.verifier],
  });
  if (former.cosignatures.length > 0) return former;
  throw new BoundbookError('SIGNATURE_INVALID', 'the older note has no cosignature by this key', {
    hint: 'Give the last note that this key cosigned, with its line.',
    evidence: { key: formatVerifierKey(key.verifier) },
  });
}

function newer(one: CheckpointEvidence | null, other: CheckpointEvidence | null): CheckpointEvidence | null {
  if (one === null || other === null) return one ?? other;
  // Two states of one size must be the same one.
  if (one.checkpoint.size === other.checkpoint.size) verifyExtension(one, other, []);
  return one.checkpoint.size >= other.checkpoint.size ? one : other;
}

function assertCosigner({ verifier }: SignerKey): void {
  if (verifier.type === 'cosignature') return;
  throw new BoundbookError(
    'KEY_INVALID',
    `the key "${verifier.name}" signs for its own ledgers, it does not cosign`,
    {
      hint: 'Make a key for cosigning: boundbook keygen --cosigner.',
    },
  );
}

function unknownState({ record }: CosignRequest, origin: string): BoundbookError {
  return new BoundbookError('PROOF_UNAVAILABLE', `${record.path} has no note of ${origin}`, {
    hint: 'Say --first when this key never cosigned this ledger, or give the last note it cosigned with --since.',
  });
}
