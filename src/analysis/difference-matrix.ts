import { BoundbookError } from '../core/errors.js';
import { add, divide, mean, multiply, type Rational, rational, subtract, sum, ZERO } from './rational.js';
import { populationVariance } from './spread.js';

/** Paired differences D[i][j] of training seed i on task j, every cell a mean over all its rollouts (P8). */
export type DifferenceMatrix = readonly (readonly Rational[])[];

/** The mean over all cells: equal weight for every seed and every task. */
export function grandMean(matrix: DifferenceMatrix): Rational {
  return mean(rowMeans(matrix));
}

/** The difference of each training seed. */
export function rowMeans(matrix: DifferenceMatrix): readonly Rational[] {
  return matrix.map((row) => mean(row));
}

/** What resampling seeds and tasks adds to the variance of the mean. */
export interface VarianceParts {
  readonly seeds: Rational;
  readonly tasks: Rational;
  readonly interaction: Rational;
  readonly total: Rational;
}

/**
 * The exact variance of the two-way bootstrap, V_r/S + V_c/T + V_rc/(S·T), with the population variances of row
 * means, column means and of D_ij − r_i − c_j + m (Owen 2007, pigeonhole bootstrap; statistics A11.2). No simulation
 * is needed to know what a simulation must come to. With one row only the tasks count.
 */
export function exactVariance(matrix: DifferenceMatrix): VarianceParts {
  const { seeds: s, tasks: t } = shapeOf(matrix);
  const rows = rowMeans(matrix);
  const columns = columnMeans(matrix, t);
  const center = mean(rows);
  const squares = matrix.flatMap((row, i) =>
    row.map((cell, j) => {
      const rest = add(subtract(subtract(cell, rows[i] ?? ZERO), columns[j] ?? ZERO), center);
      return multiply(rest, rest);
    }),
  );
  const parts = {
    seeds: divide(populationVariance(rows), rational(s)),
    tasks: divide(populationVariance(columns), rational(t)),
    interaction: divide(mean(squares), rational(s * t)),
  };
  return { ...parts, total: sum([parts.seeds, parts.tasks, parts.interaction]) };
}

function columnMeans(matrix: DifferenceMatrix, tasks: number): readonly Rational[] {
  return Array.from({ length: tasks }, (_, j) => mean(matrix.map((row) => row[j] ?? ZERO)));
}

/** @throws {BoundbookError} INTERNAL when there is no cell or the rows differ in length. */
export function shapeOf(matrix: DifferenceMatrix): { readonly seeds: number; readonly tasks: number } {
  const tasks = matrix[0]?.length ?? 0;
  if (tasks === 0 || matrix.some((row) => row.length !== tasks)) {
    throw new BoundbookError('INTERNAL', 'a table of differences needs equal rows with at least one cell');
  }
  return { seeds: matrix.length, tasks };
}
