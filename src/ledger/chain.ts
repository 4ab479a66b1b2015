import { decodeEntry } from './codec.js';
import type { Entry } from './entries/entry.js';
import { leafHash } from './merkle.js';

/** The body of an entry alone: link and leaf follow from it. Nothing about it is trusted. */
export interface BareRow {
  readonly seq: number;
  readonly body: Buffer;
}

/** One row of the ledger as it lies in the file. Nothing about it is trusted. */
export interface LedgerRow extends BareRow {
  readonly prev: Buffer | null;
  readonly leaf: Buffer;
}

/** A row that is what it says it is, in its place. */
export interface LedgerRecord {
  readonly entry: Entry;
  readonly body: Buffer;
  readonly leaf: Buffer;
}

/** Where the chain breaks, and how. */
export interface ChainFault {
  readonly seq: number;
  readonly what: string;
}

const NO_FAULTS: readonly ChainFault[] = [];

/**
 * Checks rows one after the other against the chain law: positions without a gap, each leaf the hash of its body,
 * each `prev` the leaf before, times that never run back, bodies of a declared form. Pure; it goes on after a fault,
 * so that an audit can list all of them.
 */
export class ChainVerifier {
  #next: number;
  #leaf: Buffer | null;
  #time: string;
  /** Of the row that is being checked. */
  #faults = NO_FAULTS;

  /** @param tail what the first row must follow: position, leaf and time of the last trusted entry. */
  constructor(tail: { readonly size: number; readonly leaf: Buffer | null; readonly time: string | null }) {
    this.#next = tail.size;
    this.#leaf = tail.leaf;
    this.#time = tail.time ?? '';
  }

  /** The record when all is well; otherwise every fault of this row. */
  check(row: BareRow | LedgerRow): {
    readonly record: LedgerRecord | null;
    readonly faults: readonly ChainFault[];
  } {
    this.#faults = NO_FAULTS;
    if (row.seq !== this.#next) this.#fault(row, `position ${row.seq} where ${this.#next} is due`);
    const leaf = leafHash(row.body);
    if ('leaf' in row) {
      if (!leaf.equals(row.leaf)) this.#fault(row, 'the leaf is not the hash of the body');
      if (!sameLink(row.prev, this.#leaf)) this.#fault(row, 'the link does not name the entry before');
    }
    const decoded = decodeEntry(row.body);
    if (decoded.ok) this.#checkFrame(row, decoded.entry);
    else this.#fault(row, decoded.reason);
    this.#next = row.seq + 1;
    // The recomputed hash: a forged leaf must not vouch for the next row.
    this.#leaf = leaf;
    const faults = this.#faults;
    const sound = decoded.ok && faults.length === 0;
    return { record: sound ? { entry: decoded.entry, body: row.body, leaf } : null, faults };
  }

  #checkFrame(row: BareRow, entry: Entry): void {
    if (entry.seq !== row.seq) this.#fault(row, `the body says position ${entry.seq}`);
    if (entry.prev !== (this.#leaf?.toString('hex') ?? null)) {
      this.#fault(row, 'the body names another entry before');
    }
    if (entry.time < this.#time) this.#fault(row, `its time ${entry.time} lies before ${this.#time}`);
    this.#time = entry.time;
  }

  #fault({ seq }: BareRow, what: string): void {
    this.#faults = [...this.#faults, { seq, what }];
  }
}

function sameLink(a: Buffer | null, b: Buffer | null): boolean {
  return a === null || b === null ? a === b : a.equals(b);
}
