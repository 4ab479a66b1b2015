import { BoundbookError } from '../core/errors.js';
import { decodeBase64 } from '../signing/base64.js';
import type { SignerKey, VerifierKey } from '../signing/keys.js';
import {
  addSignature,
  cosignText,
  formatNote,
  parseNote,
  signText,
  type VerifiedSignature,
  verifyNote,
} from '../signing/note.js';
import { EMPTY_ROOT, HASH_BYTES } from './merkle.js';
import { verifyConsistency } from './proofs.js';

/**
 * Checkpoints of a ledger (c2sp.org/tlog-checkpoint): origin, size and root, signed as a note. Pure: bytes in,
 * verdict out. Extension lines are refused, because no monitor can check what they say.
 */

const MAX_ORIGIN_BYTES = 255;
const MAX_SIZE = (1n << 64n) - 1n;

export interface Checkpoint {
  /** Names the ledger. Also the name of the key that signs it. */
  readonly origin: string;
  /** Number of entries. */
  readonly size: bigint;
  /** Merkle tree head over them, 32 bytes. */
  readonly root: Buffer;
}

/** Whose signatures count. */
export interface CheckpointTrust {
  /** Keys of ledgers; each speaks for the origin that is its name. */
  readonly logs: readonly VerifierKey[];
  /** Keys of cosigners. */
  readonly witnesses?: readonly VerifierKey[];
}

/** A checkpoint that its ledger signed. */
export interface SignedCheckpoint {
  readonly checkpoint: Checkpoint;
  /** The whole note, byte for byte. */
  readonly note: Buffer;
  /** The ledger's own signature. */
  readonly log: VerifiedSignature;
  /** Cosignatures by known witnesses, one for each key. */
  readonly cosignatures: readonly VerifiedSignature[];
}

/** The text of a checkpoint: three lines. @throws {BoundbookError} NOTE_INVALID */
export function formatCheckpoint(checkpoint: Checkpoint): string {
  const { origin, size, root } = checkpoint;
  if (origin === '' || origin.includes('\n')) refuse('its origin is empty or more than one line');
  if (Buffer.byteLength(origin) > MAX_ORIGIN_BYTES)
    refuse(`its origin has more than ${MAX_ORIGIN_BYTES} bytes`);
  if (size < 0n || size > MAX_SIZE) refuse('its size is outside 0 to 2^64 - 1');
  if (root.length !== HASH_BYTES) refuse(`its root has not ${HASH_BYTES} bytes`);
  if (size === 0n && !root.equals(EMPTY_ROOT)) refuse('an empty ledger has another root');
  return `${origin}\n${size}\n${root.toString('base64')}\n`;
}

/** Reads the text of a checkpoint, strictly by writing it again. @throws {BoundbookError} NOTE_INVALID */
export function parseCheckpoint(text: string): Checkpoint {
  const [origin, size, base64, end, ...more] = text.split('\n');
  if (origin === undefined || size === undefined || base64 === undefined || end === undefined) {
    return refuse('it has fewer than three lines');
  }
  if (end !== '' || more.length > 0) refuse('it has more than three lines; extension lines are not accepted');
  if (!/^[0-9]{1,20}$/.test(size)) refuse('its size is not a decimal number');
  const root = decodeBase64(base64);
  if (root === undefined) return refuse('its root is not base64');
  const checkpoint = { origin, size: BigInt(size), root };
  if (formatCheckpoint(checkpoint) !== text) refuse('its form is not the one its content is written in');
  return checkpoint;
}

/**
 * Signs a checkpoint. The key's name must be the origin, so that no other ledger's key can speak for it.
 *
 * @throws {BoundbookError} NOTE_INVALID, KEY_INVALID
 */
export function signCheckpoint(checkpoint: Checkpoint, key: SignerKey): Buffer {
  if (key.verifier.name !== checkpoint.origin) {
    throw new BoundbookError(
      'KEY_INVALID',
      `the key "${key.verifier.name}" cannot sign for the ledger "${checkpoint.origin}"`,
      { hint: 'Use the key whose name is the ledger’s origin, or make one with `boundbook keygen`.' },
    );
  }
  const text = formatCheckpoint(checkpoint);
  return formatNote({ text, signatures: [signText(text, key)] });
}

/**
 * Reads and verifies a signed checkpoint: a ledger key of the origin's name signed it, and every signature by a
 * known key verifies. Whether enough witnesses cosigned is a matter of policy, see `witness-policy.ts`.
 *
 * @throws {BoundbookError} NOTE_INVALID, SIGNATURE_INVALID, KEY_INVALID
 */
export function verifyCheckpoint(note: Uint8Array, trust: CheckpointTrust): SignedCheckpoint {
  const logs = trust.logs.filter((key) => key.type === 'ed25519');
  const witnesses = (trust.witnesses ?? []).filter((key) => key.type === 'cosignature');
  const { text, verified } = verifyNote(note, [...logs, ...witnesses]);
  const checkpoint = parseCheckpoint(text);
  const log = verified.find(({ key }) => key.type === 'ed25519' && key.name === checkpoint.origin);
  if (log === undefined) {
    throw new BoundbookError(
      'SIGNATURE_INVALID',
      `no known key of the ledger "${checkpoint.origin}" signed it`,
      {
        hint: 'A ledger’s checkpoints are signed by the key of its own name; others cannot speak for it.',
        evidence: { origin: checkpoint.origin, signed_by: verified.map(({ key }) => key.name) },
      },
    );
  }
  const cosignatures = verified.filter(({ key }) => key.type === 'cosignature');
  return { checkpoint, note: Buffer.from(note), log, cosignatures };
}

/**
 * Adds a cosignature to a checkpoint that was verified before. Whoever cosigns states that this is the largest tree
 * of the ledger it has seen, and consistent with the earlier ones: prove that by {@link verifyExtension} first.
 *
 * @param time POSIX seconds.
 * @throws {BoundbookError} KEY_INVALID, NOTE_INVALID
 */
export function cosignCheckpoint(signed: SignedCheckpoint, key: SignerKey, time: bigint): Buffer {
  return addSignature(signed.note, cosignText(formatCheckpoint(signed.checkpoint), key, time));
}

/** One side of a comparison: a checkpoint, and the signed note it was read from if there is one. */
export interface CheckpointEvidence {
  readonly checkpoint: Checkpoint;
  readonly note?: Uint8Array;
}

/**
 * Proves that a newer checkpoint extends an older one of the same ledger.
 *
 * @param proof from `consistencyProof(source, older.size, newer.size)`; empty when the sizes are equal or the older
 * ledger is empty.
 * @returns `same` for equal sizes and roots.
 * @throws {BoundbookError} CHECKPOINT_INCONSISTENT; the evidence holds both notes and the proof, which together
 * convince a third party when both notes are signed.
 */
export function verifyExtension(
  older: CheckpointEvidence,
  newer: CheckpointEvidence,
  proof: readonly Uint8Array[],
): 'same' | 'extended' {
  const [before, after] = [older.checkpoint, newer.checkpoint];
  const differ = (reason: string, cause?: unknown): never => inconsistent(older, newer, proof, reason, cause);
  if (before.origin !== after.origin) differ('they name different ledgers');
  if (before.size > after.size) differ('the newer one has fewer entries');
  if (before.size === after.size && !before.root.equals(after.root)) differ('one size, two roots');
  if (before.size === 0n) {
    if (proof.length > 0) differ('a proof from an empty ledger has hashes');
    return after.size === 0n ? 'same' : 'extended';
  }
  try {
    verifyConsistency({
      oldSize: before.size,
      oldRoot: before.root,
      newSize: after.size,
      newRoot: after.root,
      proof,
    });
  } catch (error) {
    differ('the consistency proof fails', error);
  }
  return before.size === after.size ? 'same' : 'extended';
}

/** The checkpoint of a note whose signatures are not looked at: what it claims. @throws {BoundbookError} NOTE_INVALID */
export function checkpointOf(note: Uint8Array): Checkpoint {
  return parseCheckpoint(parseNote(note).text);
}

function inconsistent(
  older: CheckpointEvidence,
  newer: CheckpointEvidence,
  proof: readonly Uint8Array[],
  reason: string,
  cause: unknown,
): never {
  throw new BoundbookError(
    'CHECKPOINT_INCONSISTENT',
    `the newer checkpoint does not extend the older one: ${reason}`,
    {
      hint: 'Keep both notes: entries were removed or rewritten between them, or one is of another ledger.',
      evidence: {
        reason,
        older: evidenceText(older),
        newer: evidenceText(newer),
        proof: proof.map((node) => Buffer.from(node).toString('base64')),
      },
      ...(cause === undefined ? {} : { cause }),
    },
  );
}

/** The signed note if there is one, else the bare text. */
function evidenceText(side: CheckpointEvidence): string {
  if (side.note !== undefined) return Buffer.from(side.note).toString('utf8');
  return formatCheckpoint(side.checkpoint);
}

function refuse(reason: string): never {
  throw new BoundbookError('NOTE_INVALID', `the checkpoint is refused: ${reason}`, {
    hint: 'Restore the file from where it came; a checkpoint must not be edited.',
  });
}
