/**
 * Holds a report against what is exactly known. `demo/models/<model>/expected.json` has, for every task, the
 * probability that the model answers it rightly at temperature 1; the mean over a queue's tasks is what the score
 * of that queue estimates, and its sampling error follows from the same probabilities.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface TruthCheck {
  readonly text: string;
  readonly agrees: boolean;
}

/** The part of a report's JSON that is looked at. */
export interface ReportedScores {
  readonly results: readonly {
    readonly queue: string;
    readonly scores: { readonly reps: number; readonly rows: readonly ReportedRow[] } | null;
  }[];
}

interface ReportedRow {
  readonly arm: string;
  readonly training_seed: number | null;
  readonly bound: { readonly lower: { readonly value: number }; readonly upper: { readonly value: number } };
}

interface Expected {
  readonly tasks: Readonly<Record<string, number>>;
}

export interface Truth {
  /** Mean over the tasks of the probability of a right answer. */
  readonly mean: number;
  /** Standard error of a score over `reps` independent answers for each task. */
  readonly standardError: number;
}

/** The file that lists the tasks of each queue; null stands for all of them. */
const TASK_LISTS: Readonly<Record<string, string | null>> = {
  holdout40x8: 'demo40.txt',
  broad100x2: 'demo100.txt',
  holdout100x16: 'holdout100.txt',
  official500x2: null,
};

/** In standard errors; 22 scores that are right stay within it in all but one of some 6,700 reports. */
const TOLERANCE = 4.5;

/** Compares every score of a report with the truth. A bound agrees when it comes within the tolerance. */
export async function checkAgainstTruth(folder: string, report: ReportedScores): Promise<TruthCheck> {
  const lines = ['queue           model        truth   reported          off by (standard errors)'];
  let agrees = true;
  for (const { queue, scores } of report.results) {
    for (const row of scores?.rows ?? []) {
      const model = row.training_seed === null ? row.arm : `${row.arm}-${row.training_seed}`;
      const truth = await truthOf(folder, model, queue, scores?.reps ?? 1);
      const { lower, upper } = row.bound;
      const off = Math.max(lower.value - truth.mean, truth.mean - upper.value, 0) / truth.standardError;
      agrees &&= off <= TOLERANCE;
      const reported =
        lower.value === upper.value
          ? percent(lower.value)
          : `[${percent(lower.value)}, ${percent(upper.value)}]`;
      lines.push(
        `${queue.padEnd(15)} ${model.padEnd(10)} ${percent(truth.mean).padStart(7)}   ${reported.padEnd(17)} ${off.toFixed(2)}`,
      );
    }
  }
  return { text: lines.join('\n'), agrees };
}

export async function truthOf(folder: string, model: string, queue: string, reps: number): Promise<Truth> {
  const text = await readFile(join(folder, 'demo/models', model, 'expected.json'), 'utf8');
  const { tasks } = JSON.parse(text) as Expected;
  const list = TASK_LISTS[queue];
  const ids =
    list == null
      ? Object.keys(tasks)
      : (await readFile(join(folder, 'demo/tasks', list), 'utf8')).trim().split('\n');
  let sum = 0;
  let variance = 0;
  for (const id of ids) {
    const p = tasks[id];
    if (p === undefined) throw new Error(`${model} has no exact accuracy for task ${id}`);
    sum += p;
    variance += (p * (1 - p)) / reps;
  }
  return { mean: sum / ids.length, standardError: Math.sqrt(variance) / ids.length };
}

function percent(value: number): string {
  return `${(100 * value).toFixed(2)}%`;
}
