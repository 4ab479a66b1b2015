import { accessSync, constants, lstatSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { BoundbookError, systemCode } from '../core/errors.js';
import { readError, writeError } from '../core/files.js';
import { type FileSystemProbe, networkFileSystem } from '../core/statfs.js';
import { assertSchema, LEDGER_FILE } from './schema.js';

/** How long a statement waits for another process's transaction before it gives up. */
export const BUSY_MS = 5_000;

type Connection = Database.Database;

export interface OpenOptions {
  /** How long a statement waits for another process's transaction, in milliseconds. */
  readonly busyMs?: number | undefined;
  /** Looks at the file system below the folder. */
  readonly probe?: FileSystemProbe | undefined;
}

/**
 * Opens an existing ledger file; never creates one (F-105).
 *
 * The file is looked at by name only before SQLite opens it: closing a file that a connection of the same process
 * has open would drop that connection's locks.
 *
 * @throws {BoundbookError} LEDGER_NOT_FOUND, LEDGER_FOREIGN, LEDGER_DAMAGED, LEDGER_BUSY, FILE_NOT_REGULAR,
 * FILE_UNREADABLE, FILE_UNWRITABLE, or for writing LEDGER_ON_NETWORK.
 */
export function openLedgerFile(
  folder: string,
  mode: 'read' | 'write',
  options: OpenOptions = {},
): Connection {
  const file = join(folder, LEDGER_FILE);
  assertLedgerFile(file);
  if (mode === 'write') {
    assertLocalDisk(folder, options.probe);
    assertWritable(folder, file);
  }
  let db: Connection | undefined;
  try {
    db = new Database(file, {
      readonly: mode === 'read',
      fileMustExist: true,
      timeout: options.busyMs ?? BUSY_MS,
    });
    assertSchema(db, file);
    if (mode === 'read') configureReader(db);
    else configureWriter(db, file);
    return db;
  } catch (error) {
    db?.close();
    throw toLedgerError(error, file, mode);
  }
}

/**
 * Sets what durability rests on and reads it back: WAL with synchronous=FULL loses no acknowledged commit in a power
 * cut; NORMAL does.
 */
export function configureWriter(db: Connection, file: string): void {
  const journal = db.pragma('journal_mode = WAL', { simple: true });
  db.pragma('synchronous = FULL');
  db.pragma('recursive_triggers = ON');
  db.pragma('trusted_schema = OFF');
  db.pragma('mmap_size = 0');
  const synchronous = db.pragma('synchronous', { simple: true });
  if (journal !== 'wal' || synchronous !== 2) {
    throw new BoundbookError(
      'FILE_UNWRITABLE',
      `${file} cannot be written durably (${String(journal)}, ${String(synchronous)})`,
      {
        hint: 'Put the ledger on a local disk; write-ahead logging does not work on this file system.',
      },
    );
  }
}

function configureReader(db: Connection): void {
  db.pragma('query_only = ON');
  db.pragma('trusted_schema = OFF');
  db.pragma('cell_size_check = ON');
  db.pragma('mmap_size = 0');
}

function assertLedgerFile(file: string): void {
  let stat: ReturnType<typeof lstatSync>;
  try {
    stat = lstatSync(file);
  } catch (error) {
    const code = systemCode(error);
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw readError(file, error);
    throw new BoundbookError('LEDGER_NOT_FOUND', `there is no ledger at ${file}`, {
      hint: 'Check the path. `boundbook run` creates a ledger; nothing else does.',
      cause: error,
    });
  }
  if (!stat.isFile()) {
    throw new BoundbookError(
      'FILE_NOT_REGULAR',
      `${file} is ${stat.isDirectory() ? 'a folder' : 'not a regular file'}`,
      {
        hint: 'A ledger is a regular file in its own folder.',
      },
    );
  }
  if (stat.size === 0) {
    throw new BoundbookError('LEDGER_DAMAGED', `${file} is empty (0 bytes)`, {
      hint: 'An interrupted copy leaves such a file. Restore it; an empty file never counts as an empty ledger.',
    });
  }
}

/**
 * Write-ahead logging needs memory that all writers share and an fsync that keeps its word; neither is sure between
 * hosts. To be called before a ledger is made, and before one is opened for writing.
 *
 * @throws {BoundbookError} LEDGER_ON_NETWORK; FILE_UNREADABLE.
 */
export function assertLocalDisk(folder: string, probe?: FileSystemProbe): void {
  const name = networkFileSystem(folder, probe);
  if (name === null) return;
  throw new BoundbookError('LEDGER_ON_NETWORK', `${folder} lies on a network file system (${name})`, {
    hint: 'Put the folder ledger/ on a local disk; it may be a link to one. Copy it elsewhere when nothing runs.',
    evidence: { folder, file_system: name },
  });
}

/** SQLite opens what it may not write for reading, and fails only at the first entry. */
function assertWritable(folder: string, file: string): void {
  for (const path of [file, folder]) {
    try {
      accessSync(path, constants.W_OK);
    } catch (error) {
      throw writeError(path, error);
    }
  }
}

/** Turns what SQLite throws into a typed error. A {@link BoundbookError} passes unchanged. */
export function toLedgerError(error: unknown, file: string, mode: 'read' | 'write'): BoundbookError {
  if (error instanceof BoundbookError) return error;
  const code = systemCode(error) ?? '';
  const kind = KINDS.find(({ prefix }) => code.startsWith(prefix));
  if (kind === undefined) {
    const message = error instanceof Error ? error.message : String(error);
    return new BoundbookError('INTERNAL', `unexpected fault of the ledger ${file}: ${message}`, {
      cause: error,
    });
  }
  const errorCode =
    kind.code === 'FILE' ? (mode === 'read' ? 'FILE_UNREADABLE' : 'FILE_UNWRITABLE') : kind.code;
  return new BoundbookError(errorCode, `${file} ${kind.says} (${code})`, {
    hint: kind.hint,
    evidence: { sqlite: code },
    cause: error,
  });
}

/** SQLite's result codes, the longer ones first. */
const KINDS = [
  {
    prefix: 'SQLITE_FULL',
    code: 'DISK_FULL',
    says: 'cannot grow: no space is left',
    hint: 'Free some space and run the command again; nothing that was recorded is lost.',
  },
  {
    prefix: 'SQLITE_IOERR_SHM',
    code: 'DISK_FULL',
    says: 'cannot keep its shared memory file',
    hint: 'Free some space and run the command again; nothing that was recorded is lost.',
  },
  {
    prefix: 'SQLITE_BUSY',
    code: 'LEDGER_BUSY',
    says: 'is held by another process',
    hint: 'Wait for the other process, or stop it, and run the command again.',
  },
  {
    prefix: 'SQLITE_LOCKED',
    code: 'LEDGER_BUSY',
    says: 'is locked',
    hint: 'Wait for the other process, or stop it, and run the command again.',
  },
  {
    prefix: 'SQLITE_NOTADB',
    code: 'LEDGER_FOREIGN',
    says: 'is not a ledger: it is no SQLite file',
    hint: 'Check the path. If this was a ledger, it is damaged from its first bytes: restore it from a copy.',
  },
  {
    prefix: 'SQLITE_CORRUPT',
    code: 'LEDGER_DAMAGED',
    says: 'is damaged',
    hint: 'Keep the file as it is and restore a copy beside it; nothing is repaired or started anew by itself.',
  },
  {
    prefix: 'SQLITE_CONSTRAINT',
    code: 'LEDGER_DAMAGED',
    says: 'does not take this entry',
    hint: 'The ledger was changed under this process. Stop all runs and audit it.',
  },
  {
    prefix: 'SQLITE_IOERR',
    code: 'LEDGER_DAMAGED',
    says: 'met an input/output error',
    hint: 'Check the disk. What was acknowledged is kept; audit the ledger before going on.',
  },
  {
    prefix: 'SQLITE_READONLY',
    code: 'FILE',
    says: 'may not be written',
    hint: 'Give this user the right to write the file and its folder.',
  },
  {
    prefix: 'SQLITE_PERM',
    code: 'FILE',
    says: 'may not be opened',
    hint: 'Give this user the right to open the file and its folder.',
  },
  {
    prefix: 'SQLITE_CANTOPEN',
    code: 'FILE',
    says: 'cannot be opened',
    hint: 'Give this user the right to open the file and to write into its folder, which reading needs as well.',
  },
] as const;
