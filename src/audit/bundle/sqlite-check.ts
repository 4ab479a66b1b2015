import { createHash } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Digest } from '../../core/digest.js';
import type { ErrorCode } from '../../core/error-codes.js';
import { BoundbookError } from '../../core/errors.js';
import { writeError } from '../../core/files.js';
import { HASH_BYTES, leafHash } from '../../ledger/merkle.js';
import { assertSchema } from '../../ledger/schema.js';
import { toLedgerError } from '../../ledger/sqlite.js';
import type { Findings } from '../finding.js';
import { type Region, readRegion } from './region.js';

const COPY_BYTES = 1 << 20;
/** The header's bytes that say how the file is to be read and written; 1 is a rollback journal, 2 a write-ahead log. */
const VERSIONS_AT = 18;

/** Rows' bytes are hashed in pieces of about this size. */
const PIECE_BYTES = 1 << 18;

/** Link, leaf and body in one piece; null for a row in which one of them is not what the table declares. */
const ROWS = `SELECT seq, typeof(body) = 'blob', prev IS NULL, iif(
    typeof(leaf) = 'blob' AND length(leaf) = ${HASH_BYTES} AND typeof(body) = 'blob'
      AND (prev IS NULL OR (typeof(prev) = 'blob' AND length(prev) = ${HASH_BYTES})),
    CAST(coalesce(prev, x'') || leaf || body AS BLOB), NULL)
  FROM entry ORDER BY seq`;

/**
 * Holds the database of a bundle against its entries: the same bodies in the same order, with their links and leaves, no
 * object, the tables of a ledger. It is opened as a private copy, so that nothing that lies beside it is taken for a part of
 * it, and nothing of its own schema runs.
 *
 * @param entries digest of `entries.jsonl`
 * @param scratch an empty folder for the copy; what is left there is the caller's to remove
 * @returns what is wrong with it; null when nothing is
 * @throws {BoundbookError} DISK_FULL, FILE_UNWRITABLE: faults of this host.
 */
export function sqliteFault(region: Region, entries: Digest, scratch: string): string | null {
  try {
    const header = Buffer.alloc(VERSIONS_AT + 2);
    readRegion(region, 0, header);
    if (header[VERSIONS_AT] !== 1 || header[VERSIONS_AT + 1] !== 1) {
      return 'it is no database with a rollback journal';
    }
    return withCopy(region, scratch, (db) => compare(db, region.path, entries));
  } catch (error) {
    const typed = toLedgerError(error, region.path, 'read');
    if (OWN_FAULTS.has(typed.code)) throw typed;
    return typed.message;
  }
}

/** {@link sqliteFault} with a folder of its own, as a finding. */
export function checkSqlite(region: Region, entries: Digest, findings: Findings): void {
  const scratch = mkdtempSync(join(tmpdir(), 'boundbook-audit-'));
  try {
    noteSqliteFault(region.path, sqliteFault(region, entries, scratch), findings);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

export function noteSqliteFault(file: string, message: string | null, findings: Findings): void {
  if (message !== null) findings.add({ code: 'BUNDLE_COPY', where: { file }, message });
}

/** Not the bundle's fault but of this host, or of this program. */
const OWN_FAULTS: ReadonlySet<ErrorCode> = new Set(['DISK_FULL', 'FILE_UNWRITABLE', 'INTERNAL']);

function compare(db: Database.Database, path: string, entries: Digest): string | null {
  assertSchema(db, path);
  const rows = db.prepare<[], readonly unknown[]>(ROWS).raw();
  const lines = new LinesHash();
  let last: Buffer | null = null;
  let next = 0;
  for (const [seq, isBlob, isFirst, bytes] of rows.iterate()) {
    if (seq !== next || isBlob !== 1) return `its row ${next} is not that of an entry`;
    const due: Buffer | null = Buffer.isBuffer(bytes) ? linkedLeaf(bytes, isFirst === 1, last) : null;
    if (due === null || !Buffer.isBuffer(bytes)) return `link or leaf of its row ${next} do not follow`;
    lines.add(bytes, isFirst === 1 ? HASH_BYTES : 2 * HASH_BYTES);
    last = due;
    next++;
  }
  if (lines.digest() !== entries) return 'its entries are not those of entries.jsonl';
  const objects = db.prepare<[], number>('SELECT count(*) FROM object').pluck().get();
  return objects === 0 ? null : `it holds ${String(objects)} objects`;
}

/** The leaf of a row's body, when the row has it and names the leaf before; else null. */
function linkedLeaf(row: Buffer, isFirst: boolean, before: Buffer | null): Buffer | null {
  const at = isFirst ? 0 : HASH_BYTES;
  const due = leafHash(row.subarray(at + HASH_BYTES));
  const linked = isFirst ? before === null : before !== null && before.compare(row, 0, HASH_BYTES) === 0;
  return linked && due.compare(row, at, at + HASH_BYTES) === 0 ? due : null;
}

/** Hashes lines, many at a time. */
class LinesHash {
  readonly #hash = createHash('sha256');
  readonly #piece = Buffer.allocUnsafe(PIECE_BYTES);
  #filled = 0;

  /** A line without its line feed: the bytes from a place on. */
  add(bytes: Buffer, from: number): void {
    const length = bytes.length - from;
    if (this.#filled + length + 1 > PIECE_BYTES) this.#flush();
    if (length + 1 > PIECE_BYTES) {
      this.#hash.update(bytes.subarray(from)).update('\n');
      return;
    }
    bytes.copy(this.#piece, this.#filled, from);
    this.#filled += length;
    this.#piece[this.#filled++] = 0x0a;
  }

  digest(): Digest {
    this.#flush();
    return `sha256:${this.#hash.digest('hex')}`;
  }

  #flush(): void {
    this.#hash.update(this.#piece.subarray(0, this.#filled));
    this.#filled = 0;
  }
}

function withCopy<T>(region: Region, folder: string, use: (db: Database.Database) => T): T {
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
