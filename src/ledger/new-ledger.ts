import { randomBytes } from 'node:crypto';
import { linkSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { exists, makeFolder, writeError } from '../core/files.js';
import type { FileSystemProbe } from '../core/statfs.js';
import type { DraftOf, EntryDraft } from './entries/entry.js';
import { type LedgerObject, ObjectFolder, syncFolderSync } from './objects.js';
import { createSchema, LEDGER_FILE, MAX_INLINE_BYTES } from './schema.js';
import { assertLocalDisk, configureWriter, toLedgerError } from './sqlite.js';
import { prepareStatements } from './statements.js';
import { encodeAfter, NO_ENTRIES, tailAfter } from './tail.js';

/** What a ledger takes over from that of a superseded plan (P22). */
export interface Carry {
  readonly state: NonNullable<DraftOf<'ledger.opened'>['carries']>;
  readonly drafts: Iterable<DraftOf<'slot.carried' | 'deviation.noted'>>;
}

/** A ledger's first entry, the objects that it names, and the slots and notes that it carries. */
export interface Opening {
  readonly draft: DraftOf<'ledger.opened'>;
  readonly objects: readonly LedgerObject[];
  readonly carried?: Carry['drafts'];
}

/**
 * Makes a new ledger with its first entry and what it carries. The file appears under its name complete and durable, or not at all.
 *
 * @throws {BoundbookError} FILE_EXISTS when there is one already; LEDGER_ON_NETWORK, DISK_FULL, FILE_UNWRITABLE,
 * ENTRY_REFUSED.
 */
export async function makeLedgerFile(
  folder: string,
  opening: Opening,
  { now, probe }: { readonly now: () => string; readonly probe?: FileSystemProbe | undefined },
): Promise<void> {
  const file = join(folder, LEDGER_FILE);
  assertLocalDisk(folder, probe);
  if (await exists(file)) throw writeError(file, { code: 'EEXIST' });
  await makeFolder(folder);
  const temporary = join(folder, `.${randomBytes(6).toString('hex')}.tmp`);
  try {
    writeLedger(folder, temporary, opening, now);
    // A hard link fails when another process was faster, where a rename would replace its ledger.
    linkSync(temporary, file);
    unlinkSync(temporary);
    syncFolderSync(folder);
    // Another process may have made the folders just now and not synced them yet.
    syncFolderSync(dirname(folder));
    syncFolderSync(dirname(dirname(folder)));
  } catch (error) {
    for (const name of ['', '-wal', '-shm', '-journal']) removeQuietly(temporary + name);
    throw writeError(file, error);
  }
}

function writeLedger(folder: string, temporary: string, opening: Opening, now: () => string): void {
  const objects = new ObjectFolder(folder);
  const small = opening.objects.filter(({ bytes }) => bytes.length <= MAX_INLINE_BYTES);
  for (const object of opening.objects) if (!small.includes(object)) objects.writeSync(object);
  const db = new Database(temporary);
  try {
    configureWriter(db, temporary);
    createSchema(db);
    const sql = prepareStatements(db);
    sql.begin.run();
    for (const object of small) sql.insertObject(object);
    let tail = NO_ENTRIES;
    const append = (draft: EntryDraft): void => {
      const record = encodeAfter(draft, tail, now);
      sql.insertEntry(record);
      tail = tailAfter(record);
    };
    append(opening.draft);
    for (const draft of opening.carried ?? []) append(draft);
    sql.commit.run();
    // Everything into the main file, so that a copy of it alone is at least a ledger.
    db.pragma('wal_checkpoint(TRUNCATE)');
  } catch (error) {
    throw toLedgerError(error, temporary, 'write');
  } finally {
    db.close();
  }
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Not there.
  }
}
