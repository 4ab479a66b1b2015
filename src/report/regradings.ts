import type { EntryOf } from '../ledger/entries/entry.js';
import type { LedgerFold } from '../ledger/fold.js';
import type { SlotKey } from '../slots/slot.js';

/** One output whose grade a corrected grader changed. */
export interface ChangedGrade extends SlotKey {
  readonly before: number;
  readonly after: number;
}

/** One output of which a grade command gave no valid report. */
export interface FailedGrading extends SlotKey {
  readonly cause: string;
}

/** A corrected grader, what it changed, and what it could not grade (B6). No score of the plan rests on it. */
export interface RegradingInput {
  readonly regrading: string;
  /** Position of the entry that opened it. */
  readonly entry: number;
  readonly time: string;
  readonly reason: string;
  readonly grader: string;
  readonly conditions: readonly string[];
  readonly outputs: number;
  readonly closed: boolean;
  readonly after_unblinding: boolean;
  readonly same: number;
  readonly changed: readonly ChangedGrade[];
  readonly truncated: readonly SlotKey[];
  /** Of a grade command; absent for a grader that reads answers. */
  readonly failed?: readonly FailedGrading[];
  /** How often another process went on with it; absent for never. */
  readonly resumed?: number;
}

interface Tally {
  same: number;
  readonly changed: { readonly slot: string; readonly before: number; readonly after: number }[];
  readonly truncated: string[];
  readonly failed: { readonly slot: string; readonly cause: string }[];
}

const noTally = (): Tally => ({ same: 0, changed: [], truncated: [], failed: [] });

/** What the regradings of a ledger come to, in the order of the entries. */
export class RegradingTally {
  readonly #tallies = new Map<string, Tally>();

  take({ regrading, slot, before, result }: EntryOf<'regrading.recorded'>): void {
    const tally = this.#tallies.get(regrading) ?? noTally();
    this.#tallies.set(regrading, tally);
    if (result.kind === 'truncated') tally.truncated.push(slot);
    else if (result.kind === 'failed') tally.failed.push({ slot, cause: result.signals.cause });
    else if (result.value === before.value) tally.same++;
    else tally.changed.push({ slot, before: before.value, after: result.value });
  }

  inputs({ regradings, slots }: LedgerFold): readonly RegradingInput[] {
    return regradings.all.map((one) => {
      const { same, changed, truncated, failed } = this.#tallies.get(one.id) ?? noTally();
      const keyed = <T>(slot: string, rest: T): (SlotKey & T)[] => {
        const key = slots.key(slot);
        return key === null ? [] : [{ ...key, ...rest }];
      };
      return {
        regrading: one.id,
        entry: one.seq,
        time: one.time,
        reason: one.reason,
        grader: one.grader,
        conditions: one.conditions,
        outputs: one.slots.count,
        closed: one.closed,
        after_unblinding: one.afterUnblinding,
        same,
        changed: changed.flatMap(({ slot, before, after }) => keyed(slot, { before, after })),
        truncated: truncated.flatMap((slot) => keyed(slot, {})),
        ...(one.command === null
          ? {}
          : { failed: failed.flatMap(({ slot, cause }) => keyed(slot, { cause })) }),
        ...(one.resumed === 0 ? {} : { resumed: one.resumed }),
      };
    });
  }
}
