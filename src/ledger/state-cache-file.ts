import { lstatSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { sha256Hex } from '../core/digest.js';

/** The name of the state cache in a ledger's folder. */
export const CACHE_FILE = 'state.sqlite';

/** Whoever finds another process writing does without. */
const BUSY_MS = 50;

const SCHEMA = `
CREATE TABLE IF NOT EXISTS head (id INTEGER PRIMARY KEY CHECK (id = 0), body TEXT NOT NULL, digest TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS closed (
  kind TEXT NOT NULL, chunk INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (kind, chunk)
) STRICT;
CREATE TABLE IF NOT EXISTS live (slot TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
`;

/** A slot that can still change, as text. */
export interface LiveRow {
  readonly slot: string;
  readonly body: string;
}

/**
 * The tables of the state cache. It need not survive a power cut: nothing is synced, and whoever reads it must be able to
 * tell when something is missing or changed. Every method may throw what SQLite throws.
 */
export class CacheFile {
  readonly #db: Database.Database;
  readonly #sql: Statements;

  private constructor(db: Database.Database) {
    this.#db = db;
    this.#sql = prepare(db);
  }

  /** @param create whether to make the file when there is none. @returns null when there is none. */
  static open(folder: string, create: boolean): CacheFile | null {
    const file = join(folder, CACHE_FILE);
    if (lstatSync(file, { throwIfNoEntry: false }) === undefined && !create) return null;
    const db = new Database(file, { timeout: BUSY_MS });
    try {
      db.pragma('journal_mode = DELETE');
      db.pragma('synchronous = OFF');
      db.pragma('trusted_schema = OFF');
      db.exec(SCHEMA);
      return new CacheFile(db);
    } catch (error) {
      db.close();
      throw error;
    }
  }

  /** Removes the file, with what SQLite may have left beside it. */
  static remove(folder: string): void {
    for (const suffix of ['', '-journal', '-wal', '-shm']) {
      rmSync(join(folder, CACHE_FILE) + suffix, { force: true });
    }
  }

  close(): void {
    this.#db.close();
  }

  /** All reads inside see one state of the file. */
  reading<T>(work: () => T): T {
    return this.#db.transaction(work).deferred();
  }

  /** All or nothing, and no other process writes meanwhile. */
  writing(work: () => void): void {
    this.#db.transaction(work).immediate();
  }

  /** The text of {@link setHead}; null when there is none, or not the one that was written. */
  head(): string | null {
    const row = this.#sql.head.get();
    return row === undefined || sha256Hex(row.body) !== row.digest ? null : row.body;
  }

  setHead(body: string): void {
    this.#sql.setHead.run(body, sha256Hex(body));
  }

  /** The chunks of one kind of closed slots, in order. */
  chunks(kind: string): IterableIterator<Buffer> {
    return this.#sql.chunks.iterate(kind);
  }

  setChunk(kind: string, chunk: number, bytes: Buffer): void {
    this.#sql.setChunk.run(kind, chunk, bytes);
  }

  live(): readonly LiveRow[] {
    return this.#sql.live.all();
  }

  liveBody(slot: string): string | null {
    return this.#sql.liveBody.get(slot) ?? null;
  }

  setLive({ slot, body }: LiveRow): void {
    this.#sql.setLive.run(slot, body);
  }

  dropLive(slot: string): void {
    this.#sql.dropLive.run(slot);
  }

  clear(): void {
    for (const table of ['head', 'closed', 'live']) this.#db.prepare(`DELETE FROM ${table}`).run();
  }
}

type Statements = ReturnType<typeof prepare>;

function prepare(db: Database.Database) {
  return {
    head: db.prepare<[], { body: string; digest: string }>('SELECT body, digest FROM head WHERE id = 0'),
    setHead: db.prepare<[string, string]>('REPLACE INTO head (id, body, digest) VALUES (0, ?, ?)'),
    chunks: db.prepare<[string], Buffer>('SELECT bytes FROM closed WHERE kind = ? ORDER BY chunk').pluck(),
    setChunk: db.prepare<[string, number, Buffer]>(
      'REPLACE INTO closed (kind, chunk, bytes) VALUES (?, ?, ?)',
    ),
    live: db.prepare<[], LiveRow>('SELECT slot, body FROM live'),
    liveBody: db.prepare<[string], string>('SELECT body FROM live WHERE slot = ?').pluck(),
    setLive: db.prepare<[string, string]>('REPLACE INTO live (slot, body) VALUES (?, ?)'),
    dropLive: db.prepare<[string]>('DELETE FROM live WHERE slot = ?'),
  };
}
