import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { BoundbookError, systemCode } from '../core/errors.js';
import { makeFolder, readError, readFileBounded, writeFileDurable } from '../core/files.js';
import { parseNote } from '../signing/note.js';
import { checkpointOf } from './checkpoint.js';
import type { EntryOf } from './entries/entry.js';
import { parseOrigin } from './origin.js';

/**
 * The notes of signed checkpoints as files in a ledger's folder: `checkpoints/<size>.note`, and
 * `checkpoints/<size>.incarnation-<n>.note` for those of a state that was lost.
 */

export const CHECKPOINT_FOLDER = 'checkpoints';
/** A note with a hundred cosignatures has some 20 KB. */
const MAX_NOTE_BYTES = 1_000_000;

/** Writes the file of a signed checkpoint, unless it is there: it may have cosignatures by now. */
export async function writeNote(folder: string, { size, note }: EntryOf<'checkpoint'>): Promise<void> {
  if (note === null) return;
  await makeFolder(join(folder, CHECKPOINT_FOLDER));
  const path = notePath(folder, size);
  const present = await readNote(folder, size);
  if (present !== null) {
    if (sameCheckpoint(present, note)) return;
    // Of a state that was lost when an older copy was put back: evidence, and never overwritten.
    await writeFileDurable(join(folder, CHECKPOINT_FOLDER, formerName(size, present)), present);
  }
  await writeFileDurable(path, note);
}

/** A note that lies in a ledger's folder. */
export interface NoteFile {
  /** Below the ledger's folder. */
  readonly name: string;
  readonly bytes: Buffer;
}

/**
 * The notes in a ledger's folder by size, as they lie there: nothing of them is verified. What is no file, or too large
 * for a note, comes without bytes.
 *
 * @throws {BoundbookError} FILE_UNREADABLE.
 */
export async function readNotes(folder: string): Promise<readonly NoteFile[]> {
  const names = await noteNames(folder);
  const sorted = names.sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10) || (a < b ? -1 : 1));
  const notes: NoteFile[] = [];
  for (const name of sorted) {
    const path = join(CHECKPOINT_FOLDER, name);
    notes.push({ name: path, bytes: await readNoteFile(join(folder, path)) });
  }
  return notes;
}

export function notePath(folder: string, size: number): string {
  return join(folder, CHECKPOINT_FOLDER, noteName(size));
}

/** Whether two notes are of one checkpoint, whoever signed them. */
export function sameCheckpoint(one: Uint8Array, other: Uint8Array | string): boolean {
  try {
    return textOf(one) === textOf(typeof other === 'string' ? Buffer.from(other, 'utf8') : other);
  } catch (error) {
    if (error instanceof BoundbookError) return false;
    throw error;
  }
}

function textOf(note: Uint8Array): string {
  return parseNote(note).text;
}

function noteName(size: number): string {
  return `${size}.note`;
}

/** What a note of a lost state is called from then on. */
function formerName(size: number, note: Uint8Array): string {
  const origin = originOf(note);
  return `${size}.${origin === null ? 'unknown' : `incarnation-${origin.incarnation}`}.note`;
}

function originOf(note: Uint8Array) {
  try {
    return parseOrigin(checkpointOf(note).origin);
  } catch (error) {
    if (error instanceof BoundbookError) return null;
    throw error;
  }
}

/** Whether the note of a size lies there, whatever it says. @throws {BoundbookError} FILE_UNREADABLE. */
export async function isNoteThere(folder: string, size: number): Promise<boolean> {
  const path = notePath(folder, size);
  try {
    return (await stat(path)).size > 0;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw readError(path, error);
  }
}

async function noteNames(folder: string): Promise<string[]> {
  const path = join(folder, CHECKPOINT_FOLDER);
  try {
    const names = await readdir(path);
    return names.filter((name) => /^[0-9]{1,15}(\.incarnation-[0-9]{1,9}|\.unknown)?\.note$/.test(name));
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw readError(path, error);
  }
}

async function readNoteFile(path: string): Promise<Buffer> {
  try {
    return await readFileBounded(path, { maxBytes: MAX_NOTE_BYTES, allowEmpty: true });
  } catch (error) {
    const isOdd = error instanceof BoundbookError && /^FILE_(NOT_REGULAR|TOO_LARGE)$/.test(error.code);
    if (isOdd) return Buffer.alloc(0);
    throw error;
  }
}

/**
 * The note of a size; null when there is none, or an empty file.
 *
 * @throws {BoundbookError} FILE_UNREADABLE, FILE_NOT_REGULAR, FILE_TOO_LARGE.
 */
export async function readNote(folder: string, size: number): Promise<Buffer | null> {
  const path = notePath(folder, size);
  try {
    const bytes = await readFileBounded(path, { maxBytes: MAX_NOTE_BYTES, allowEmpty: true });
    return bytes.length === 0 ? null : bytes;
  } catch (error) {
    if (error instanceof BoundbookError && error.code === 'FILE_NOT_FOUND') return null;
    throw error;
  }
}
