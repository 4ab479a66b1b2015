import { createHash } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readSync } from 'node:fs';
import Database from 'better-sqlite3';
import { readError } from '../../core/files.js';
import type { LedgerRecord } from '../../ledger/chain.js';
import { createSchema } from '../../ledger/schema.js';
import { toLedgerError } from '../../ledger/sqlite.js';
import { prepareStatements, type Statements } from '../../ledger/statements.js';
import type { WrittenFile } from './hashed-file.js';

const READ_BYTES = 1 << 18;

/**
 * The entries once more, as a ledger file without objects, for tools that speak SQL. It is filled in one transaction from
 * nothing, so that equal entries give equal bytes under one version of SQLite.
 */
export class SqliteCopy {
  readonly #path: string;
  readonly #db: Database.Database;
  readonly #sql: Statements;

  /** @throws {BoundbookError} DISK_FULL, FILE_UNWRITABLE. */
  constructor(path: string) {
    this.#path = path;
    try {
      this.#db = new Database(path);
      this.#db.pragma('page_size = 4096');
      // A fault removes the whole bundle: nothing has to be rolled back.
      this.#db.pragma('journal_mode = OFF');
      this.#db.pragma('synchronous = OFF');
      this.#db.pragma('trusted_schema = OFF');
      this.#db.exec('BEGIN');
      createSchema(this.#db);
      this.#sql = prepareStatements(this.#db);
    } catch (error) {
      throw toLedgerError(error, path, 'write');
    }
  }

  add(record: LedgerRecord): void {
    try {
      this.#sql.insertEntry(record);
    } catch (error) {
      throw toLedgerError(error, this.#path, 'write');
    }
  }

  finish(): WrittenFile {
    try {
      this.#db.exec('COMMIT');
    } catch (error) {
      throw toLedgerError(error, this.#path, 'write');
    } finally {
      this.abandon();
    }
    return syncAndHash(this.#path);
  }

  abandon(): void {
    if (this.#db.open) this.#db.close();
  }
}

/** Makes a file durable and hashes it. */
function syncAndHash(path: string): WrittenFile {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  let size = 0;
  try {
    const file = openSync(path, 'r');
    try {
      fsyncSync(file);
      for (let count = -1; count !== 0; size += count) {
        count = readSync(file, buffer, 0, READ_BYTES, size);
        hash.update(buffer.subarray(0, count));
      }
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw readError(path, error);
  }
  return { size, digest: `sha256:${hash.digest('hex')}` };
}
