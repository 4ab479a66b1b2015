import { createHash } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Digest } from '../../core/digest.js';
import type { ErrorCode } from '../../core/error-codes.js';
import { BoundbookError } from '../../core/errors.js';
import { writeError } from '../../core/files.js';
import { leafHash } from '../../ledger/merkle.js';
import { assertSchema } from '../../ledger/schema.js';
import { toLedgerError } from '../../ledger/sqlite.js';
import type { Findings } from '../finding.js';
import { type Region, readRegion } from './region.js';

const COPY_BYTES = 1 << 20;
/** The header's bytes that say how the file is to be read and written; 1 is a rollback journal, 2 a write-ahead log. */
const VERSIONS_AT = 18;

/**
 * Holds the database of a bundle against its entries: the same bodies in the same order, with their links and leaves, no
 * object, the tables of a ledger. It is opened as a private copy, so that nothing that lies beside it is taken for a part of
 * it, and nothing of its own schema runs.
 *
 * @param entries digest of `entries.jsonl`
 */
export function checkSqlite(region: Region, entries: Digest, findings: Findings): void {
  const message = faultOf(region, entries);
  if (message !== null) findings.add({ code: 'BUNDLE_COPY', where: { file: region.path }, message });
}

function faultOf(region: Region, entries: Digest): string | null {
  try {
    const header = Buffer.alloc(VERSIONS_AT + 2);
    readRegion(region, 0, header);
    if (header[VERSIONS_AT] !== 1 || header[VERSIONS_AT + 1] !== 1) {
      return 'it is no database with a rollback journal';
    }
    return withCopy(region, (db) => compare(db, region.path, entries));
  } catch (error) {
    const typed = toLedgerError(error, region.path, 'read');
    if (OWN_FAULTS.has(typed.code)) throw typed;
    return typed.message;
  }
}

/** Not the bundle's fault but of this host, or of this program. */
const OWN_FAULTS: ReadonlySet<ErrorCode> = new Set(['DISK_FULL', 'FILE_UNWRITABLE', 'INTERNAL']);

function compare(db: Database.Database, path: string, entries: Digest): string | null {
  assertSchema(db, path);
  const rows = db
    .prepare<[], readonly unknown[]>('SELECT seq, prev, leaf, body FROM entry ORDER BY seq')
    .raw();
  const lines = createHash('sha256');
  let last: Buffer | null = null;
  let next = 0;
  for (const [seq, prev, leaf, body] of rows.iterate()) {
    if (seq !== next || !Buffer.isBuffer(body)) return `its row ${next} is not that of an entry`;
    const due = leafHash(body);
    if (!isSame(prev, last) || !isSame(leaf, due)) return `link or leaf of its row ${next} do not follow`;
    lines.update(body).update('\n');
    last = due;
    next++;
  }
  if (`sha256:${lines.digest('hex')}` !== entries) return 'its entries are not those of entries.jsonl';
  const objects = db.prepare<[], number>('SELECT count(*) FROM object').pluck().get();
  return objects === 0 ? null : `it holds ${String(objects)} objects`;
}

function isSame(value: unknown, due: Buffer | null): boolean {
  return due === null ? value === null : Buffer.isBuffer(value) && due.equals(value);
}

function withCopy<T>(region: Region, use: (db: Database.Database) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'boundbook-audit-'));
  try {
    const copy = join(folder, 'copy.sqlite');
    copyRegion(region, copy);
    const db = new Database(copy, { readonly: true, fileMustExist: true });
    try {
      for (const setting of [
        'query_only = ON',
        'trusted_schema = OFF',
        'cell_size_check = ON',
        'mmap_size = 0',
      ]) {
        db.pragma(setting);
      }
      return use(db);
    } finally {
      db.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function copyRegion(region: Region, path: string): void {
  const buffer = Buffer.allocUnsafe(COPY_BYTES);
  try {
    const file = openSync(path, 'wx', 0o600);
    try {
      for (let at = 0; at < region.size; ) {
        const count = readRegion(region, at, buffer);
        writeSync(file, buffer, 0, count);
        at += count;
      }
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw error instanceof BoundbookError ? error : writeError(path, error);
  }
}
