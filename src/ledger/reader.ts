import { join } from 'node:path';
import type Database from 'better-sqlite3';
import { type Digest, hexOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { assertAnchored, readAnchor } from './anchor.js';
import { type ChainFault, ChainVerifier, type LedgerRecord, type LedgerRow } from './chain.js';
import { decodeEntry, MAX_BODY_BYTES } from './codec.js';
import { CompactRange } from './merkle.js';
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

type RawRow = [seq: number, prev: Buffer | null, leaf: Buffer, body: Buffer | null];

/** Reads a ledger: entries, objects, head. Never writes, never creates. */
export class LedgerReader {
  readonly folder: string;
  readonly file: string;
  protected readonly db: Database.Database;
  readonly #mode: 'read' | 'write';
  readonly #objects: ObjectFolder;
  readonly #page: Database.Statement<[number, number], RawRow>;
  readonly #leaves: Database.Statement<[number, number], Buffer>;
  readonly #object: Database.Statement<[Buffer], Buffer>;
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
      .prepare<[number, number], Buffer>('SELECT leaf FROM entry WHERE seq >= ? ORDER BY seq LIMIT ?')
      .pluck();
    this.#object = db.prepare<[Buffer], Buffer>('SELECT bytes FROM object WHERE digest = ?').pluck();
  }

  /**
   * Opens an existing ledger read-only.
   *
   * @throws {BoundbookError} LEDGER_NOT_FOUND, LEDGER_FOREIGN, LEDGER_DAMAGED, LEDGER_BUSY, FILE_NOT_REGULAR,
   * FILE_UNREADABLE.
   */
  static open(folder: string): LedgerReader {
    const reader = new LedgerReader(folder, openLedgerFile(folder, 'read'), 'read');
    try {
      reader.assertAnchor();
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
      for (const [seq, prev, leaf, body] of page) {
        if (body === null)
          throw damageOf(this.file, { seq, what: `the body has more than ${MAX_BODY_BYTES} bytes` });
        yield { seq, prev, leaf, body };
        next = seq + 1;
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

  /** Size, last leaf, root and time of what the file holds now. The leaves are taken as stored. */
  head(): LedgerHead {
    let leaf: Buffer | null = null;
    for (;;) {
      const leaves = this.#read(this.#range.size, () => this.#leaves.all(this.#range.size, PAGE_ROWS));
      for (const each of leaves) this.#range.append(each);
      leaf = leaves.at(-1) ?? leaf;
      if (leaves.length < PAGE_ROWS) break;
    }
    const size = this.#range.size;
    const [last] = this.#read(size, () => this.#page.all(size - 1, 1));
    const decoded = last?.[3] == null ? null : decodeEntry(last[3]);
    return {
      size,
      leaf: last?.[2].toString('hex') ?? null,
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
    throw new BoundbookError('OBJECT_MISSING', `the ledger ${this.folder} has no object ${digest}`, {
      hint: 'An object that an entry names belongs to the ledger. Restore the folder from a whole copy.',
      evidence: { digest },
    });
  }

  /** {@link getObject}, with null for an object that is not there. */
  findObject(digest: Digest): Buffer | null {
    const inline = this.#read(null, () => this.#object.get(Buffer.from(hexOf(digest), 'hex')));
    if (inline === undefined) return this.#objects.read(digest);
    assertContent(digest, inline);
    return inline;
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
    const [row] = this.#read(null, () => this.#page.all(anchor.size - 1, 1));
    const at = row?.[0] === anchor.size - 1 ? row[2].toString('hex') : null;
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
    const [row] = this.#read(from, () => this.#page.all(from - 1, 1));
    return { size: from, leaf: row?.[2] ?? null, time: null };
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

export function damageOf(file: string, fault: ChainFault): BoundbookError {
  return new BoundbookError('LEDGER_DAMAGED', `${file} is damaged at entry ${fault.seq}: ${fault.what}`, {
    hint: 'Keep the file as it is. `boundbook audit` lists every fault; entries before this one are sound.',
    evidence: { seq: fault.seq, what: fault.what },
  });
}
