import { plannedStandardError } from '../analysis/standard-error.js';
import { rewardRange } from '../grading/reference.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { TaskIds } from '../protocol/tasks.js';

export const FORMULA = 'sqrt(p (1 - p) / (N k)) with N tasks, k reps';
export const ACCURACIES: readonly number[] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

/** The standard error that sampling will leave in one score (one arm, training seed and evaluation) of a queue. */
export interface QueuePrecision {
  readonly queue: string;
  readonly tasks: number;
  readonly reps: number;
  readonly errors: readonly { readonly accuracy: number; readonly standardError: number }[];
}

export function queuePrecision(
  protocol: Protocol,
  taskIds: TaskIds,
  accuracies: readonly number[] = ACCURACIES,
): readonly QueuePrecision[] {
  return Object.keys(protocol.queues)
    .sort()
    .flatMap((name) => {
      const queue = protocol.queues[name];
      if (queue === undefined) return [];
      const tasks = taskIds.get(queue.tasks)?.length ?? 0;
      const errors = accuracies.map((accuracy) => ({
        accuracy,
        standardError: plannedStandardError([accuracy], tasks, queue.reps),
      }));
      return [{ queue: name, tasks, reps: queue.reps, errors }];
    });
}

/** A declared limit for the standard error of a queue, held against the plan. */
export interface PrecisionCheck {
  readonly queue: string;
  readonly assumedAccuracy: number;
  readonly tasks: number;
  readonly reps: number;
  readonly standardError: number;
  readonly maxStandardError: number;
  /** The fewest reps that would do; null when more than a queue may have. */
  readonly leastReps: number | null;
  readonly met: boolean;
}

export function precisionChecks(protocol: Protocol, taskIds: TaskIds): readonly PrecisionCheck[] {
  return (protocol.precision ?? []).flatMap((declared) => {
    const queue = protocol.queues[declared.queue];
    if (queue === undefined) return [];
    const tasks = taskIds.get(queue.tasks)?.length ?? 0;
    const { assumed_accuracy: assumedAccuracy, max_standard_error: maxStandardError } = declared;
    const standardError = plannedStandardError([assumedAccuracy], tasks, queue.reps);
    return [
      {
        queue: declared.queue,
        assumedAccuracy,
        tasks,
        reps: queue.reps,
        standardError,
        maxStandardError,
        leastReps: leastReps(assumedAccuracy, tasks, maxStandardError),
        met: standardError <= maxStandardError,
      },
    ];
  });
}

const MAX_REPS = 100_000;

/**
 * The fewest reps whose standard error does not exceed a limit (C6): the smallest k with
 * sqrt(p (1 − p) / (N k)) ≤ limit, at least 1; null when it is above the 100,000 that a queue may have.
 */
export function leastReps(accuracy: number, tasks: number, limit: number): number | null {
  // The quotient may be off by an ulp on either side, so its neighbours are tried with the formula itself.
  const guess = Math.ceil((accuracy * (1 - accuracy)) / (tasks * limit * limit));
  for (const k of [guess - 1, guess, guess + 1]) {
    if (k >= 1 && plannedStandardError([accuracy], tasks, k) <= limit) return k <= MAX_REPS ? k : null;
  }
  return guess < 1 ? 1 : null;
}

/** Queues in which some arm's rewards are not 0 and 1, so that the formula does not hold as it stands. */
export function queuesWithOtherRewards(protocol: Protocol): readonly string[] {
  return Object.entries(protocol.queues)
    .filter(([, queue]) =>
      queue.arms.some((name) => {
        const condition = protocol.conditions[protocol.arms[name]?.condition ?? ''];
        if (condition === undefined) return false;
        const { min, max } = rewardRange(condition.grader);
        return min !== 0 || max !== 1;
      }),
    )
    .map(([name]) => name);
}
