import { BoundbookError } from '../core/errors.js';
import { decodeUtf8 } from '../core/files.js';
import { decodeBase64 } from '../signing/base64.js';
import { parseNote } from '../signing/note.js';
import { parseCheckpoint } from './checkpoint.js';
import { HASH_BYTES } from './merkle.js';

/**
 * A checkpoint with the proof that it extends an older one: the body of an `add-checkpoint` request of
 * c2sp.org/tlog-witness, so that a cosigner needs nothing else. Pure: bytes in, values out; nothing is verified.
 */

/** No proof between trees below 2^64 leaves is longer. */
const MAX_HASHES = 63;
const MAX_BYTES = 1_010_000;
const MAX_SIZE = 1n << 64n;

export interface Extension {
  /** Number of entries of the older checkpoint. */
  readonly oldSize: bigint;
  /** Consistency proof from it to the newer one. */
  readonly hashes: readonly Buffer[];
  /** The newer one's signed note, byte for byte. */
  readonly note: Buffer;
}

/** Whether bytes begin like an extension: no origin of ours has a space. */
export function isExtension(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.subarray(0, 4)).equals(Buffer.from('old '));
}

/** @throws {BoundbookError} NOTE_INVALID. */
export function formatExtension({ oldSize, hashes, note }: Extension): Buffer {
  if (oldSize < 0n || oldSize >= MAX_SIZE) refuse('its old size is outside 0 to 2^64 - 1');
  if (hashes.length > MAX_HASHES) refuse(`it has more than ${MAX_HASHES} hashes`);
  if (hashes.some((hash) => hash.length !== HASH_BYTES)) refuse(`a hash has not ${HASH_BYTES} bytes`);
  parseCheckpoint(parseNote(note).text);
  const head = [`old ${oldSize}`, ...hashes.map((hash) => hash.toString('base64')), '', ''].join('\n');
  return Buffer.concat([Buffer.from(head, 'utf8'), note]);
}

/** Reads an extension, strictly by writing it again. @throws {BoundbookError} NOTE_INVALID */
export function parseExtension(bytes: Uint8Array): Extension {
  if (bytes.length > MAX_BYTES) refuse(`it has more than ${MAX_BYTES} bytes`);
  const buffer = Buffer.from(bytes);
  const border = buffer.indexOf('\n\n');
  if (border < 0) refuse('no empty line parts the proof from the note');
  const [first = '', ...lines] = decodeHead(buffer.subarray(0, border)).split('\n');
  const [, size] = /^old ([0-9]{1,20})$/.exec(first) ?? [];
  if (size === undefined) return refuse('its first line is not "old <size>"');
  const hashes = lines.map((line) => decodeBase64(line) ?? refuse('a line is not base64'));
  const extension = { oldSize: BigInt(size), hashes, note: buffer.subarray(border + 2) };
  if (!formatExtension(extension).equals(buffer)) refuse('its form is not the one its content is written in');
  return extension;
}

function decodeHead(bytes: Uint8Array): string {
  try {
    return decodeUtf8(bytes, 'the proof');
  } catch (error) {
    throw new BoundbookError('NOTE_INVALID', 'the extension is refused: it is not UTF-8 text', {
      cause: error,
    });
  }
}

function refuse(reason: string): never {
  throw new BoundbookError('NOTE_INVALID', `the extension is refused: ${reason}`, {
    hint: 'Write it again with `boundbook checkpoint --extends`; it must not be edited.',
  });
}
