import { join } from 'node:path';
import type Database from 'better-sqlite3';
import { type Digest, hexOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { assertAnchored, readAnchor } from './anchor.js';
import { type ChainFault, ChainVerifier, type LedgerRecord, type LedgerRow } from './chain.js';
import { decodeEntry, MAX_BODY_BYTES } from './codec.js';
import type { Entry, EntryType } from './entries/entry.js';
import { CompactRange, HASH_BYTES } from './merkle.js';
import { assertContent, ObjectFolder } from './objects.js';
import { LEDGER_FILE } from './schema.js';
import { openLedgerFile, toLedgerError } from './sqlite.js';

/** The state of a ledger that is worth publishing: whoever holds it can tell later whether entries are missing. */
export interface LedgerHead {
  /** Number of entries. */
  readonly size: number;
  /** Leaf hash of the last entry, 64 hexadecimal digits; null when there is none. */
  readonly leaf: string | null;
  /** Root of the RFC 6962 tree over all leaves, 64 hexadecimal digits. */
  readonly root: string;
  /** Time of the last entry. */
  readonly time: string | null;
}

/** Rows are read in pages, so that no read transaction stays open and memory is bounded. */
const PAGE_ROWS = 256;

/** A damaged file can hand out anything in any column, whatever the table declares. */
type RawRow = readonly unknown[];

/** Reads a ledger: entries, objects, head. Never writes, never creates. */
export class LedgerReader {
  readonly folder: string;
  readonly file: string;
  protected readonly db: Database.Database;
  readonly #mode: 'read' | 'write';
  readonly #objects: ObjectFolder;
  readonly #page: Database.Statement<[number, number], RawRow>;
  readonly #leaves: Database.Statement<[number, number], unknown>;
  readonly #object: Database.Statement<[Buffer], unknown>;
  readonly #range = new CompactRange();

  protected constructor(folder: string, db: Database.Database, mode: 'read' | 'write') {
    this.folder = folder;
    this.file = join(folder, LEDGER_FILE);
    this.db = db;
    this.#mode = mode;
    this.#objects = new ObjectFolder(folder);
    // A body beyond the limit is not even read: it can only come from a file that was tampered with.
    this.#page = db
      .prepare<[number, number], RawRow>(
        `SELECT seq, prev, leaf, iif(length(body) <= ${MAX_BODY_BYTES}, body, NULL) FROM entry WHERE seq >= ? ORDER BY seq LIMIT ?`,
      )
      .raw();
    this.#leaves = db
      .prepare<[number, number], unknown>('SELECT leaf FROM entry WHERE seq >= ? ORDER BY seq LIMIT ?')
      .pluck();
    this.#object = db.prepare<[Buffer], unknown>('SELECT bytes FROM object WHERE digest = ?').pluck();
  }

  /**
   * Opens an existing ledger read-only.
   *
   * @param anchored false: a ledger that is shorter than its anchor is opened as well
   * @throws {BoundbookError} LEDGER_NOT_FOUND, LEDGER_FOREIGN, LEDGER_DAMAGED, LEDGER_BUSY, FILE_NOT_REGULAR,
   * FILE_UNREADABLE.
   */
  static open(folder: string, anchored = true): LedgerReader {
    const reader = new LedgerReader(folder, openLedgerFile(folder, 'read'), 'read');
    try {
      if (anchored) reader.assertAnchor();
      return reader;
    } catch (error) {
      reader.closeQuietly();
      throw toLedgerError(error, reader.file, 'read');
    }
  }

  get isOpen(): boolean {
    return this.db.open;
  }

  /**
   * The rows as they lie there, unverified, in ascending position. For the audit, which lists every fault.
   *
   * @throws {BoundbookError} LEDGER_DAMAGED with the position up to which the file could be read.
   */
  *rows(from = 0): Generator<LedgerRow> {
    let next = from;
    for (;;) {
      const page = this.#read(next, () => this.#page.all(next, PAGE_ROWS));
      for (const raw of page) {
        const row = this.#toRow(raw, next);
        yield row;
        next = row.seq + 1;
      }
      if (page.length < PAGE_ROWS) return;
    }
  }

  /**
   * The entries in order, each verified against the one before. From a later position on, the entry before is trusted.
   *
   * @throws {BoundbookError} LEDGER_DAMAGED at the first break of the chain, with position and reason.
   */
  *entries(from = 0): Generator<LedgerRecord> {
    const verifier = new ChainVerifier(this.#tailBefore(from));
    for (const row of this.rows(from)) {
      const { record, faults } = verifier.check(row);
      if (record === null) throw damageOf(this.file, faults[0] ?? { seq: row.seq, what: 'unreadable' });
      yield record;
    }
  }

  /** The entry at a position; null when there is none. @throws {BoundbookError} LEDGER_DAMAGED. */
  entryAt(seq: number): Entry | null {
    const row = this.rowAt(seq);
    if (row === null) return null;
    const { record, faults } = new ChainVerifier({ size: seq, leaf: row.prev, time: null }).check(row);
    if (record === null) throw damageOf(this.file, faults[0] ?? { seq, what: 'unreadable' });
    return record.entry;
  }

  /**
   * The leaf hashes from one position to before another, as stored.
   *
   * @throws {BoundbookError} LEDGER_DAMAGED.
   */
  *leaves(from = 0, to = Number.POSITIVE_INFINITY): Generator<Buffer> {
    for (let next = from; next < to; ) {
      const limit = Math.min(PAGE_ROWS, to - next);
      const page = this.#read(next, () => this.#leaves.all(next, limit));
      for (const leaf of page) {
        if (!isHash(leaf)) throw damageOf(this.file, { seq: next, what: 'the leaf is no hash' });
        yield leaf;
        next++;
      }
      if (page.length < limit) return;
    }
  }

  /** Size, last leaf, root and time of what the file holds now. The leaves are taken as stored. */
  head(): LedgerHead {
    for (const leaf of this.leaves(this.#range.size)) this.#range.append(leaf);
    const size = this.#range.size;
    const last = this.rowAt(size - 1);
    const decoded = last === null ? null : decodeEntry(last.body);
    return {
      size,
      leaf: last?.leaf.toString('hex') ?? null,
      root: this.#range.root().toString('hex'),
      time: decoded?.ok === true ? decoded.entry.time : null,
    };
  }

  /**
   * The bytes of an object, checked against the digest.
   *
   * @throws {BoundbookError} OBJECT_MISSING, OBJECT_ALTERED, or what reading the file gave.
   */
  getObject(digest: Digest): Buffer {
    const bytes = this.findObject(digest);
    if (bytes !== null) return bytes;
    throw objectLost(digest);
  }

  /** {@link getObject}, with null for an object that is not there. */
  findObject(digest: Digest): Buffer | null {
    const inline = this.#read(null, () => this.#object.get(Buffer.from(hexOf(digest), 'hex')));
    if (inline === undefined) return this.#objects.read(digest);
    if (!Buffer.isBuffer(inline)) throw objectLost(digest);
    assertContent(digest, inline);
    return inline;
  }

  /** Whether an entry of one of these types lies at a position or behind it; true at times when none does. */
  mayHoldSince(seq: number, types: readonly EntryType[]): boolean {
    // Canonical JSON spells a member in one way, and a quote inside a string is escaped.
    const marks = types.map((type) => Buffer.from(`"type":"${type}"`));
    const where = marks.map(() => 'instr(body, ?)').join(' OR ');
    const query = this.db.prepare<[number, ...Buffer[]], number>(
      `SELECT EXISTS (SELECT 1 FROM entry WHERE seq >= ? AND (${where}))`,
    );
    return this.#read(seq, () => query.pluck().get(seq, ...marks)) !== 0;
  }

  /** Number of entries in the file now. */
  countEntries(): number {
    return this.#read(
      null,
      () => this.db.prepare<[], number>('SELECT coalesce(max(seq) + 1, 0) FROM entry').pluck().get() ?? 0,
    );
  }

  close(): void {
    this.db.close();
  }

  /** @throws {BoundbookError} LEDGER_DAMAGED when the ledger is shorter than the anchor beside it says. */
  protected assertAnchor(): void {
    const anchor = readAnchor(this.folder);
    if (anchor === null) return;
    const at = this.rowAt(anchor.size - 1)?.leaf.toString('hex') ?? null;
    assertAnchored(anchor, { size: this.countEntries(), leaf: at }, this.file);
  }

  protected closeQuietly(): void {
    try {
      this.db.close();
    } catch {
      // The error that led here says more.
    }
  }

  #tailBefore(from: number): { size: number; leaf: Buffer | null; time: string | null } {
    if (from === 0) return { size: 0, leaf: null, time: null };
    return { size: from, leaf: this.rowAt(from - 1)?.leaf ?? null, time: null };
  }

  /** One row as it lies there, unverified; null when there is none. @throws {BoundbookError} LEDGER_DAMAGED. */
  rowAt(seq: number): LedgerRow | null {
    const [raw] = this.#read(seq, () => this.#page.all(seq, 1));
    const row = raw === undefined ? null : this.#toRow(raw, seq);
    return row?.seq === seq ? row : null;
  }

  #toRow([seq, prev, leaf, body]: RawRow, due: number): LedgerRow {
    const fault = (what: string): BoundbookError => damageOf(this.file, { seq: due, what });
    if (typeof seq !== 'number') throw fault('the position is no number');
    if (!isHash(leaf) || !(prev === null || isHash(prev))) throw fault('the leaf or the link is no hash');
    if (!Buffer.isBuffer(body)) throw fault(`the body is missing or has more than ${MAX_BODY_BYTES} bytes`);
    return { seq, prev, leaf, body };
  }

  #read<T>(seq: number | null, query: () => T): T {
    try {
      return query();
    } catch (error) {
      const typed = toLedgerError(error, this.file, this.#mode);
      if (typed.code !== 'LEDGER_DAMAGED' || seq === null) throw typed;
      throw new BoundbookError(typed.code, `${typed.message}; entries before ${seq} can be read`, {
        hint: typed.hint ?? '',
        evidence: { seq, what: 'unreadable' },
        cause: error,
      });
    }
  }
}

function isHash(value: unknown): value is Buffer {
  return Buffer.isBuffer(value) && value.length === HASH_BYTES;
}

function objectLost(digest: Digest): BoundbookError {
  return new BoundbookError('OBJECT_MISSING', `the ledger has no object ${digest}`, {
    hint: 'An object that an entry names belongs to the ledger. Restore the folder from a whole copy.',
    evidence: { digest },
  });
}

export function damageOf(file: string, fault: ChainFault): BoundbookError {
  return new BoundbookError('LEDGER_DAMAGED', `${file} is damaged at entry ${fault.seq}: ${fault.what}`, {
    hint: 'Keep the file as it is. `boundbook audit` lists every fault; entries before this one are sound.',
    evidence: { seq: fault.seq, what: fault.what },
  });
}
