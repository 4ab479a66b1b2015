import { BoundbookError } from '../core/errors.js';
import { add, divide, fromNumber, mean, multiply, type Rational, rational, sum, ZERO } from './rational.js';

/** What is known of the planned rollouts of one task. */
export interface TaskTally {
  /** Planned rollouts, at least 1. */
  readonly planned: number;
  /** Rollouts with a settled value. The others are unresolved or pending. */
  readonly resolved: number;
  readonly sum: Rational;
  readonly sumOfSquares: Rational;
}

/**
 * Counts the settled values of one task.
 *
 * @throws {BoundbookError} INTERNAL when there are more values than planned rollouts, or none is planned.
 */
export function tally(values: readonly number[], planned: number): TaskTally {
  if (planned < 1 || values.length > planned) {
    throw new BoundbookError('INTERNAL', `${values.length} values for ${planned} planned rollouts`);
  }
  let total = ZERO;
  let squares = ZERO;
  for (const value of values) {
    const exact = fromNumber(value);
    total = add(total, exact);
    squares = add(squares, multiply(exact, exact));
  }
  return { planned, resolved: values.length, sum: total, sumOfSquares: squares };
}

/**
 * avg@k (P7, C5): the mean over the rollouts of a task, then equal weight over tasks: (1/N) Σ c_i/n_i, for uneven
 * n_i too (B3). Estimates the expected reward of one rollout; k changes its noise, not what it estimates.
 *
 * @throws {BoundbookError} INTERNAL when a task has an unsettled rollout: then only bounds exist (law 5, law 6).
 */
export function averageAtK(tasks: readonly TaskTally[]): Rational {
  return mean(tasks.map(taskMean));
}

/** The mean over all rollouts, each with the same weight: another estimand than {@link averageAtK} (B3). */
export function pooledRate(tasks: readonly TaskTally[]): Rational {
  for (const task of tasks) assertComplete(task);
  const rollouts = tasks.reduce((total, task) => total + task.resolved, 0);
  return divide(sum(tasks.map((task) => task.sum)), rational(rollouts));
}

/** @throws {BoundbookError} INTERNAL, as {@link averageAtK}. */
export function taskMean(task: TaskTally): Rational {
  assertComplete(task);
  return divide(task.sum, rational(task.planned));
}

export function isComplete(tasks: readonly TaskTally[]): boolean {
  return tasks.every((task) => task.resolved === task.planned);
}

function assertComplete(task: TaskTally): void {
  if (task.resolved !== task.planned) {
    throw new BoundbookError('INTERNAL', 'a point estimate was asked for while rollouts are unsettled');
  }
}
