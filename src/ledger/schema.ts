import type Database from 'better-sqlite3';
import { BoundbookError } from '../core/errors.js';
import { MAX_BODY_BYTES } from './codec.js';

/** The name of the SQLite file in a ledger's folder. */
export const LEDGER_FILE = 'ledger.sqlite';

/** `BBOK`, in the file's header: tells a ledger from any other SQLite file. */
export const APPLICATION_ID = 0x42424f4b;

/** Version of the tables below, in the file's header. */
export const SCHEMA_VERSION = 1;

/** Objects up to this size lie in the table `object`, larger ones are files. */
export const MAX_INLINE_BYTES = 16_384;

/**
 * The tables and the triggers that make them append-only (law 4). `INSERT OR REPLACE` deletes without firing a
 * DELETE trigger, so the guards stand before the insert: only the next entry, only a new object. The rowid is part
 * of the object guard because a replace can also collide there.
 *
 * Triggers stop accidents. Who can drop them is found by {@link assertSchema}, and by the hashes.
 */
const STATEMENTS: Readonly<Record<string, string>> = {
  entry: `CREATE TABLE entry (
  seq INTEGER PRIMARY KEY CHECK (seq >= 0),
  prev BLOB CHECK (prev IS NULL OR length(prev) = 32),
  leaf BLOB NOT NULL CHECK (length(leaf) = 32),
  body BLOB NOT NULL CHECK (length(body) <= ${MAX_BODY_BYTES})
) STRICT`,
  entry_insert: `CREATE TRIGGER entry_insert BEFORE INSERT ON entry
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq) + 1, 0) FROM entry)
  OR NEW.prev IS NOT (SELECT leaf FROM entry ORDER BY seq DESC LIMIT 1)
BEGIN SELECT RAISE(ABORT, 'the ledger takes the next entry only'); END`,
  entry_update: `CREATE TRIGGER entry_update BEFORE UPDATE ON entry
BEGIN SELECT RAISE(ABORT, 'an entry is never changed'); END`,
  entry_delete: `CREATE TRIGGER entry_delete BEFORE DELETE ON entry
BEGIN SELECT RAISE(ABORT, 'an entry is never removed'); END`,
  object: `CREATE TABLE object (
  digest BLOB NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
  bytes BLOB NOT NULL CHECK (length(bytes) <= ${MAX_INLINE_BYTES})
) STRICT`,
  object_insert: `CREATE TRIGGER object_insert BEFORE INSERT ON object
WHEN EXISTS (SELECT 1 FROM object WHERE digest = NEW.digest)
  OR EXISTS (SELECT 1 FROM object WHERE rowid = NEW.rowid)
BEGIN SELECT RAISE(ABORT, 'an object is never replaced'); END`,
  object_update: `CREATE TRIGGER object_update BEFORE UPDATE ON object
BEGIN SELECT RAISE(ABORT, 'an object is never changed'); END`,
  object_delete: `CREATE TRIGGER object_delete BEFORE DELETE ON object
BEGIN SELECT RAISE(ABORT, 'an object is never removed'); END`,
};

/** Makes an empty database a ledger. */
export function createSchema(db: Database.Database): void {
  db.pragma(`application_id = ${APPLICATION_ID}`);
  db.pragma(`user_version = ${SCHEMA_VERSION}`);
  for (const statement of Object.values(STATEMENTS)) db.exec(statement);
}

/**
 * Checks that an open database is a ledger with exactly the tables and triggers of this version.
 *
 * @throws {BoundbookError} LEDGER_FOREIGN for another application or version; LEDGER_DAMAGED when a table or trigger
 * is missing, changed or added.
 */
export function assertSchema(db: Database.Database, file: string): void {
  const id = db.pragma('application_id', { simple: true });
  const tables = db
    .prepare(
      "SELECT name, sql FROM sqlite_schema WHERE NOT (type = 'index' AND name = 'sqlite_autoindex_object_1' AND sql IS NULL)",
    )
    .all();
  if (id === 0 && tables.length === 0) {
    throw new BoundbookError('LEDGER_DAMAGED', `${file} is a database without any table`, {
      hint: 'A copy of the main file without its -wal file looks like this. Copy the whole folder while nothing runs.',
    });
  }
  if (id !== APPLICATION_ID) {
    throw new BoundbookError(
      'LEDGER_FOREIGN',
      `${file} is a SQLite file of another program (application id ${String(id)})`,
      {
        hint: 'Check the path. A ledger is made by `boundbook run` only.',
        evidence: { expected: APPLICATION_ID, actual: Number(id) },
      },
    );
  }
  const version = db.pragma('user_version', { simple: true });
  if (version !== SCHEMA_VERSION) {
    throw new BoundbookError(
      'LEDGER_FOREIGN',
      `${file} has ledger version ${String(version)}; this program knows ${SCHEMA_VERSION}`,
      {
        hint: 'Use the release of Boundbook that wrote it.',
        evidence: { expected: SCHEMA_VERSION, actual: Number(version) },
      },
    );
  }
  const differing = schemaDifferences(tables);
  if (differing.length > 0) {
    throw new BoundbookError(
      'LEDGER_DAMAGED',
      `${file} has other tables or triggers than a ledger: ${differing.slice(0, 20).join(', ')}`,
      {
        hint: 'Something other than Boundbook has changed this file. Restore it from a copy, and audit the copy.',
        evidence: { differing: differing.slice(0, 20) },
      },
    );
  }
}

/** A name may occur twice, as those of a table and of a trigger: each must be what is declared, and be there once. */
function schemaDifferences(rows: readonly unknown[]): string[] {
  const found = new Map<string, (string | null)[]>(Object.keys(STATEMENTS).map((name) => [name, []]));
  for (const { name, sql } of rows as readonly { readonly name: string; readonly sql: string | null }[]) {
    found.set(name, [...(found.get(name) ?? []).slice(0, 1), sql]);
  }
  const differing = [...found].filter(([name, sql]) => sql.length !== 1 || sql[0] !== STATEMENTS[name]);
  return differing.map(([name]) => name.slice(0, 100)).sort();
}
