import type { Violation } from '../attempts/machine.js';
import type { Digest } from '../core/digest.js';
import type { EntryOf } from './entries.js';

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
