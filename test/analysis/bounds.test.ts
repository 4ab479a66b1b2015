import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Bound,
  coverageOf,
  differenceBound,
  isPoint,
  meanBound,
  type RewardRange,
  scoreBound,
  signOf,
} from '../../src/analysis/bounds.js';
import { type Comparator, decide } from '../../src/analysis/decision.js';
import { compare, fromNumber, ONE, rational, toNumber, toText, ZERO } from '../../src/analysis/rational.js';
import { averageAtK, tally } from '../../src/analysis/score.js';
import { problem } from './fixtures.js';
import { type Problem, tables } from './tables.js';

const unit: RewardRange = { min: ZERO, max: ONE };

function boundOf(problems: readonly Problem[]): Bound {
  return scoreBound(problems.map(problem), unit);
}

function numbers(bound: Bound): readonly [number, number] {
  return [toNumber(bound.lower), toNumber(bound.upper)];
}

describe('bounds', () => {
  it.each(tables.bounds.pooled)('pooled $S of $K settled of $N', ({ N, K, S, low, high, coverage }) => {
    const tasks = [problem([N, S, K])];
    expect(numbers(scoreBound(tasks, unit))).toEqual([low, high]);
    const { planned, resolved } = coverageOf(tasks);
    expect(resolved / planned).toBe(coverage);
  });

  it.each(tables.bounds.perProblem)('per problem $problems', ({ problems, lowExact, highExact }) => {
    const bound = boundOf(problems);
    expect([toText(bound.lower), toText(bound.upper)]).toEqual([lowExact, highExact]);
  });

  it.each(tables.bounds.difference)('difference $M against $B', (c) => {
    const bound = differenceBound(boundOf(c.M), boundOf(c.B));
    expect([toText(bound.lower), toText(bound.upper)]).toEqual([c.lowExact, c.highExact]);
    expect(isPoint(bound)).toBe(c.pointIdentified);
    expect(signOf(bound) !== 'not_identified').toBe(c.signIdentified);
  });

  it.each(tables.bounds.differenceOverSeeds)('averages over seeds', ({ seeds, perSeed, low, high }) => {
    const bounds = seeds.map((seed) => differenceBound(boundOf(seed.M), boundOf(seed.B)));
    expect(bounds.map(numbers)).toEqual(perSeed);
    expect(numbers(meanBound(bounds))).toEqual([low, high]);
  });

  it('N = 22, three successes, two failures, 17 unresolved: [3/22, 20/22] (F-139)', () => {
    const tasks = [
      ...Array.from({ length: 3 }, () => problem([1, 1, 1])),
      ...Array.from({ length: 2 }, () => problem([1, 0, 1])),
      ...Array.from({ length: 17 }, () => problem([1, 0, 0])),
    ];
    expect(scoreBound(tasks, unit)).toEqual({ lower: rational(3, 22), upper: rational(20, 22) });
    expect(coverageOf(tasks)).toEqual({ planned: 22, resolved: 5, sum: rational(3) });
  });

  /** Every way to fill what is unsettled with either end of the range. */
  function completions(open: readonly (readonly (number | null)[])[], range: readonly [number, number]) {
    const holes = open.flat().filter((value) => value === null).length;
    return Array.from({ length: 2 ** holes }, (_, mask) => {
      let hole = 0;
      const filled = open.map((task) =>
        task.map((value) => value ?? range[(mask >> hole++) & 1] ?? Number.NaN),
      );
      return averageAtK(filled.map((task) => tally(task, task.length)));
    });
  }

  const openTask = (min: number, max: number) =>
    fc.array(fc.constantFrom(null, min, max, (min + max) / 4), { minLength: 1, maxLength: 4 });

  it.each([
    [0, 1],
    [-1, 3],
    [0.1, 0.7],
  ] as const)('are the extremes over every completion, range [%d, %d]', (min, max) => {
    const range = { min: fromNumber(min), max: fromNumber(max) };
    const value = fc.array(openTask(min, max), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(value, value, (m, b) => {
        const inside = (rows: typeof m) =>
          rows.map((task) => task.map((v) => (v === null ? null : Math.min(max, Math.max(min, v)))));
        const tallies = (rows: typeof m) =>
          rows.map((task) =>
            tally(
              task.filter((v) => v !== null),
              task.length,
            ),
          );
        const [openM, openB] = [inside(m), inside(b)];
        const bound = differenceBound(scoreBound(tallies(openM), range), scoreBound(tallies(openB), range));
        const sorted = (rows: typeof m) => completions(rows, [min, max]).sort(compare);
        const [allM, allB] = [sorted(openM), sorted(openB)];
        const [lowM, highM, lowB, highB] = [allM.at(0), allM.at(-1), allB.at(0), allB.at(-1)];
        if (!lowM || !highM || !lowB || !highB) throw new Error('no completion');
        expect(bound).toEqual(differenceBound({ lower: lowM, upper: highM }, { lower: lowB, upper: highB }));
      }),
      { numRuns: 200 },
    );
  });
});

describe('decide', () => {
  const bound = (lower: number, upper: number) => ({ lower: fromNumber(lower), upper: fromNumber(upper) });
  it.each([
    ['>', 0.021, 0.05, 'met'],
    ['>', 0.02, 0.05, 'undecided'],
    ['>', 0.01, 0.02, 'not_met'],
    ['>', 0.01, 0.021, 'undecided'],
    ['>=', 0.02, 0.05, 'met'],
    ['>=', 0.01, 0.02, 'undecided'],
    ['>=', 0.01, 0.019, 'not_met'],
    ['<', -0.1, 0.019, 'met'],
    ['<', -0.1, 0.02, 'undecided'],
    ['<', 0.02, 0.03, 'not_met'],
    ['<=', -0.1, 0.02, 'met'],
    ['<=', 0.02, 0.03, 'undecided'],
    ['<=', 0.021, 0.03, 'not_met'],
    ['>', 0.02, 0.02, 'not_met'],
    ['>=', 0.02, 0.02, 'met'],
  ] as const)('%s 0.02 on [%d, %d] is %s', (comparator, lower, upper, status) => {
    expect(decide(bound(lower, upper), comparator, fromNumber(0.02))).toBe(status);
  });

  it('is what every value inside says', () => {
    const comparators: Comparator[] = ['>', '>=', '<', '<='];
    const small = fc.integer({ min: -3, max: 3 });
    fc.assert(
      fc.property(small, small, small, fc.constantFrom(...comparators), (a, b, threshold, comparator) => {
        const [lower, upper] = [Math.min(a, b), Math.max(a, b)];
        const verdicts = new Set<string>();
        for (let x = lower; x <= upper; x++) {
          verdicts.add(decide(bound(x, x), comparator, rational(threshold)));
        }
        const expected = verdicts.size > 1 ? 'undecided' : [...verdicts][0];
        expect(decide(bound(lower, upper), comparator, rational(threshold))).toBe(expected);
      }),
    );
  });
});
