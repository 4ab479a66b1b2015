import type { Violation } from '../attempts/violation.js';
import type { Digest } from '../core/digest.js';
import type { EntryOf } from './entries/entry.js';

/** One member for each field of a {@link CheckpointBook}. */
export interface CheckpointBookSnapshot {
  readonly signed: readonly number[];
  readonly told: readonly Digest[];
  readonly last: number | null;
}

/** The checkpoint entries of a ledger: where the signed ones are, and which time-stamp tokens they named. */
export class CheckpointBook {
  readonly #signed: number[] = [];
  readonly #told = new Set<Digest>();
  #last: number | null = null;

  /** Positions of the checkpoints that have a note, ascending. */
  get signed(): readonly number[] {
    return this.#signed;
  }

  /** Position of the last checkpoint. */
  get last(): number | null {
    return this.#last;
  }

  /** Time-stamp tokens that entries named. */
  get told(): ReadonlySet<Digest> {
    return this.#told;
  }

  /** Shares what it holds with the book: to be written down before the next entry is taken. */
  snapshot(): CheckpointBookSnapshot {
    return { signed: this.#signed, told: [...this.#told], last: this.#last };
  }

  /** Puts an empty book into the state of another one. */
  restore({ signed, told, last }: CheckpointBookSnapshot): void {
    this.#signed.push(...signed);
    for (const digest of told) this.#told.add(digest);
    this.#last = last;
  }

  /** Takes the next checkpoint. What its root and its note say is for who has the tree, see `checkpoint-entry.ts`. */
  take(entry: EntryOf<'checkpoint'>): Violation | null {
    const { seq, size, note, timestamps } = entry;
    if (size !== seq) return forbid(`it speaks of ${size} entries; there are ${seq} before it`);
    if (new Set(timestamps).size !== timestamps.length) return forbid('it names a time-stamp token twice');
    const again = timestamps.find((digest) => this.#told.has(digest));
    if (again !== undefined) return forbid(`an entry before it named the time-stamp token ${again}`);
    for (const digest of timestamps) this.#told.add(digest);
    if (note !== null) this.#signed.push(seq);
    this.#last = seq;
    return null;
  }
}

function forbid(message: string): Violation {
  return { clause: 'P16', message };
}
