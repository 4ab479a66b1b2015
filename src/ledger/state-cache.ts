import { createHash } from 'node:crypto';
import { sha256Hex } from '../core/digest.js';
import { systemCode } from '../core/errors.js';
import { VERSION } from '../core/version.js';
import { BookState } from './book-state.js';
import type { LedgerRecord } from './chain.js';
import { type FoldSnapshot, LedgerFold } from './fold.js';
import { CompactRange, leafHash } from './merkle.js';
import type { PlanContext } from './plan-index.js';
import type { LedgerReader } from './reader.js';
import type { LiveSnapshot } from './slot-records.js';
import { CHUNK_RECORDS, type SlotTable } from './slot-table.js';
import { CacheFile } from './state-cache-file.js';

/** One more whenever the meaning of what is kept changes. */
const FORMAT = 6;

const KINDS = ['settled', 'carried'] as const;
type Kind = (typeof KINDS)[number];

/** Number of records, and SHA-256 over them. */
interface Extent {
  readonly count: number;
  readonly digest: string;
}

/** The one row that says what the rest is. */
interface Head {
  readonly format: number;
  readonly program: string;
  /** Number of entries folded. */
  readonly size: number;
  /** Leaf of the last one, 64 hexadecimal digits. */
  readonly leaf: string;
  readonly time: string;
  /** Right border of the tree, hexadecimal. */
  readonly roots: readonly string[];
  readonly fold: FoldSnapshot;
  /** Slots that nothing can happen to any more. */
  readonly closed: Readonly<Record<Kind, Extent>>;
  /** Number of slots that can still change, and the sum of their rows' hashes. */
  readonly live: { readonly count: number; readonly sum: string };
}

/**
 * Keeps the folded state of a ledger in a file beside it, so that a long ledger opens fast for writing. The file may be
 * deleted at any time, and nothing that goes wrong with it hinders anyone: then all entries are folded from the first.
 *
 * It is written when a checkpoint is committed, with what changed since whoever wrote last: several processes fold the
 * same entries in the same order, so that each can go on where another one stopped. None ever takes it back to an
 * earlier position.
 */
export class StateCache {
  readonly #folder: string;
  #file: CacheFile | null = null;
  /** Of the closed slots that were read or written last. */
  #digests: Readonly<Record<Kind, RunningDigest>> = newDigests();
  /** Whether this process committed a checkpoint: before that, it leaves the file alone. */
  #active = false;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * The kept state; null unless it is whole, of this program and ledger, and no older than the last checkpoint and the
   * last opening in the ledger.
   */
  load(context: PlanContext, reader: LedgerReader): BookState | null {
    try {
      const file = this.#open(false);
      return file === null ? null : file.reading(() => this.#read(file, context, reader));
    } catch (error) {
      this.#giveUp(error);
      return null;
    }
  }

  /** To be told of everything that this process committed. */
  committed(records: readonly LedgerRecord[], state: BookState, reader: LedgerReader): void {
    if (!records.some(({ entry }) => entry.type === 'checkpoint')) return;
    this.#active = true;
    this.#save(state, reader);
  }

  /** @param state null when it must not be kept */
  close(state: BookState | null, reader: LedgerReader): void {
    if (this.#active && state !== null) this.#save(state, reader);
    try {
      this.#file?.close();
    } catch {
      // It holds what it holds.
    }
    this.#file = null;
  }

  #open(create: boolean): CacheFile | null {
    this.#file ??= CacheFile.open(this.#folder, create);
    return this.#file;
  }

  #read(file: CacheFile, context: PlanContext, reader: LedgerReader): BookState | null {
    const head = this.#headOf(file, context.manifest, reader);
    if (head === null || reader.mayHoldSince(head.size, ['checkpoint', 'ledger.opened'])) return null;
    const fold = new LedgerFold(context);
    const digests = newDigests();
    for (const kind of KINDS) {
      const table = fold.slots.closed[kind];
      for (const bytes of file.chunks(kind)) table.addChunk(bytes);
      const { count, digest } = head.closed[kind];
      if (table.size !== count || digests[kind].over(table) !== digest) return null;
    }
    const rows = file.live();
    const sum = rows.reduce((total, row) => add(total, rowHash(row.slot, row.body)), 0n);
    if (rows.length !== head.live.count || toHex(sum) !== head.live.sum) return null;
    const slots = rows.map(({ slot, body }): [string, LiveSnapshot] => [
      slot,
      JSON.parse(body) as LiveSnapshot,
    ]);
    fold.restore(
      head.fold,
      slots.sort(([, a], [, b]) => a.since - b.since),
    );
    this.#digests = digests;
    const range = CompactRange.of(head.size, head.roots.map(fromHex));
    return new BookState(fold, range, { size: head.size, leaf: fromHex(head.leaf), time: head.time });
  }

  /** The head, when it is of this program and of this very ledger up to its position. */
  #headOf(file: CacheFile, manifest: string, reader: LedgerReader): Head | null {
    const text = file.head();
    if (text === null) return null;
    const head = JSON.parse(text) as Head;
    if (
      head.format !== FORMAT ||
      head.program !== VERSION ||
      head.fold.openings.opened?.manifest !== manifest
    )
      return null;
    const last = reader.rowAt(head.size - 1);
    if (last === null || last.leaf.toString('hex') !== head.leaf) return null;
    return leafHash(last.body).equals(last.leaf) ? head : null;
  }

  /** Writes what has changed since the file was written last; never an earlier position than it holds. */
  #save(state: BookState, reader: LedgerReader): void {
    try {
      const file = this.#open(true);
      file?.writing(() => this.#write(file, state, reader));
    } catch (error) {
      this.#giveUp(error);
    }
  }

  #write(file: CacheFile, { fold, range, tail }: BookState, reader: LedgerReader): void {
    if (tail.leaf === null || tail.time === null) return;
    const known = this.#headOf(file, fold.context.manifest, reader);
    if (known !== null && known.size >= tail.size) return;
    if (known === null) file.clear();
    const { closed } = fold.slots;
    const extentOf = (kind: Kind): Extent => ({
      count: closed[kind].size,
      digest: this.#digests[kind].over(closed[kind]),
    });
    const head: Head = {
      format: FORMAT,
      program: VERSION,
      size: tail.size,
      leaf: tail.leaf.toString('hex'),
      time: tail.time,
      roots: range.roots.map((root) => root.toString('hex')),
      fold: fold.snapshot(),
      closed: { settled: extentOf('settled'), carried: extentOf('carried') },
      live: { count: fold.slots.liveCount, sum: toHex(writeLive(file, fold, known)) },
    };
    for (const kind of KINDS) {
      const first = Math.floor((known?.closed[kind].count ?? 0) / CHUNK_RECORDS);
      for (let chunk = first; chunk * CHUNK_RECORDS < closed[kind].size; chunk++) {
        file.setChunk(kind, chunk, closed[kind].chunk(chunk));
      }
    }
    file.setHead(JSON.stringify(head));
  }

  /** A file that another process is writing is left to it; one that cannot be read or written is not worth keeping. */
  #giveUp(error: unknown): void {
    if (systemCode(error)?.startsWith('SQLITE_BUSY') === true) return;
    try {
      this.#file?.close();
      this.#file = null;
      CacheFile.remove(this.#folder);
    } catch {
      // A ledger works without.
    }
  }
}

/** SHA-256 over the records of a table that only grows. */
class RunningDigest {
  readonly #hash = createHash('sha256');
  #records = 0;

  over(table: Pick<SlotTable<never>, 'size' | 'recordBytes' | 'chunk'>): string {
    while (this.#records < table.size) {
      const bytes = table.chunk(Math.floor(this.#records / CHUNK_RECORDS));
      const fresh = bytes.subarray((this.#records % CHUNK_RECORDS) * table.recordBytes);
      this.#hash.update(fresh);
      this.#records += fresh.length / table.recordBytes;
    }
    return this.#hash.copy().digest('hex');
  }
}

function newDigests(): Readonly<Record<Kind, RunningDigest>> {
  return { settled: new RunningDigest(), carried: new RunningDigest() };
}

/** Brings the rows of slots that can still change up to date. @returns the sum of the hashes of all rows. */
function writeLive(file: CacheFile, { slots }: LedgerFold, known: Head | null): bigint {
  let sum = known === null ? 0n : BigInt(`0x${known.live.sum}`);
  const forget = (slot: string): void => {
    const body = file.liveBody(slot);
    if (body !== null) sum = add(sum, -rowHash(slot, body));
  };
  const retired = known === null ? [] : slots.closed.settled.idsAfter(known.closed.settled.count);
  for (const slot of retired) {
    forget(slot);
    file.dropLive(slot);
  }
  for (const [slot, live] of slots.liveSince(known?.size ?? 0)) {
    const body = JSON.stringify(live);
    forget(slot);
    sum = add(sum, rowHash(slot, body));
    file.setLive({ slot, body });
  }
  return sum;
}

/** Sums modulo 2^256 of hashes tell whether a set of rows is the one that was written, in whatever order. */
function add(sum: bigint, hash: bigint): bigint {
  return BigInt.asUintN(256, sum + hash);
}

function rowHash(slot: string, body: string): bigint {
  return BigInt(`0x${sha256Hex(`${slot} ${body}`)}`);
}

function toHex(sum: bigint): string {
  return sum.toString(16).padStart(64, '0');
}

function fromHex(hex: string): Buffer {
  return Buffer.from(hex, 'hex');
}
