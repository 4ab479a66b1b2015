import { describe, expect, it } from 'vitest';
import { twoWayBootstrap } from '../../src/analysis/bootstrap.js';
import {
  type DifferenceMatrix,
  exactVariance,
  grandMean,
  rowMeans,
} from '../../src/analysis/difference-matrix.js';
import {
  multiply,
  fromText as parse,
  type Rational,
  rational,
  toNumber,
  toText,
} from '../../src/analysis/rational.js';
import { tables } from './tables.js';

const SEED = 20260927;
const options = { resamples: 10_000, seed: SEED, level: 0.95 };

function single(matrix: DifferenceMatrix, change: Partial<typeof options> = {}) {
  const [interval] = twoWayBootstrap([matrix], { ...options, ...change });
  if (interval === undefined) throw new Error('no interval');
  return interval;
}

function lattice(m: readonly (readonly number[])[], b: readonly (readonly number[])[], reps: number) {
  return m.map((row, i) => row.map((value, j) => rational(value - (b[i]?.[j] ?? 0), reps)));
}

describe('exact variance', () => {
  it.each(tables.twoWay.cases)('$name', ({ D, mean, variance, varRow, varCol, varInteraction }) => {
    const matrix = D.map((row) => row.map(parse));
    const [s, t] = [D.length, D[0]?.length ?? 0];
    const parts = exactVariance(matrix);
    expect(toText(parts.total)).toBe(variance);
    expect(toText(multiply(parts.seeds, rational(s)))).toBe(varRow);
    expect(toText(multiply(parts.tasks, rational(t)))).toBe(varCol);
    expect(toText(multiply(parts.interaction, rational(s * t)))).toBe(varInteraction);
    expect(toNumber(grandMean(matrix))).toBeCloseTo(mean, 15);
  });

  it('refuses ragged and empty tables', () => {
    expect(() => exactVariance([])).toThrow();
    expect(() => exactVariance([[rational(1)], []])).toThrow();
  });
});

describe('two-way bootstrap', () => {
  it.each(tables.twoWay.cases.filter((c) => c.distribution !== null))(
    'follows the enumerated law of $name',
    ({ D, distribution }) => {
      // Percentiles at several levels lie where the exact law has its own, within 4.5 standard errors of B draws.
      const matrix = D.map((row) => row.map(parse));
      const law = (distribution ?? []).map(([x, p]) => [toNumber(parse(x)), toNumber(parse(p))] as const);
      for (const level of [0.5, 0.8, 0.9, 0.95, 0.99]) {
        const interval = single(matrix, { level });
        for (const [value, p] of [
          [interval.lower, (1 - level) / 2],
          [interval.upper, (1 + level) / 2],
        ] as const) {
          const slack = 4.5 * Math.sqrt((p * (1 - p)) / options.resamples);
          const below = law.reduce((total, [x, q]) => (x < value - 1e-12 ? total + q : total), 0);
          const upTo = law.reduce((total, [x, q]) => (x <= value + 1e-12 ? total + q : total), 0);
          expect(below).toBeLessThanOrEqual(p + slack);
          expect(upTo).toBeGreaterThanOrEqual(p - slack);
        }
      }
    },
  );

  it.each(tables.twoWayLattice.cases)('P8 on $name', (c) => {
    const matrix = lattice(c.M, c.B, c.reps);
    expect(toNumber(grandMean(matrix))).toBeCloseTo(c.mean, 15);
    rowMeans(matrix).forEach((value, i) => {
      expect(toNumber(value)).toBeCloseTo(c.perSeed[i] ?? Number.NaN, 15);
    });
    for (const [resamples, low, high] of [
      [10_000, c.q025_band10000, c.q975_band10000],
      [20_000, c.q025_band20000, c.q975_band20000],
    ] as const) {
      const interval = single(matrix, { resamples });
      expect(interval.lower).toBeGreaterThanOrEqual(low[0] - 1e-12);
      expect(interval.lower).toBeLessThanOrEqual(low[1] + 1e-12);
      expect(interval.upper).toBeGreaterThanOrEqual(high[0] - 1e-12);
      expect(interval.upper).toBeLessThanOrEqual(high[1] + 1e-12);
      const { exact, resampled } = interval.variance;
      expect(toNumber(exact.total)).toBeCloseTo(c.varianceClosedForm, 15);
      expect(toNumber(exact.seeds)).toBeCloseTo(c.seedPart, 15);
      expect(toNumber(exact.tasks)).toBeCloseTo(c.taskPart, 15);
      expect(toNumber(exact.interaction)).toBeCloseTo(c.interactionPart, 15);
      expect(resampled / c.varianceClosedForm).toBeGreaterThan(0.93);
      expect(resampled / c.varianceClosedForm).toBeLessThan(1.07);
    }
  });

  it.each(tables.oneWayLattice.cases)('tasks only: $name', (c) => {
    const cells: Rational[] = c.counts.flatMap(([k, times]) =>
      Array.from({ length: times }, () => rational(k, c.denominator)),
    );
    for (const [resamples, low, high] of [
      [10_000, c.q025_band10000, c.q975_band10000],
      [20_000, c.q025_band20000, c.q975_band20000],
    ] as const) {
      const interval = single([cells], { resamples });
      expect(interval.drawn).toBe('tasks');
      expect(interval.lower).toBeGreaterThanOrEqual(low[0] - 1e-12);
      expect(interval.lower).toBeLessThanOrEqual(low[1] + 1e-12);
      expect(interval.upper).toBeGreaterThanOrEqual(high[0] - 1e-12);
      expect(interval.upper).toBeLessThanOrEqual(high[1] + 1e-12);
      expect(Math.sqrt(toNumber(interval.variance.exact.total))).toBeCloseTo(c.sd, 14);
    }
  });

  it('is the same for the same seed, and another for another', () => {
    const [c] = tables.twoWayLattice.cases;
    if (c === undefined) throw new Error('no case');
    const matrix = lattice(c.M, c.B, c.reps);
    expect(single(matrix)).toEqual(single(matrix));
    expect(single(matrix, { seed: 1 }).variance.resampled).not.toBe(single(matrix).variance.resampled);
  });

  it('lets all tables meet the same draws', () => {
    const [c] = tables.twoWayLattice.cases;
    if (c === undefined) throw new Error('no case');
    const first = lattice(c.M, c.B, c.reps);
    const second = lattice(c.B, c.M, c.reps);
    const [a, b] = twoWayBootstrap([first, second], options);
    expect(a).toEqual(single(first));
    expect(b).toEqual(single(second));
    expect(b?.lower).toBeCloseTo(-(a?.upper ?? Number.NaN), 12);
    expect(() => twoWayBootstrap([first, [[rational(1)]]], options)).toThrow();
    expect(twoWayBootstrap([], options)).toEqual([]);
  });

  it('resamples tasks, not rollouts (F-141)', () => {
    // 100 tasks with 16 equal rollouts each: the width is that of 100 values, not of 1,600.
    const cells = Array.from({ length: 100 }, (_, j) => rational(j % 2));
    const width = single([cells]).upper - single([cells]).lower;
    const rollouts = cells.flatMap((cell) => Array.from({ length: 16 }, () => cell));
    const wrong = single([rollouts], { resamples: 2_000 });
    expect(width).toBeGreaterThan(0.17);
    expect(width).toBeLessThan(0.22);
    expect(wrong.upper - wrong.lower).toBeLessThan(0.06);
  });

  it('with seeds that differ and tasks that do not, the interval is [min, max] of three seeds', () => {
    const matrix = [1, 5, 9].map((value) => Array.from({ length: 20 }, () => rational(value, 10)));
    const interval = single(matrix);
    expect([interval.lower, interval.upper]).toEqual([0.1, 0.9]);
  });

  it('names what is degenerate', () => {
    const zeros = [[rational(0), rational(0)]];
    expect(single(zeros)).toMatchObject({ lower: 0, upper: 0, degenerate: 'no_variation' });
    expect(single([[rational(1, 2)]])).toMatchObject({ lower: 0.5, upper: 0.5, degenerate: 'one_task' });
    expect(single([[rational(1)], [rational(0)]])).toMatchObject({ degenerate: 'one_task' });
    expect(single([[rational(1), rational(0)]]).degenerate).toBeNull();
  });

  it('keeps to doubles in a fixed order where whole numbers would not fit', () => {
    const matrix = [[rational(1n, 10n ** 12n + 39n), rational(1n, 10n ** 12n + 61n)]];
    const interval = single(matrix);
    expect(interval.lower).toBeGreaterThan(0);
    expect(interval.upper).toBeLessThanOrEqual(1e-12);
  });

  it('takes 10,000 resamples of 3 × 100 in under a second', () => {
    const c = tables.twoWayLattice.cases.at(-1);
    if (c === undefined) throw new Error('no case');
    const matrix = lattice(c.M, c.B, c.reps);
    single(matrix, { resamples: 200 });
    const started = performance.now();
    single(matrix);
    expect(performance.now() - started).toBeLessThan(1_000);
  });
});
