import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { BoundbookError, systemCode } from '../core/errors.js';
import { makeFolder, readError, readFileBounded, writeFileDurable } from '../core/files.js';
import type { SignerKey } from '../signing/keys.js';
import { parseNote } from '../signing/note.js';
import type { Book } from './book.js';
import { checkpointOf } from './checkpoint.js';
import { checkpointDraft } from './checkpoint-entry.js';
import type { Entry, EntryOf } from './entries.js';
import type { LedgerObject } from './objects.js';
import { parseOrigin } from './origin.js';
import type { LedgerReader } from './reader.js';
import type { Decide, LedgerStore } from './store.js';

/**
 * Checkpoints as entries and as files `checkpoints/<size>.note` in the ledger's folder. The entry comes first; its note
 * is written to the file after the commit, so that a file that is missing can be made again from the entry.
 */

export const CHECKPOINT_FOLDER = 'checkpoints';
/** An entry names so many time-stamp tokens; the next one names the rest. */
const MAX_TOKENS = 100;
/** A note with a hundred cosignatures has some 20 KB. */
const MAX_NOTE_BYTES = 1_000_000;

export interface CheckpointSetting {
  /** null: the entry has no note. */
  readonly key: SignerKey | null;
  /** Time-stamp tokens; those that an entry named before are left out. */
  readonly tokens: readonly LedgerObject[];
}

/** A checkpoint that was written now. */
export interface WrittenCheckpoint {
  readonly entry: EntryOf<'checkpoint'>;
  /** Where the note lies; null without a key. */
  readonly file: string | null;
}

/**
 * Writes a checkpoint over everything that is in the ledger now, as entry and as file. Files of earlier checkpoints that
 * a kill kept from being written are made up for.
 *
 * @throws {BoundbookError} KEY_INVALID; as the store; DISK_FULL, FILE_UNWRITABLE for the file: the entry is durable then.
 */
export async function writeCheckpoint(
  book: Book<LedgerStore>,
  setting: CheckpointSetting,
): Promise<WrittenCheckpoint> {
  const { entries } = book.store.transact(decideCheckpoint(book, setting));
  const entry = writtenEntry(entries);
  await writeNote(book.folder, entry);
  await healNotes(book);
  return { entry, file: entry.note === null ? null : notePath(book.folder, entry.size) };
}

/** The decision to append a checkpoint: exact whatever other processes, or this one, append just before it. */
export function decideCheckpoint(
  { fold, tree: treeOf }: Book<LedgerStore>,
  { key, tokens }: CheckpointSetting,
): Decide<undefined> {
  return (_tail, own) => {
    const { identity, checkpoints } = fold;
    if (identity === null) throw new BoundbookError('INTERNAL', 'a ledger without its first entry');
    const tree = treeOf();
    const told = new Set(checkpoints.told);
    for (const { entry, leaf } of own) {
      tree.append(leaf);
      if (entry.type === 'checkpoint') for (const digest of entry.timestamps) told.add(digest);
    }
    const untold = new Map(
      tokens.flatMap((token) => (told.has(token.digest) ? [] : [[token.digest, token] as const])),
    );
    const objects = [...untold.values()].slice(0, MAX_TOKENS);
    const digests = objects.map(({ digest }) => digest);
    return { drafts: [checkpointDraft(tree, identity, key, digests)], objects, result: undefined };
  };
}

/** The entry that {@link decideCheckpoint} appended. */
export function writtenEntry([entry]: readonly Entry[]): EntryOf<'checkpoint'> {
  if (entry?.type !== 'checkpoint') throw new BoundbookError('INTERNAL', 'a checkpoint without its entry');
  return entry;
}

/**
 * Writes the files of signed checkpoints that are not there.
 *
 * @throws {BoundbookError} DISK_FULL, FILE_UNWRITABLE, FILE_UNREADABLE.
 */
export async function healNotes({ folder, fold, store }: Book): Promise<void> {
  const { signed } = fold.checkpoints;
  if (signed.length === 0) return;
  // Where an older copy was put back, files of what was lost may lie under the names of new ones.
  const restored = (fold.identity?.incarnation ?? 1) > 1;
  for (const size of signed) {
    if (!restored && (await isFilled(notePath(folder, size)))) continue;
    const entry = entryAt(store, size);
    if (entry?.type === 'checkpoint') await writeNote(folder, entry);
  }
}

/** Writes the file of a signed checkpoint, unless it is there: it may have cosignatures by now. */
export async function writeNote(folder: string, { size, note }: EntryOf<'checkpoint'>): Promise<void> {
  if (note === null) return;
  await makeFolder(join(folder, CHECKPOINT_FOLDER));
  const path = notePath(folder, size);
  const present = await readNote(path);
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

/** The note of one size in a ledger's folder; null when there is none. @throws {BoundbookError} as {@link readNotes}. */
export function readNoteOf(folder: string, size: number): Promise<Buffer | null> {
  return readNote(notePath(folder, size));
}

/** The signed checkpoint at a position, as the entry has it. */
export function entryAt(reader: LedgerReader, seq: number): Entry | null {
  for (const { entry } of reader.entries(seq)) return entry.seq === seq ? entry : null;
  return null;
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

async function isFilled(path: string): Promise<boolean> {
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

async function readNote(path: string): Promise<Buffer | null> {
  try {
    const bytes = await readFileBounded(path, { maxBytes: MAX_NOTE_BYTES, allowEmpty: true });
    return bytes.length === 0 ? null : bytes;
  } catch (error) {
    if (error instanceof BoundbookError && error.code === 'FILE_NOT_FOUND') return null;
    throw error;
  }
}
