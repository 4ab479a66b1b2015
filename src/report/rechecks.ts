import type { RateInterval } from '../analysis/wilson.js';
import { wilsonInterval } from '../analysis/wilson.js';
import type { Recheck } from '../ledger/rechecks.js';

/** A sample of the outputs that the stop rule ended, generated without it (B10). No score of the plan rests on it. */
export interface RecheckInput {
  readonly recheck: string;
  /** Position of the entry that declared it. */
  readonly entry: number;
  readonly time: string;
  readonly fraction: string;
  readonly closed: boolean;
  readonly after_unblinding: boolean;
  readonly outcome: RecheckOutcome;
}

interface RecheckOutcome {
  /** Outputs that the stop rule ended, and how many of them were drawn. */
  readonly stopped: number;
  readonly sample: number;
  readonly recovered: number;
  readonly not_recovered: number;
  readonly failed: number;
  readonly generated_tokens: number;
  /** Wilson's interval for the share of recovered outputs among those that were graded; null when none was. */
  readonly interval: (RateInterval & { readonly level: number }) | null;
}

/** As a report says it: the outcome is null while outcomes are blinded (law 8). */
export interface RecheckReport extends Omit<RecheckInput, 'outcome'> {
  readonly outcome: RecheckOutcome | null;
}

export function recheckInputs(rechecks: readonly Recheck[], level: number): readonly RecheckInput[] {
  return rechecks.map(
    ({ id, seq, time, fraction, closed, afterUnblinding, stopped, sample, counts, tokens }) => {
      const graded = counts.recovered + counts.not_recovered;
      const interval = graded === 0 ? null : { ...wilsonInterval(counts.recovered, graded, level), level };
      return {
        recheck: id,
        entry: seq,
        time,
        fraction,
        closed,
        after_unblinding: afterUnblinding,
        outcome: {
          stopped: stopped.count,
          sample: sample.count,
          ...counts,
          generated_tokens: tokens,
          interval,
        },
      };
    },
  );
}

/** Absent when nothing was rechecked. */
export function recheckReports(
  rechecks: readonly RecheckInput[],
  blinded: boolean,
): { readonly rechecks?: readonly RecheckReport[] } {
  if (rechecks.length === 0) return {};
  return { rechecks: rechecks.map((one) => (blinded ? { ...one, outcome: null } : one)) };
}
