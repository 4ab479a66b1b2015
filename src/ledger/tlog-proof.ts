import { BoundbookError } from '../core/errors.js';
import { decodeUtf8 } from '../core/files.js';
import { decodeBase64 } from '../signing/base64.js';
import { parseNote } from '../signing/note.js';
import { type Checkpoint, parseCheckpoint } from './checkpoint.js';
import { HASH_BYTES, leafHash } from './merkle.js';
import { verifyInclusion } from './proofs.js';

/**
 * Proof files (c2sp.org/tlog-proof@v1): that one entry is in the ledger that a signed checkpoint describes, in one
 * text that is verified offline. Pure: bytes in, verdict out.
 */

const HEADER = 'c2sp.org/tlog-proof@v1';
const MAX_BYTES = 2_000_000;
/** No tree below 2^64 leaves is higher. */
const MAX_HASHES = 64;

export interface TlogProof {
  /** Position of the entry, from 0. */
  readonly index: bigint;
  /** The audit path, from the leaf's sibling up. */
  readonly hashes: readonly Buffer[];
  /** The signed checkpoint, byte for byte. */
  readonly checkpoint: Buffer;
  /** Opaque and not authenticated: never trust it. */
  readonly extra?: Buffer;
}

/** Writes a proof file. @throws {BoundbookError} NOTE_INVALID */
export function formatTlogProof(proof: TlogProof): Buffer {
  if (proof.index < 0n || proof.index >= 1n << 64n) refuse('its index is outside 0 to 2^64 - 1');
  if (proof.hashes.length > MAX_HASHES) refuse(`it has more than ${MAX_HASHES} hashes`);
  if (proof.hashes.some((hash) => hash.length !== HASH_BYTES)) refuse(`a hash has not ${HASH_BYTES} bytes`);
  if (proof.extra?.length === 0) refuse('its extra data is empty; the line is left out then');
  parseCheckpoint(parseNote(proof.checkpoint).text);
  const head = [
    HEADER,
    ...(proof.extra === undefined ? [] : [`extra ${proof.extra.toString('base64')}`]),
    `index ${proof.index}`,
    ...proof.hashes.map((hash) => hash.toString('base64')),
  ];
  return Buffer.concat([Buffer.from(`${head.join('\n')}\n\n`, 'utf8'), proof.checkpoint]);
}

/** Reads a proof file, strictly by writing it again; nothing is verified. @throws {BoundbookError} NOTE_INVALID */
export function parseTlogProof(bytes: Uint8Array): TlogProof {
  if (bytes.length > MAX_BYTES) refuse(`it has more than ${MAX_BYTES} bytes`);
  const buffer = Buffer.from(bytes);
  const border = buffer.indexOf('\n\n');
  if (border < 0) refuse('no empty line parts the proof from the checkpoint');
  const lines = decodeHead(buffer.subarray(0, border)).split('\n');
  if (lines.shift() !== HEADER) refuse(`its first line is not ${HEADER}`);
  const extra = lines[0]?.startsWith('extra ')
    ? decodeLine(lines.shift()?.slice('extra '.length))
    : undefined;
  const [, index] = /^index ([0-9]{1,20})$/.exec(lines.shift() ?? '') ?? [];
  if (index === undefined) return refuse('its line "index <number>" is missing');
  const proof: TlogProof = {
    index: BigInt(index),
    hashes: lines.map(decodeLine),
    checkpoint: buffer.subarray(border + 2),
    ...(extra === undefined ? {} : { extra }),
  };
  if (!formatTlogProof(proof).equals(buffer)) refuse('its form is not the one its content is written in');
  return proof;
}

/**
 * Verifies a proof file for an entry.
 *
 * @param entry the entry's bytes, from wherever the reader has them; the file does not hold them.
 * @param accept verifies the signed checkpoint and gives its content, e.g. by `verifyCheckpoint` with the keys the
 * reader trusts or by `requireQuorum` with a policy. What it throws is passed on.
 * @throws {BoundbookError} NOTE_INVALID; PROOF_INVALID with the failing proof as evidence
 */
export function verifyTlogProof(
  bytes: Uint8Array,
  entry: Uint8Array,
  accept: (checkpoint: Buffer) => { readonly checkpoint: Checkpoint },
): { readonly index: bigint; readonly checkpoint: Checkpoint } {
  const proof = parseTlogProof(bytes);
  const { checkpoint } = accept(proof.checkpoint);
  verifyInclusion({
    index: proof.index,
    size: checkpoint.size,
    leaf: leafHash(entry),
    root: checkpoint.root,
    proof: proof.hashes,
  });
  return { index: proof.index, checkpoint };
}

function decodeLine(text: string | undefined): Buffer {
  const bytes = text === undefined ? undefined : decodeBase64(text);
  return bytes ?? refuse('a line is not base64');
}

function decodeHead(bytes: Uint8Array): string {
  try {
    return decodeUtf8(bytes, 'the proof');
  } catch (error) {
    throw new BoundbookError('NOTE_INVALID', 'the proof file is refused: it is not UTF-8 text', {
      cause: error,
    });
  }
}

function refuse(reason: string): never {
  throw new BoundbookError('NOTE_INVALID', `the proof file is refused: ${reason}`, {
    hint: 'Write it again with `boundbook show --proof`; a proof file must not be edited.',
  });
}
