import { add, compare, divide, mean, multiply, type Rational, rational, subtract, sum } from './rational.js';
import type { TaskTally } from './score.js';

/** A closed set of values that cannot be told apart with what is known. A point when both ends are equal. */
export interface Bound {
  readonly lower: Rational;
  readonly upper: Rational;
}

/** Lowest and highest value that a rollout can have, exactly. */
export interface RewardRange {
  readonly min: Rational;
  readonly max: Rational;
}

/**
 * Worst-case bounds of {@link averageAtK} while rollouts are unsettled (P15; Manski 1990, Horowitz and Manski 1995):
 * each unsettled rollout stays in the denominator and may have any value of the range. Sharp: both ends are reached
 * by a completion. With even reps and rewards 0 and 1 this is [S/N, (S + N − K)/N].
 */
export function scoreBound(tasks: readonly TaskTally[], range: RewardRange): Bound {
  return {
    lower: mean(tasks.map((task) => filledMean(task, range.min))),
    upper: mean(tasks.map((task) => filledMean(task, range.max))),
  };
}

function filledMean(task: TaskTally, filling: Rational): Rational {
  const missing = rational(task.planned - task.resolved);
  return divide(add(task.sum, multiply(missing, filling)), rational(task.planned));
}

/** Minuend − subtrahend: [M.lower − B.upper, M.upper − B.lower]. Sharp, since the arms share no slot. */
export function differenceBound(minuend: Bound, subtrahend: Bound): Bound {
  return {
    lower: subtract(minuend.lower, subtrahend.upper),
    upper: subtract(minuend.upper, subtrahend.lower),
  };
}

/** The bound of a mean with equal weights, such as over training seeds. */
export function meanBound(bounds: readonly Bound[]): Bound {
  return { lower: mean(bounds.map((b) => b.lower)), upper: mean(bounds.map((b) => b.upper)) };
}

export function isPoint(bound: Bound): boolean {
  return compare(bound.lower, bound.upper) === 0;
}

export type Sign = 'positive' | 'negative' | 'not_identified';

/** The sign that every value of the bound has; a bound that holds 0 identifies none. */
export function signOf(bound: Bound): Sign {
  if (bound.lower.n > 0n) return 'positive';
  if (bound.upper.n < 0n) return 'negative';
  return 'not_identified';
}

/** N, K and S of the plan's rollouts: planned, settled, and the sum of what was settled. */
export interface Coverage {
  readonly planned: number;
  readonly resolved: number;
  readonly sum: Rational;
}

export function coverageOf(tasks: readonly TaskTally[]): Coverage {
  return {
    planned: tasks.reduce((total, task) => total + task.planned, 0),
    resolved: tasks.reduce((total, task) => total + task.resolved, 0),
    sum: sum(tasks.map((task) => task.sum)),
  };
}
