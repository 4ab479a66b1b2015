import { describe, expect, it } from 'vitest';
import { fromNumber, rational, toNumber, toText } from '../../src/analysis/rational.js';
import { averageAtK, pooledRate, tally, taskMean } from '../../src/analysis/score.js';
import { plannedStandardError, samplingStandardError } from '../../src/analysis/standard-error.js';
import { problem } from './fixtures.js';
import { tables } from './tables.js';

describe('avg@k', () => {
  it.each(tables.cluster.cases)('$name', ({ problems, avgAtN, pooled, se }) => {
    const tasks = problems.map(([n, c]) => problem([n, c, n]));
    expect(toNumber(averageAtK(tasks))).toBeCloseTo(avgAtN, 14);
    expect(toNumber(pooledRate(tasks))).toBeCloseTo(pooled, 14);
    const error = samplingStandardError(tasks);
    if (se === null) expect(error).toBeNull();
    else expect(error).toBeCloseTo(se, 14);
  });

  it('weighs tasks, not attempts: 17.5 % against 15/79 (seed 001)', () => {
    const tasks = [problem([4, 4, 4]), problem([4, 4, 4]), problem([2, 0, 2]), problem([2, 0, 2])];
    expect(toText(averageAtK(tasks))).toBe('1/2');
    expect(toText(pooledRate(tasks))).toBe('2/3');
  });

  it('has no value while a rollout is unsettled (law 6)', () => {
    const open = [problem([4, 4, 4]), problem([4, 3, 3])];
    expect(() => averageAtK(open)).toThrow();
    expect(() => pooledRate(open)).toThrow();
    expect(() => taskMean(problem([2, 0, 1]))).toThrow();
    expect(samplingStandardError(open)).toBeNull();
    expect(() => averageAtK([])).toThrow();
  });

  it('refuses more values than were planned, and plans of nothing', () => {
    expect(() => tally([1, 1], 1)).toThrow();
    expect(() => tally([], 0)).toThrow();
  });

  it('takes fractional rewards exactly', () => {
    const tasks = [tally([0.1, 0.2, 0.3], 3), tally([0.7, 0.7, 0.7], 3)];
    expect(averageAtK(tasks)).toEqual(rational(9, 20));
    expect(tally([0.3, 0.1, 0.2], 3)).toEqual(tally([0.1, 0.2, 0.3], 3));
    expect(tally([0.5], 2).sumOfSquares).toEqual(fromNumber(0.25));
  });
});

describe('standard error', () => {
  it.each(tables.samplingSe.cases)('$input', ({ input, expected }) => {
    if (typeof input.p === 'number') {
      for (const k of [1, 2, 4, 8, 16, 32, 64]) {
        const se = plannedStandardError([input.p], input.N ?? 0, k);
        expect(se).toBeCloseTo(expected[`se_k${k}`] ?? Number.NaN, 14);
      }
    } else {
      const se = plannedStandardError(input.p, input.p.length, input.k ?? 0);
      expect(se).toBeCloseTo(expected.seFromPerProblemP ?? Number.NaN, 14);
    }
  });

  it('is unbiased: its square averages to p(1 − p)/(N k) over every outcome', () => {
    // Two tasks with p = 1/4 and 1/2, three rollouts each: all outcomes with their probabilities.
    const chance = (p: number, n: number, c: number) => ([1, 3, 3, 1][c] ?? 0) * p ** c * (1 - p) ** (n - c);
    let expectation = 0;
    for (let a = 0; a <= 3; a++) {
      for (let b = 0; b <= 3; b++) {
        const se = samplingStandardError([problem([3, a, 3]), problem([3, b, 3])]) ?? Number.NaN;
        expectation += chance(0.25, 3, a) * chance(0.5, 3, b) * se ** 2;
      }
    }
    expect(expectation).toBeCloseTo((0.25 * 0.75 + 0.5 * 0.5) / 3 / 4, 14);
  });
});
