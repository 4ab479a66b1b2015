import { forbid, type Violation } from '../attempts/violation.js';
import type { Obstacle } from './completeness.js';
import type { EntryOf } from './entries/entry.js';
import type { PlanContext } from './plan-index.js';
import type { StateCounts } from './slot-book.js';

/** B9: a change made in mid-run, as a person noted it. */
export interface NotedDeviation {
  readonly seq: number;
  readonly time: string;
  readonly text: string;
  readonly selector: EntryOf<'deviation.noted'>['selector'];
  readonly slots: EntryOf<'deviation.noted'>['slots'];
  /** Noted when outcomes could be read already. */
  readonly afterUnblinding: boolean;
}

/** One member for each field of a {@link PlanBook}. */
export interface PlanBookSnapshot {
  readonly unblinded: EntryOf<'unblinded'> | null;
  readonly amended: EntryOf<'amended'> | null;
  readonly noted: readonly NotedDeviation[];
}

/** What befell the plan as a whole: its unblinding, its amendment, and deviations that were noted. */
export class PlanBook {
  #unblinded: EntryOf<'unblinded'> | null = null;
  #amended: EntryOf<'amended'> | null = null;
  readonly #noted: NotedDeviation[] = [];

  snapshot(): PlanBookSnapshot {
    return { unblinded: this.#unblinded, amended: this.#amended, noted: this.#noted };
  }

  restore({ unblinded, amended, noted }: PlanBookSnapshot): void {
    this.#unblinded = unblinded;
    this.#amended = amended;
    this.#noted.push(...noted);
  }

  get unblinded(): EntryOf<'unblinded'> | null {
    return this.#unblinded;
  }

  /** The entry by which another revision of the plan took its place. */
  get amended(): EntryOf<'amended'> | null {
    return this.#amended;
  }

  get noted(): readonly NotedDeviation[] {
    return this.#noted;
  }

  /** Why nothing may be started any more, in words (P22); null while something may. */
  get seal(): string | null {
    if (this.#amended !== null) return 'the amendment of the plan';
    return this.#unblinded === null || this.#unblinded.partial ? null : 'a complete unblinding';
  }

  /**
   * Keeps even an early unblinding, because what was seen was seen.
   *
   * @param obstacles why outcomes may not be read as those of a complete plan
   * @param total counts of the ledger
   */
  unblind(entry: EntryOf<'unblinded'>, obstacles: readonly Obstacle[], total: StateCounts): Violation | null {
    if (this.#unblinded !== null)
      return forbid('P22', `outcomes were unblinded before, by entry ${this.#unblinded.seq}`);
    this.#unblinded = entry;
    const [obstacle] = entry.partial ? [] : obstacles;
    if (obstacle !== undefined) {
      const { clause, where, message } = obstacle;
      return forbid(clause, `the unblinding is not marked as partial, although in ${where}: ${message}`);
    }
    const { planned, settled, unresolved, pending, open } = total;
    const agree =
      entry.planned === planned &&
      entry.settled === settled &&
      entry.unresolved === unresolved &&
      entry.pending === pending + open;
    return agree ? null : forbid('P22', 'its counts are not those of the ledger');
  }

  amend(entry: EntryOf<'amended'>, { manifest, protocol }: PlanContext): Violation | null {
    if (this.#amended !== null)
      return forbid('P22', `the plan was amended before, by entry ${this.#amended.seq}`);
    if (entry.successor === manifest) return forbid('P22', 'a plan does not succeed itself');
    const { revision } = protocol;
    if (entry.revision <= revision)
      return forbid('P22', `revision ${entry.revision} does not follow revision ${revision}`);
    this.#amended = entry;
    return null;
  }

  note(entry: EntryOf<'deviation.noted'>, { plan }: PlanContext): Violation | null {
    const { seq, time, text, selector, slots } = entry;
    if (slots.count > plan.count)
      return forbid('B9', `it touches ${slots.count} slots of a plan of ${plan.count}`);
    this.#noted.push({ seq, time, text, selector, slots, afterUnblinding: this.#unblinded !== null });
    return null;
  }
}
