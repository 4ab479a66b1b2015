import { BoundbookError } from '../core/errors.js';
import type { SignerKey } from '../signing/keys.js';
import type { Book } from './book.js';
import { checkpointDraft } from './checkpoint-entry.js';
import type { Entry, EntryOf } from './entries/entry.js';
import { isNoteThere, notePath, writeNote } from './note-files.js';
import type { LedgerObject } from './objects.js';
import type { Decide, LedgerStore } from './store.js';

/**
 * Writes checkpoints. The entry comes first; its note is written to a file after the commit, so that a file that is
 * missing can be made again from the entry.
 */

/** An entry names so many time-stamp tokens; the next one names the rest. */
const MAX_TOKENS = 100;

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
    if (!restored && (await isNoteThere(folder, size))) continue;
    const entry = store.entryAt(size);
    if (entry?.type === 'checkpoint') await writeNote(folder, entry);
  }
}
