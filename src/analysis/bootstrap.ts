import seedrandom from 'seedrandom';
import { BoundbookError } from '../core/errors.js';
import { type DifferenceMatrix, exactVariance, shapeOf, type VarianceParts } from './difference-matrix.js';
import { quantile } from './quantile.js';
import { type Rational, toNumber } from './rational.js';

/** Everything that makes the resamples what they are; a seed alone reproduces nothing (statistics A21). */
export const ALGORITHM = {
  generator: 'seedrandom 3.0.5 (ARC4), seeded with the decimal text of the seed',
  index: 'floor(u * n) of one 52-bit double u for each draw',
  quantile: 'type 7',
} as const;

export interface BootstrapOptions {
  readonly resamples: number;
  readonly seed: number;
  /** Two-sided, 0.95 for the percentiles 2.5 and 97.5. */
  readonly level: number;
}

export interface BootstrapInterval {
  /** A single row has no seeds to draw: only tasks are drawn, and the interval is conditional on that row. */
  readonly drawn: 'seeds_and_tasks' | 'tasks';
  readonly order:
    | 'for each resample first the training seeds, then the tasks'
    | 'for each resample the tasks';
  readonly seeds: number;
  readonly tasks: number;
  readonly lower: number;
  readonly upper: number;
  /** Variance over the resamples (divided by their number), and what it must come to. */
  readonly variance: { readonly resampled: number; readonly exact: VarianceParts };
  /** `one_task`: nothing can vary over tasks. `no_variation`: every resample is equal. Neither is certainty. */
  readonly degenerate: 'one_task' | 'no_variation' | null;
}

/**
 * Two-way paired percentile bootstrap (P8): for each resample S rows and, independently, T columns are drawn with
 * replacement, and the mean over the drawn cells is taken; cells keep all their rollouts. Matrices of one shape that
 * are handed in together, or in separate calls with the same options, meet the same draws.
 *
 * @param matrices tables of differences, all S × T
 * @returns one interval for each matrix, in order
 * @throws {BoundbookError} INTERNAL when the shapes differ.
 */
export function twoWayBootstrap(
  matrices: readonly DifferenceMatrix[],
  options: BootstrapOptions,
): readonly BootstrapInterval[] {
  const first = matrices[0];
  if (first === undefined) return [];
  const { seeds, tasks } = shapeOf(first);
  const tables = matrices.map((matrix) => toTable(matrix, seeds, tasks));
  const statistics = resample(tables, seeds, tasks, options);
  return matrices.map((matrix, m) => summarize(matrix, statistics[m] ?? new Float64Array(), options));
}

/** Cells as doubles: whole multiples of 1/scale wherever that is exact, so that no sum is ever rounded. */
interface Table {
  readonly cells: Float64Array;
  readonly scale: number;
}

function toTable(matrix: DifferenceMatrix, seeds: number, tasks: number): Table {
  const shape = shapeOf(matrix);
  if (shape.seeds !== seeds || shape.tasks !== tasks) {
    throw new BoundbookError('INTERNAL', 'tables of different shape cannot share draws');
  }
  const cells = matrix.flat();
  const scale = cells.reduce((all, cell) => leastCommonMultiple(all, cell.d), 1n);
  const limit = BigInt(Number.MAX_SAFE_INTEGER) / BigInt(seeds * tasks);
  const scaled = cells.map((cell) => (cell.n * scale) / cell.d);
  if (scale <= limit && scaled.every((value) => (value < 0n ? -value : value) <= limit)) {
    return { cells: Float64Array.from(scaled, Number), scale: Number(scale) };
  }
  return { cells: Float64Array.from(cells, (cell: Rational) => toNumber(cell)), scale: 1 };
}

function leastCommonMultiple(a: bigint, b: bigint): bigint {
  let x = a;
  let y = b;
  while (y !== 0n) [x, y] = [y, x % y];
  return (a / x) * b;
}

function resample(
  tables: readonly Table[],
  seeds: number,
  tasks: number,
  options: BootstrapOptions,
): Float64Array[] {
  const random = seedrandom(String(options.seed));
  const statistics = tables.map(() => new Float64Array(options.resamples));
  const seedCounts = new Int32Array(seeds);
  const taskCounts = new Int32Array(tasks);
  for (let b = 0; b < options.resamples; b++) {
    if (seeds > 1) draw(random, seedCounts);
    else seedCounts[0] = 1;
    draw(random, taskCounts);
    for (let m = 0; m < tables.length; m++) {
      const table = tables[m];
      const values = statistics[m];
      if (table === undefined || values === undefined) continue;
      values[b] = weightedSum(table.cells, seedCounts, taskCounts) / (table.scale * seeds * tasks);
    }
  }
  return statistics;
}

/** Draws as many indices as there are places, with replacement, and counts how often each came up. */
function draw(random: () => number, counts: Int32Array): void {
  const n = counts.length;
  counts.fill(0);
  for (let k = 0; k < n; k++) {
    const index = Math.floor(random() * n);
    counts[index] = (counts[index] ?? 0) + 1;
  }
}

function weightedSum(cells: Float64Array, seedCounts: Int32Array, taskCounts: Int32Array): number {
  const tasks = taskCounts.length;
  let total = 0;
  for (let i = 0; i < seedCounts.length; i++) {
    const weight = seedCounts[i] ?? 0;
    if (weight === 0) continue;
    const offset = i * tasks;
    let row = 0;
    for (let j = 0; j < tasks; j++) row += (taskCounts[j] ?? 0) * (cells[offset + j] ?? 0);
    total += weight * row;
  }
  return total;
}

function summarize(
  matrix: DifferenceMatrix,
  statistics: Float64Array,
  options: BootstrapOptions,
): BootstrapInterval {
  const { seeds, tasks } = shapeOf(matrix);
  const exact = exactVariance(matrix);
  const sorted = statistics.toSorted();
  const tail = (1 - options.level) / 2;
  return {
    drawn: seeds > 1 ? 'seeds_and_tasks' : 'tasks',
    order:
      seeds > 1
        ? 'for each resample first the training seeds, then the tasks'
        : 'for each resample the tasks',
    seeds,
    tasks,
    lower: quantile(sorted, tail),
    upper: quantile(sorted, 1 - tail),
    variance: { resampled: variance(statistics), exact },
    degenerate: tasks === 1 ? 'one_task' : exact.total.n === 0n ? 'no_variation' : null,
  };
}

/** Over the number of values, in two passes in the order of the resamples. */
function variance(values: Float64Array): number {
  const center = values.reduce((total, value) => total + value, 0) / values.length;
  return values.reduce((total, value) => total + (value - center) ** 2, 0) / values.length;
}
