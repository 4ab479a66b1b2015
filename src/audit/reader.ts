import { type Dirent, readdirSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { BoundbookError, systemCode } from '../core/errors.js';
import { readError } from '../core/files.js';
import type { LedgerRow } from '../ledger/chain.js';
import { MAX_BODY_BYTES } from '../ledger/codec.js';
import { HASH_BYTES } from '../ledger/merkle.js';
import { LedgerReader } from '../ledger/reader.js';
import { LEDGER_FILE, MAX_INLINE_BYTES } from '../ledger/schema.js';
import { openLedgerFile, toLedgerError } from '../ledger/sqlite.js';
import type { ObjectPages, StreamedObject } from './object-stream.js';

const PAGE_ROWS = 256;

/** Link, leaf and body in one piece; null for a row in which one of them is not what the table declares. */
const REGULAR_ROWS = `SELECT seq, prev IS NULL, iif(
    typeof(seq) = 'integer' AND typeof(leaf) = 'blob' AND length(leaf) = ${HASH_BYTES}
      AND (prev IS NULL OR (typeof(prev) = 'blob' AND length(prev) = ${HASH_BYTES}))
      AND typeof(body) = 'blob' AND length(body) <= ${MAX_BODY_BYTES},
    CAST(coalesce(prev, x'') || leaf || body AS BLOB), NULL)
  FROM entry WHERE seq >= ? ORDER BY seq LIMIT ?`;

/**
 * Reads a ledger for an audit: like {@link LedgerReader}, but a changed table, a missing trigger or a lost end is
 * something to report and no reason to stop. All reads see one state of the database, whatever a run appends meanwhile.
 */
export class AuditReader extends LedgerReader implements ObjectPages {
  /** What is wrong with the file as a whole, although it can be read. */
  readonly damage: readonly BoundbookError[];
  readonly #rowPage: Database.Statement<[number, number], readonly unknown[]>;
  readonly #objectPage: Database.Statement<[number, number], readonly unknown[]>;

  private constructor(folder: string, db: Database.Database, damage: readonly BoundbookError[]) {
    super(folder, db, 'read');
    this.damage = damage;
    this.#rowPage = db.prepare<[number, number], readonly unknown[]>(REGULAR_ROWS).raw();
    this.#objectPage = db
      .prepare<[number, number], readonly unknown[]>(
        `SELECT rowid, lower(hex(digest)), iif(length(bytes) <= ${MAX_INLINE_BYTES}, bytes, NULL)
         FROM object WHERE rowid > ? ORDER BY rowid LIMIT ?`,
      )
      .raw();
    db.exec('BEGIN');
  }

  /**
   * @throws {BoundbookError} LEDGER_NOT_FOUND, LEDGER_FOREIGN, LEDGER_BUSY, FILE_NOT_REGULAR, FILE_UNREADABLE;
   * LEDGER_DAMAGED when nothing of it can be read.
   */
  static override open(folder: string): AuditReader {
    const damage: BoundbookError[] = [];
    const db = openLeniently(folder, damage);
    let reader: AuditReader | undefined;
    try {
      reader = new AuditReader(folder, db, damage);
      try {
        reader.assertAnchor();
      } catch (error) {
        damage.push(toLedgerError(error, reader.file, 'read'));
      }
      return reader;
    } catch (error) {
      db.close();
      // A ledger without its tables: what was wrong with the file says more than the failing query.
      throw damage[0] ?? toLedgerError(error, join(folder, LEDGER_FILE), 'read');
    }
  }

  /** {@link LedgerReader.rows}, with one allocation for a row where that makes three. */
  override *rows(from = 0): Generator<LedgerRow> {
    let next = from;
    for (;;) {
      const page = this.#query(() => this.#rowPage.all(next, PAGE_ROWS));
      for (const [seq, isFirst, bytes] of page) {
        if (typeof seq !== 'number' || !Buffer.isBuffer(bytes)) {
          // Not what a row is: the plain way says what is wrong with it.
          yield* super.rows(next);
          return;
        }
        const prev = isFirst === 1 ? null : bytes.subarray(0, HASH_BYTES);
        const at = prev === null ? 0 : HASH_BYTES;
        const leaf = bytes.subarray(at, at + HASH_BYTES);
        yield { seq, prev, leaf, body: bytes.subarray(at + HASH_BYTES) };
        next = seq + 1;
      }
      if (page.length < PAGE_ROWS) return;
    }
  }

  /** Number of objects in the table. @throws {BoundbookError} LEDGER_DAMAGED. */
  countRows(): number {
    return this.#query(() => this.db.prepare<[], number>('SELECT count(*) FROM object').pluck().get() ?? 0);
  }

  /** Digests of the objects in the table, as 64 hexadecimal digits. @throws {BoundbookError} LEDGER_DAMAGED. */
  *rowDigests(): Generator<string> {
    const page = this.db
      .prepare<[string], string>(
        'SELECT lower(hex(digest)) FROM object WHERE digest > unhex(?) ORDER BY digest LIMIT 4096',
      )
      .pluck();
    let after = '';
    for (;;) {
      const digests = this.#query(() => page.all(after));
      yield* digests;
      const last = digests.at(-1);
      if (last === undefined) return;
      after = last;
    }
  }

  /** @throws {BoundbookError} LEDGER_DAMAGED. */
  pageAfter(position: number, count: number): readonly StreamedObject[] {
    const rows = this.#query(() => this.#objectPage.all(position, count));
    return rows.map(([rowid, hex, bytes]) => ({
      position: Number(rowid),
      hex: String(hex),
      bytes: Buffer.isBuffer(bytes) ? bytes : null,
    }));
  }

  /** Object files as 64 hexadecimal digits, and names in the objects folder that are none. */
  *objectFiles(): Generator<{ readonly hex: string | null; readonly path: string }> {
    const root = join(this.folder, 'objects');
    for (const shelf of namesIn(root)) {
      const isShelf = shelf.isDirectory() && /^[0-9a-f]{2}$/.test(shelf.name);
      if (!isShelf) yield { hex: null, path: join('objects', shelf.name) };
      if (!isShelf) continue;
      for (const file of namesIn(join(root, shelf.name))) {
        const isObject = file.isFile() && /^[0-9a-f]{62}$/.test(file.name);
        yield { hex: isObject ? shelf.name + file.name : null, path: join('objects', shelf.name, file.name) };
      }
    }
  }

  /** Names in the work folder. */
  workFolders(): readonly string[] {
    return namesIn(join(this.folder, 'work')).map(({ name }) => name);
  }

  /** Whether the database has grown since it was opened. Ends the common view of it. */
  hasGrown(size: number): boolean {
    return this.#query(() => {
      if (this.db.inTransaction) this.db.exec('COMMIT');
      return this.countEntries() > size;
    });
  }

  #query<T>(query: () => T): T {
    try {
      return query();
    } catch (error) {
      throw toLedgerError(error, this.file, 'read');
    }
  }
}

function openLeniently(folder: string, damage: BoundbookError[]): Database.Database {
  try {
    return openLedgerFile(folder, 'read');
  } catch (error) {
    if (!(error instanceof BoundbookError) || error.code !== 'LEDGER_DAMAGED') throw error;
    damage.push(error);
  }
  const file = join(folder, LEDGER_FILE);
  try {
    const db = new Database(file, { readonly: true, fileMustExist: true });
    for (const setting of [
      'query_only = ON',
      'trusted_schema = OFF',
      'cell_size_check = ON',
      'mmap_size = 0',
    ]) {
      db.pragma(setting);
    }
    return db;
  } catch (error) {
    throw damage[0] ?? toLedgerError(error, file, 'read');
  }
}

function namesIn(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw readError(folder, error);
  }
}
