import { join } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import { makeFolder, writeFileDurable } from '../core/files.js';
import { addSignature, type NoteSignature, parseNote } from '../signing/note.js';
import type { Book } from './book.js';
import { checkpointOf } from './checkpoint.js';
import { CHECKPOINT_FOLDER, notePath, readNote, sameCheckpoint } from './note-files.js';

/** What lies beside a ledger of its signed checkpoints: the entry's note, with the signatures of others. */

/**
 * The newest signed checkpoint of a ledger, with the cosignatures that its file has.
 *
 * @param least number of entries that it must cover
 * @throws {BoundbookError} PROOF_UNAVAILABLE when there is none.
 */
export async function newestNote(
  { folder, fold, store }: Book,
  least: number,
): Promise<{ readonly size: number; readonly note: Buffer }> {
  const size = fold.checkpoints.signed.at(-1);
  if (size === undefined || size < least) {
    const newest = size === undefined ? 'none' : `the newest one covers ${size} entries`;
    throw new BoundbookError('PROOF_UNAVAILABLE', `no signed checkpoint covers ${least} entries: ${newest}`, {
      hint: 'Write one now: boundbook checkpoint --key FILE.',
    });
  }
  const entry = store.entryAt(size);
  const note = Buffer.from(entry?.type === 'checkpoint' ? (entry.note ?? '') : '', 'utf8');
  const file = await readNote(folder, size);
  return { size, note: file !== null && sameCheckpoint(file, note) ? file : note };
}

/** What became of a note in a ledger's folder. */
export interface AddedSignatures {
  readonly file: string;
  /** Names of the keys whose signatures are new. */
  readonly added: readonly string[];
  /** Names of all keys that signed it. */
  readonly names: readonly string[];
}

/**
 * Adds the signatures of a note to the file of the same checkpoint; they are not verified.
 *
 * @throws {BoundbookError} CHECKPOINT_INCONSISTENT when the ledger says something else; NOTE_INVALID; PROOF_UNAVAILABLE
 * when the ledger has no signed checkpoint of that size; FILE_UNWRITABLE, DISK_FULL.
 */
export async function addSignatures(book: Book, bytes: Uint8Array): Promise<AddedSignatures> {
  const { folder, fold, store } = book;
  const size = Number(checkpointOf(bytes).size);
  const entry = fold.checkpoints.signed.includes(size) ? store.entryAt(size) : null;
  if (entry?.type !== 'checkpoint' || entry.note === null) {
    throw new BoundbookError('PROOF_UNAVAILABLE', `the ledger has no signed checkpoint of ${size} entries`, {
      hint: 'The note is of another ledger, or of a state that this one does not have.',
    });
  }
  const own = Buffer.from(entry.note, 'utf8');
  if (!sameCheckpoint(own, bytes)) {
    throw new BoundbookError(
      'CHECKPOINT_INCONSISTENT',
      `the ledger has another checkpoint of ${size} entries`,
      {
        hint: 'Keep both notes: one of the two is of another ledger, or entries were rewritten.',
        evidence: { own: entry.note, given: Buffer.from(bytes).toString('utf8') },
      },
    );
  }
  const path = notePath(folder, size);
  const file = await readNote(folder, size);
  const base = file !== null && sameCheckpoint(file, own) ? file : own;
  const present = parseNote(base).signatures;
  const isThere = (one: NoteSignature) =>
    present.some(
      ({ name, keyId, bytes: signature }) =>
        name === one.name && keyId === one.keyId && signature.equals(one.bytes),
    );
  const fresh = parseNote(bytes).signatures.filter((one) => !isThere(one));
  const note = fresh.reduce((sum, one) => addSignature(sum, one), base);
  await makeFolder(join(folder, CHECKPOINT_FOLDER));
  if (fresh.length > 0 || file === null) await writeFileDurable(path, note);
  return {
    file: path,
    added: fresh.map(({ name }) => name),
    names: [...present, ...fresh].map(({ name }) => name),
  };
}
