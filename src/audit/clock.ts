import type { Entry } from '../ledger/entries/entry.js';

/** A difference below this is rounding; time services slew smaller ones away instead of setting the clock. */
const TOLERANCE_S = 0.05;

/**
 * Finds clocks that were set back. The store never lets the times of entries run backwards, so such a jump shows as time
 * that stands still; the lengths of attempts come from a steady clock and tell the two apart.
 */
export class ClockCheck {
  /** Attempts under way: since when, and for how long their stages took. */
  readonly #open = new Map<string, { since: string; seconds: number }>();
  #attempts = 0;
  #most = 0;
  #first = 0;
  #last = 0;

  take(entry: Entry): void {
    switch (entry.type) {
      case 'attempt.started':
        this.#open.set(entry.attempt, { since: entry.time, seconds: 0 });
        break;
      case 'attempt.recovered':
        // The end that follows tells of the time before it.
        if (entry.found !== 'end') this.#open.set(entry.attempt, { since: entry.time, seconds: 0 });
        break;
      case 'stage.finished': {
        const open = this.#open.get(entry.attempt);
        if (open !== undefined) open.seconds += entry.seconds;
        break;
      }
      case 'attempt.finished': {
        // Judged at the end alone: how many stages an attempt had tells how it came out (law 8).
        const open = this.#open.get(entry.attempt);
        if (open !== undefined)
          this.#compare(entry.seq, open.seconds - secondsBetween(open.since, entry.time));
        this.#open.delete(entry.attempt);
        break;
      }
      default:
    }
  }

  /** What an auditor should know of it. */
  remarks(): string[] {
    if (this.#attempts === 0) return [];
    const attempts = this.#attempts === 1 ? '1 attempt' : `${this.#attempts} attempts`;
    return [
      `a clock was set back: ${attempts} took longer than the times of the entries say, by up to ${this.#most.toFixed(2)} s (entries ${this.#first} to ${this.#last}); seconds of sessions and services are too few there`,
    ];
  }

  #compare(seq: number, behind: number): void {
    if (behind <= TOLERANCE_S) return;
    if (this.#attempts === 0) this.#first = seq;
    this.#attempts++;
    this.#last = seq;
    this.#most = Math.max(this.#most, behind);
  }
}

function secondsBetween(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / 1000;
}
