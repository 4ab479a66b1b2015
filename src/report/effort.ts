import type { ArmCosts } from '../ledger/arm-costs.js';
import {
  type Effort,
  type EffortParts,
  maskEffort,
  type ShownEffort,
  type ShownParts,
} from '../ledger/costs.js';
import type { Costs as PlanCosts } from '../ledger/plan-costs.js';
import type { FailureCount, GenerationCount } from './report-input.js';
import type { CostOfArm, Costs, Truncation } from './value.js';

/** The finish reason of a generation that the declared stop rule ended. */
const LOOP_STOP = 'loop_stop';

/**
 * How many generations ended at the token limit or, where a stop rule is declared, in a loop, by arm; arms without any finish
 * reason are left out.
 *
 * @param watched arms whose condition declares a stop rule
 */
export function truncationOf(
  generations: readonly GenerationCount[],
  watched: ReadonlySet<string>,
): readonly Truncation[] {
  const arms = [...new Set(generations.map(({ arm }) => arm))].sort();
  const rows = arms.map((arm) => {
    const count = (choose: (reason: string | null) => boolean) =>
      generations
        .filter((each) => each.arm === arm && choose(each.finish_reason))
        .reduce((total, each) => total + each.generations, 0);
    return {
      arm,
      known: count((reason) => reason !== null),
      truncated: count((reason) => reason === 'length'),
      unknown: count((reason) => reason === null),
      ...(watched.has(arm) ? { looped: count((reason) => reason === LOOP_STOP) } : {}),
    };
  });
  return rows.filter(({ known }) => known > 0);
}

/** Failures in one order, whatever order they were counted in. */
export function sortedFailures(failures: readonly FailureCount[]): readonly FailureCount[] {
  const key = (each: FailureCount) => JSON.stringify([each.arm, each.stage, each.cause, each.attribution]);
  return [...failures].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

/**
 * P21, in milliseconds and millionths of an hour: finer digits are noise of adding doubles.
 *
 * @param masked whether outcomes are blinded (law 8)
 */
export function costsOf(costs: PlanCosts, masked: boolean): Costs {
  return {
    ...shownParts(costs, masked),
    gpu_hours: hours(costs.gpu_seconds),
    accounted_gpu_hours: hours(costs.accounted_gpu_seconds),
    session_seconds: milliseconds(costs.session_seconds),
    service_seconds: milliseconds(costs.service_seconds),
    arms: masked ? null : costs.arms.map(costOfArm),
  };
}

function costOfArm(cost: ArmCosts): CostOfArm {
  return {
    arm: cost.arm,
    ...shownParts(cost, false),
    gpu_hours: hours(cost.gpu_seconds),
    service_seconds: milliseconds(cost.service_seconds),
    divided: cost.divided,
  };
}

function shownParts({ used, failed, unused, open }: EffortParts, masked: boolean): ShownParts {
  const shown = (effort: Effort): ShownEffort => rounded(masked ? maskEffort(effort) : effort);
  return { used: shown(used), failed: shown(failed), unused: shown(unused), open: shown(open) };
}

function rounded(effort: ShownEffort): ShownEffort {
  return {
    ...effort,
    seconds: milliseconds(effort.seconds),
    queue_seconds: milliseconds(effort.queue_seconds),
  };
}

function hours(seconds: number): number {
  return Math.round((seconds / 3600) * 1e6) / 1e6;
}

function milliseconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
