import { divide, multiply, type Rational, rational, subtract, sum, toNumber } from './rational.js';
import { isComplete, type TaskTally } from './score.js';

/**
 * Sampling standard error of avg@k from data: sqrt(Σ s_i²/n_i) / N with the unbiased variance s_i² of a task's
 * rollouts, which for rewards 0 and 1 is p̂_i(1 − p̂_i)/(n_i − 1) per task (statistics A5.3). It is the noise of
 * sampling the same model on the same tasks again, and says nothing about other tasks or training seeds.
 *
 * @returns null when a task has fewer than two rollouts (not identified) or an unsettled one (law 6).
 */
export function samplingStandardError(tasks: readonly TaskTally[]): number | null {
  if (!isComplete(tasks) || tasks.some((task) => task.planned < 2)) return null;
  return Math.sqrt(toNumber(sum(tasks.map(varianceOfMean)))) / tasks.length;
}

function varianceOfMean(task: TaskTally): Rational {
  const n = rational(task.planned);
  const deviations = subtract(task.sumOfSquares, divide(multiply(task.sum, task.sum), n));
  return divide(deviations, rational(task.planned * (task.planned - 1)));
}

/**
 * Standard error that avg@k will have for assumed per-task accuracies: sqrt(mean p(1 − p) / (N k)) (C6). One assumed
 * accuracy for all tasks gives an upper limit, since p(1 − p) is concave.
 */
export function plannedStandardError(accuracies: readonly number[], tasks: number, reps: number): number {
  const variance = accuracies.reduce((total, p) => total + p * (1 - p), 0) / accuracies.length;
  return Math.sqrt(variance / (tasks * reps));
}
