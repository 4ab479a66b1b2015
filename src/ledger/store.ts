import type Database from 'better-sqlite3';
import { BoundbookError, systemCode } from '../core/errors.js';
import type { FileSystemProbe } from '../core/statfs.js';
import { type Anchor, replaceAnchor, writeAnchor } from './anchor.js';
import { ChainVerifier, type LedgerRecord } from './chain.js';
import type { Entry, EntryDraft } from './entries/entry.js';
import { makeLedgerFile, type Opening } from './new-ledger.js';
import { type LedgerObject, ObjectFolder } from './objects.js';
import { damageOf, LedgerReader } from './reader.js';
import { MAX_INLINE_BYTES } from './schema.js';
import { openLedgerFile, toLedgerError } from './sqlite.js';
import { prepareStatements, type Statements } from './statements.js';
import { encodeAfter, NO_ENTRIES, type Tail, tailAfter } from './tail.js';

export interface StoreOptions {
  /** UTC, RFC 3339 with milliseconds. The store never lets it run backwards. */
  readonly now: () => string;
  /**
   * Called once for every entry in ledger order: on opening for all that are there, then for those of other processes
   * as soon as they are seen, and for own ones after their commit. Without it, opening trusts the last entry.
   */
  readonly follow?: (record: LedgerRecord) => void;
  /** With `follow`: the entries that the follower knows already. They are trusted, and not read again. */
  readonly after?: Tail;
  /** Called when entries of this store are durable and were followed; must not throw. */
  readonly committed?: (records: readonly LedgerRecord[]) => void;
  /** How long to wait for another process's transaction, in milliseconds. */
  readonly busyMs?: number;
  /** Looks at the file system below the folder; tests hand in another. */
  readonly probe?: FileSystemProbe;
  /** False: the anchor beside the folder is neither asked nor kept, until {@link LedgerStore.replaceAnchor} is called. */
  readonly anchored?: boolean;
}

/** What a decision inside a transaction asks to append. */
export interface Decision<T> {
  readonly drafts: readonly EntryDraft[];
  readonly objects?: readonly LedgerObject[];
  readonly result: T;
}

/**
 * Decides on what to append, knowing every entry of other processes; `tail` holds those seen just now. `own` is what this
 * process appends before it in the same transaction and the follower has not seen yet.
 */
export type Decide<T> = (tail: readonly Entry[], own: readonly LedgerRecord[]) => Decision<T>;

export interface Appended<T> {
  readonly entries: readonly Entry[];
  readonly result: T;
}

/** The longest time between a commit and the anchor that covers it, while commits go on. */
const ANCHOR_EVERY_MS = 1_000;

/**
 * The one writer of a process to a ledger (DESIGN §8). Every method that appends is one `BEGIN IMMEDIATE`
 * transaction and returns after its commit is on disk.
 *
 * After a fault that leaves the file's state unknown (input/output error, corruption) every further write is refused:
 * a repeated fsync can succeed although the data is gone, so only a new process that reads the file may go on.
 */
export class LedgerStore extends LedgerReader {
  readonly objectFolder: ObjectFolder;
  readonly #sql: Statements;
  readonly #now: () => string;
  readonly #follow: ((record: LedgerRecord) => void) | undefined;
  readonly #committed: ((records: readonly LedgerRecord[]) => void) | undefined;
  /** The last entry this store knows of. */
  #tail: Tail = NO_ENTRIES;
  #failure: BoundbookError | null = null;
  #anchored = performance.now();
  #keepsAnchor: boolean;

  private constructor(folder: string, db: Database.Database, options: StoreOptions) {
    super(folder, db, 'write');
    this.objectFolder = new ObjectFolder(folder);
    this.#sql = prepareStatements(db);
    this.#now = options.now;
    this.#follow = options.follow;
    this.#keepsAnchor = options.anchored ?? true;
    this.#committed = options.committed;
  }

  /**
   * Makes a new ledger with its first entry. The file appears under its name complete and durable, or not at all.
   *
   * @throws {BoundbookError} FILE_EXISTS when there is one already; LEDGER_ON_NETWORK, DISK_FULL, FILE_UNWRITABLE.
   */
  static async create(folder: string, opening: Opening, options: StoreOptions): Promise<LedgerStore> {
    await makeLedgerFile(folder, opening, options);
    return LedgerStore.openWriter(folder, options);
  }

  /**
   * Opens an existing ledger for appending. With `follow`, the chain is verified from its first entry, or behind `after`.
   *
   * @throws {BoundbookError} as {@link openLedgerFile}; LEDGER_DAMAGED at the first break of the chain, or when the
   * ledger is shorter than it was.
   */
  static openWriter(folder: string, options: StoreOptions): LedgerStore {
    const store = new LedgerStore(folder, openLedgerFile(folder, 'write', options), options);
    try {
      if (options.anchored !== false) store.assertAnchor();
      if (options.follow === undefined) {
        store.#trustLast();
        return store;
      }
      store.#tail = options.after ?? NO_ENTRIES;
      // Nobody is there yet to be told of what is replayed, and a whole ledger would fill the memory.
      store.#readForeign(false);
      return store;
    } catch (error) {
      store.closeQuietly();
      throw toLedgerError(error, store.file, 'write');
    }
  }

  /** Opens an existing ledger read-only. @throws {BoundbookError} as {@link LedgerReader.open}. */
  static openReader(folder: string): LedgerReader {
    return LedgerReader.open(folder);
  }

  /** Whether it is open and no fault has left the file's state unknown. */
  get isUsable(): boolean {
    return this.isOpen && this.#failure === null;
  }

  /** Number of entries this store knows of. */
  get size(): number {
    return this.#tail.size;
  }

  /**
   * Appends entries and objects in one transaction. Objects above 16 KiB are durable files before it begins.
   *
   * @throws {BoundbookError} ENTRY_REFUSED; DISK_FULL and LEDGER_BUSY (nothing was appended, the store stays usable);
   * LEDGER_DAMAGED (the store refuses all further writes).
   */
  append(drafts: readonly EntryDraft[], objects: readonly LedgerObject[] = []): readonly Entry[] {
    return this.transact(() => ({ drafts, objects, result: undefined })).entries;
  }

  /**
   * Lets `decide` see what other processes appended and appends what it returns, atomically across processes.
   * What `decide` throws is thrown on, and nothing is appended.
   *
   * @throws {BoundbookError} as {@link append}.
   */
  transact<T>(decide: Decide<T>): Appended<T> {
    const [outcome] = this.transactAll([decide]);
    if (outcome === undefined) throw new BoundbookError('INTERNAL', 'a transaction without an outcome');
    if (!outcome.ok) throw outcome.error;
    return outcome.appended;
  }

  /**
   * Several decisions in one transaction, each seeing the same tail. One that throws appends nothing and does not
   * hinder the others; a fault of the transaction itself is thrown and concerns all.
   */
  transactAll<T>(decisions: readonly Decide<T>[]): readonly Outcome<T>[] {
    this.#assertUsable();
    const own: LedgerRecord[] = [];
    let outcomes: Outcome<T>[];
    try {
      this.#sql.begin.run();
      const tail = this.#readForeign();
      outcomes = decisions.map((decide) => this.#decideOne(decide, tail, own));
      this.#sql.commit.run();
    } catch (error) {
      throw this.#fail(error);
    }
    for (const record of own) this.#deliver(record);
    if (own.length > 0) this.#committed?.(own);
    this.#anchorNow(ANCHOR_EVERY_MS);
    return outcomes;
  }

  /** Reads what other processes appended and hands it to the follower. @returns those entries. */
  refresh(): readonly Entry[] {
    try {
      return this.#readForeign();
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** Makes the anchor say what is here now, whatever it said. @throws {BoundbookError} DISK_FULL, FILE_UNWRITABLE. */
  replaceAnchor(): void {
    const anchor = this.#anchor();
    if (anchor !== null) replaceAnchor(this.folder, anchor);
    this.#keepsAnchor = true;
  }

  /** Closes the file and leaves the anchor of its last state. */
  override close(): void {
    if (!this.isOpen) return;
    if (this.#failure === null) this.#anchorNow(0);
    super.close();
  }

  #decideOne<T>(decide: Decide<T>, tail: readonly Entry[], own: LedgerRecord[]): Outcome<T> {
    let decision: Decision<T>;
    let records: readonly LedgerRecord[];
    try {
      decision = decide(tail, own);
      records = this.#encode(decision.drafts, own.at(-1));
      for (const object of decision.objects ?? []) {
        if (object.bytes.length > MAX_INLINE_BYTES) this.objectFolder.writeSync(object);
      }
    } catch (error) {
      return { ok: false, error };
    }
    // From here on a fault concerns the whole transaction.
    for (const object of decision.objects ?? []) {
      if (object.bytes.length <= MAX_INLINE_BYTES) this.#sql.insertObject(object);
    }
    for (const record of records) this.#sql.insertEntry(record);
    own.push(...records);
    return { ok: true, appended: { entries: records.map(({ entry }) => entry), result: decision.result } };
  }

  #encode(drafts: readonly EntryDraft[], last: LedgerRecord | undefined): readonly LedgerRecord[] {
    let tail = last === undefined ? this.#tail : tailAfter(last);
    return drafts.map((draft) => {
      const record = encodeAfter(draft, tail, this.#now);
      tail = tailAfter(record);
      return record;
    });
  }

  /** @param keep whether to return the entries, besides handing them to the follower */
  #readForeign(keep = true): readonly Entry[] {
    const last = this.#sql.lastSeq();
    if (last === this.#tail.size - 1) return [];
    if (last < this.#tail.size - 1) {
      throw damageOf(this.file, {
        seq: last + 1,
        what: `entries up to ${this.#tail.size - 1} were here and are gone`,
      });
    }
    const verifier = new ChainVerifier(this.#tail);
    const entries: Entry[] = [];
    for (const row of this.rows(this.#tail.size)) {
      const { record, faults } = verifier.check(row);
      if (record === null) throw damageOf(this.file, faults[0] ?? { seq: row.seq, what: 'unreadable' });
      this.#deliver(record);
      if (keep) entries.push(record.entry);
    }
    return entries;
  }

  /** Advances before the call, so that nothing is handed out twice even if the follower throws. */
  #deliver(record: LedgerRecord): void {
    this.#tail = tailAfter(record);
    try {
      this.#follow?.(record);
    } catch (error) {
      throw this.#fail(error, true);
    }
  }

  #trustLast(): void {
    const last = this.#sql.lastSeq();
    for (const row of this.rows(last)) {
      const { record, faults } = new ChainVerifier({ size: row.seq, leaf: row.prev, time: null }).check(row);
      if (record === null) throw damageOf(this.file, faults[0] ?? { seq: row.seq, what: 'unreadable' });
      this.#tail = tailAfter(record);
    }
  }

  #anchorNow(minimumAge: number): void {
    if (!this.#keepsAnchor || performance.now() - this.#anchored < minimumAge) return;
    this.#anchored = performance.now();
    try {
      const anchor = this.#anchor();
      if (anchor !== null) writeAnchor(this.folder, anchor);
    } catch {
      // The commit is durable; an older anchor is still true.
    }
  }

  #anchor(): Anchor | null {
    const last = this.#sql.last();
    return last === null ? null : { size: last.seq + 1, leaf: last.leaf.toString('hex'), time: this.#now() };
  }

  #assertUsable(): void {
    if (this.#failure !== null) {
      throw new BoundbookError(
        this.#failure.code,
        `${this.file} takes no more entries in this process: ${this.#failure.message}`,
        {
          hint: this.#failure.hint ?? 'Start the command again.',
          cause: this.#failure,
        },
      );
    }
  }

  /** Ends the transaction and turns the error into a typed one; remembers it when the file's state is unknown. */
  #fail(error: unknown, final = false): BoundbookError {
    try {
      // SQLite may have rolled back by itself.
      if (this.db.inTransaction) this.#sql.rollback.run();
    } catch {
      final = true;
    }
    const typed = toLedgerError(error, this.file, 'write');
    if (final || typed.code === 'LEDGER_DAMAGED' || systemCode(error)?.startsWith('SQLITE_IOERR') === true)
      this.#failure = typed;
    return typed;
  }
}

/** What became of one decision of {@link LedgerStore.transactAll}. */
export type Outcome<T> =
  | { readonly ok: true; readonly appended: Appended<T> }
  | { readonly ok: false; readonly error: unknown };
