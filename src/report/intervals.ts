import {
  ALGORITHM,
  type BootstrapInterval,
  type BootstrapOptions,
  twoWayBootstrap,
} from '../analysis/bootstrap.js';
import { type DifferenceMatrix, shapeOf } from '../analysis/difference-matrix.js';
import { figure } from './figures.js';
import type { IntervalResult } from './value.js';

/** Intervals in the order of the tables, null where there is none; tables of one shape share one pass of draws. */
export function intervalsOf(
  matrices: readonly (DifferenceMatrix | null)[],
  options: BootstrapOptions,
): readonly (IntervalResult | null)[] {
  const groups = new Map<string, { readonly at: number; readonly matrix: DifferenceMatrix }[]>();
  matrices.forEach((matrix, at) => {
    if (matrix === null) return;
    const { seeds, tasks } = shapeOf(matrix);
    const key = `${seeds}x${tasks}`;
    groups.set(key, [...(groups.get(key) ?? []), { at, matrix }]);
  });
  const results: (IntervalResult | null)[] = matrices.map(() => null);
  for (const group of groups.values()) {
    const intervals = twoWayBootstrap(
      group.map(({ matrix }) => matrix),
      options,
    );
    group.forEach(({ at }, i) => {
      const interval = intervals[i];
      if (interval !== undefined) results[at] = toResult(interval, options);
    });
  }
  return results;
}

function toResult(interval: BootstrapInterval, options: BootstrapOptions): IntervalResult {
  const { exact, resampled } = interval.variance;
  return {
    method: interval.drawn === 'tasks' ? 'task_bootstrap' : 'two_way_bootstrap',
    level: options.level,
    lower: interval.lower,
    upper: interval.upper,
    resamples: options.resamples,
    seed: options.seed,
    generator: ALGORITHM.generator,
    index: ALGORITHM.index,
    order: interval.order,
    quantile: ALGORITHM.quantile,
    variance: {
      resampled,
      exact: figure(exact.total),
      seeds: figure(exact.seeds),
      tasks: figure(exact.tasks),
      interaction: figure(exact.interaction),
    },
    degenerate: interval.degenerate,
  };
}
