import { existsSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkPlan } from '../../src/planning/check.js';
import { seedCollisions } from '../../src/planning/collisions.js';
import { countSlots } from '../../src/planning/counts.js';
import { leastReps, precisionChecks, queuePrecision } from '../../src/planning/precision.js';
import { firstSlots, shardSizes } from '../../src/planning/preview.js';
import { decisionReach } from '../../src/planning/reachable.js';
import type { Protocol } from '../../src/protocol/schema/protocol.js';
import type { TaskSets } from '../../src/protocol/tasks.js';
import { orderedSlots, planDigest } from '../../src/slots/plan.js';
import { samplingSeed, shardOf } from '../../src/slots/slot.js';
import { read, spoil, VALID } from '../protocol/support.js';

const SETS: TaskSets = {
  ids: new Map([
    ['all', ['t1', 't2', 't3', 't4']],
    ['half', ['t3', 't1']],
  ]),
  tasks: new Map(),
};
const protocol = read(VALID).protocol;

/** A protocol with one queue for each suite: tasks and reps. */
function suites(list: Readonly<Record<string, readonly [number, number]>>) {
  const queues = Object.fromEntries(
    Object.entries(list).map(([name, [, reps]]) => [
      name,
      { tasks: name, reps, arms: ['base'], role: 'exploratory' },
    ]),
  );
  const ids = new Map(
    Object.entries(list).map(([name, [tasks]]) => [
      name,
      Array.from({ length: tasks }, (_, i) => `${name}-${i}`),
    ]),
  );
  return { protocol: { ...protocol, queues } as unknown as Protocol, ids };
}

describe('counts', () => {
  test('the four suites and two controls of C7: 4,688 and 9,668, 14,356 in all', () => {
    const four = { math500: [500, 4], minerva: [272, 4], amc23: [40, 16], aime: [60, 16] } as const;
    const controls = { gsm8k: [1319, 4], cmath: [1098, 4] } as const;
    const of = (list: Parameters<typeof suites>[0]) => {
      const { protocol: planned, ids } = suites(list);
      return countSlots(planned, ids);
    };
    expect(of(four).queues).toEqual([
      { queue: 'aime', role: 'exploratory', slots: 960 },
      { queue: 'amc23', role: 'exploratory', slots: 640 },
      { queue: 'math500', role: 'exploratory', slots: 2000 },
      { queue: 'minerva', role: 'exploratory', slots: 1088 },
    ]);
    expect(of(four).total).toBe(4688);
    expect(of(controls).total).toBe(9668);
    expect(of({ ...four, ...controls }).total).toBe(14_356);
  });

  test('one row for each queue, arm and training seed, evaluations added up', () => {
    const document = read(spoil(['reps: 2,', 'reps: 2, evaluation_seeds: [0, 1, 2],']));
    const counts = countSlots(document.protocol, SETS.ids);
    expect(counts.rows).toHaveLength(6);
    expect(counts.rows.at(-1)).toEqual({
      queue: 'side',
      arm: 'base',
      trainingSeed: null,
      tasks: 2,
      reps: 2,
      evaluations: 3,
      slots: 12,
    });
    expect(counts.total).toBe(planDigest(document.protocol, SETS.ids).count);
  });
});

describe('standard errors (C6)', () => {
  // From ../shared/oracles/sampling-se.json (exact rational arithmetic), kept here so that the test stands alone.
  test.each([
    [60, 0.3, 16, 0.01479019945774904, 16],
    [40, 0.75, 16, 0.01711632992203644, 21],
    [500, 0.89, 4, 0.006996427659884722, 1],
    [60, 0.3, 1, 0.05916079783099616, 16],
    [40, 0.75, 64, 0.00855816496101822, 21],
  ])('N = %i, p = %d, k = %i', (tasks, accuracy, reps, standardError, least) => {
    const { protocol: planned, ids } = suites({ suite: [tasks, reps] });
    const [row] = queuePrecision(planned, ids, [accuracy]);
    expect(row?.errors[0]?.standardError).toBeCloseTo(standardError, 15);
    expect(leastReps(accuracy, tasks, 0.015)).toBe(least);
  });

  const ORACLE = new URL('../../../shared/oracles/sampling-se.json', import.meta.url);
  test.skipIf(!existsSync(ORACLE))('every suite of the oracle (skipped: ../shared is not there)', () => {
    const oracle = JSON.parse(readFileSync(ORACLE, 'utf8')) as {
      cases: { input: { suite?: string; N: number; p: number }; expected: Record<string, number> }[];
    };
    const cases = oracle.cases.filter(
      ({ input }) => input.suite !== undefined && typeof input.p === 'number',
    );
    expect(cases.length).toBeGreaterThan(2);
    for (const { input, expected } of cases) {
      for (const reps of [1, 2, 4, 8, 16, 32, 64]) {
        const { protocol: planned, ids } = suites({ suite: [input.N, reps] });
        const error = queuePrecision(planned, ids, [input.p])[0]?.errors[0]?.standardError;
        expect(error).toBeCloseTo(expected[`se_k${reps}`] ?? Number.NaN, 14);
      }
      expect(leastReps(input.p, input.N, 0.015)).toBe(expected.kMinFor1_5pp);
    }
  });

  test('the least number of reps is the least', () => {
    const se = (p: number, n: number, k: number) => Math.sqrt((p * (1 - p)) / (n * k));
    fc.assert(
      fc.property(
        fc.double({ min: 0.01, max: 0.99, noNaN: true }),
        fc.integer({ min: 1, max: 2000 }),
        fc.double({ min: 0.002, max: 0.5, noNaN: true }),
        (p, n, limit) => {
          const k = leastReps(p, n, limit);
          if (k === null) return expect(se(p, n, 100_000)).toBeGreaterThan(limit);
          expect(se(p, n, k)).toBeLessThanOrEqual(limit * (1 + 1e-12));
          if (k > 1) expect(se(p, n, k - 1)).toBeGreaterThan(limit * (1 - 1e-12));
        },
      ),
      { seed: 1, numRuns: 2000 },
    );
    expect(leastReps(0, 10, 0.01)).toBe(1);
    expect(leastReps(0.5, 1, 0.0001)).toBeNull();
  });

  test('a plan that is not precise enough is refused with the k that would do', () => {
    const text = spoil(['max_standard_error: 0.13', 'max_standard_error: 0.06']);
    expect(() => checkPlan(read(text), SETS)).toThrow(
      expect.objectContaining({
        code: 'PLAN_IMPRECISE',
        faults: [
          expect.objectContaining({
            where: '/precision/0',
            // sqrt(0.25 / 16) = 0.125; 0.25 / (4 * 0.06^2) = 17.4
            message: expect.stringContaining('0.12500 at accuracy 0.5 (4 tasks x 4 reps), above the 0.06'),
            hint: 'It takes 18 reps.',
            line: text.split('\n').findIndex((line) => line.includes('0.06')) + 1,
          }),
        ],
      }),
    );
    expect(precisionChecks(protocol, SETS.ids)[0]).toMatchObject({
      standardError: 0.125,
      leastReps: 4,
      met: true,
    });
  });
});

describe('decisions', () => {
  const decide = (comparator: string, threshold: string) =>
    spoil(['comparator: ">"', `comparator: "${comparator}"`], ['threshold: 0', `threshold: ${threshold}`]);

  // A difference of two scores in [0, 1] lies in [-1, 1].
  test.each([
    ['>', '0.999', true, true],
    ['>', '1', false, true],
    ['>', '-1', true, true],
    ['>', '-1.001', true, false],
    ['>=', '1', true, true],
    ['>=', '1.001', false, true],
    ['>=', '-1', true, false],
    ['<', '-1', false, true],
    ['<', '1', true, true],
    ['<', '1.001', true, false],
    ['<=', '-1', true, true],
    ['<=', '-1.001', false, true],
    ['<=', '1', true, false],
  ])('difference %s %s', (comparator, threshold, canBeMet, canFail) => {
    const document = read(decide(comparator, threshold));
    expect(decisionReach(document.protocol)[0]).toMatchObject({ canBeMet, canFail });
    if (canBeMet && canFail) expect(checkPlan(document, SETS).decisions).toHaveLength(1);
    else expect(() => checkPlan(document, SETS)).toThrow(expect.objectContaining({ code: 'PLAN_ONE_SIDED' }));
  });

  test('a one-sided plan is refused with its evidence and its place', () => {
    const text = decide('>', '1.5');
    expect(() => checkPlan(read(text), SETS)).toThrow(
      expect.objectContaining({
        code: 'PLAN_ONE_SIDED',
        exitCode: 2,
        evidence: expect.objectContaining({
          decisions: [expect.objectContaining({ lowest: -1, highest: 1, can_be_met: false, can_fail: true })],
        }),
        faults: [
          expect.objectContaining({
            where: '/analysis/decisions/0',
            message: expect.stringMatching(
              /"adopt" is never met: O-base > 1.5, and O-base lies between -1 and 1/,
            ),
            line: text.split('\n').findIndex((line) => line.includes('threshold')) + 1,
          }),
        ],
      }),
    );
  });

  test('declared reward ranges count', () => {
    const grader = { kind: 'report', reward: { min: -2, max: 3 } } as const;
    const condition = { ...protocol.conditions.default, grader };
    const wide = { ...protocol, conditions: { default: condition } } as unknown as Protocol;
    expect(decisionReach(wide)[0]?.range).toEqual({ lowest: -5, highest: 5 });
  });
});

describe('sampling seeds (F-53)', () => {
  const manyReps = (bits: number, reps: number) =>
    ({
      ...protocol,
      sampling: { namespace: 'n', bits },
      queues: { main: { ...protocol.queues.main, reps } },
    }) as unknown as Protocol;

  test('no collision over the plan at 53 bits', () => {
    expect(seedCollisions(manyReps(53, 5000), SETS.ids)).toEqual({
      cells: 20_000,
      basis: 'counted',
      repeated: 0,
      repeatedInTask: 0,
    });
  });

  test('are counted as a plain set counts them', () => {
    const crowded = manyReps(12, 500);
    const seeds = SETS.ids
      .get('all')
      ?.map((task) =>
        Array.from({ length: 500 }, (_, rep) =>
          samplingSeed(crowded.sampling, { queue: 'main', evaluationSeed: 0, task, rep }),
        ),
      );
    const distinct = new Set(seeds?.flat()).size;
    const inTask = (seeds ?? []).reduce((sum, list) => sum + 500 - new Set(list).size, 0);
    expect(seedCollisions(crowded, SETS.ids)).toEqual({
      cells: 2000,
      basis: 'counted',
      repeated: 2000 - distinct,
      repeatedInTask: inTask,
    });
  });

  test('of a plan too large to count are expected: near what counting gives', () => {
    const crowded = manyReps(16, 5000);
    const counted = seedCollisions(crowded, SETS.ids);
    const expected = seedCollisions(crowded, SETS.ids, 1000);
    expect(expected).toMatchObject({ cells: 20_000, basis: 'expected', repeatedInTask: null });
    // 20,000 draws of 65,536 values: 2^16 ((1 − 2^−16)^20000 − 1) + 20000 = 2763.514 (Python, decimal), standard deviation below 50.
    expect(expected.repeated).toBeCloseTo(2763.514, 3);
    expect(Math.abs(counted.repeated - expected.repeated)).toBeLessThan(200);
  });

  test('that collide are a remark, not a fault', () => {
    const text = spoil(['bits: 31', 'bits: 8'], ['reps: 4', 'reps: 40']);
    const { remarks } = checkPlan(read(text), SETS);
    const remark = remarks.find((each) => each.about === 'sampling-seed');
    expect(remark?.message).toMatch(
      /^\d+ of 164 cells repeat the sampling seed of another cell, \d+ of them for the same/,
    );
  });
});

describe('remarks', () => {
  const about = (text: string) => checkPlan(read(text), SETS).remarks.map((remark) => remark.about);

  test('of a plain plan: the queue without a score', () => {
    expect(checkPlan(read(VALID), SETS).remarks).toEqual([
      { about: 'score', message: 'no score or table reads the queue "side"' },
    ]);
  });

  test.each([
    ['blinding', ['blinding: masked', 'blinding: none']],
    ['sources', ['sources: { server: src/server }', 'sources: {}']],
    ['order', ['[arm, training_seed]', '[queue]']],
    ['primary', ['role: primary', 'role: secondary']],
    ['path', ['models/base', '/data/models/base']],
    ['unused', ['models:\n', 'models:\n  spare: { weights: models/spare }\n']],
  ] as const)('%s', (name, edit) => {
    expect(about(spoil(edit))).toContain(name);
  });
});

describe('preview', () => {
  test('shows the first slots as a run will take them', () => {
    const expected = [...orderedSlots(protocol, SETS.ids)].slice(0, 7);
    const first = firstSlots(protocol, SETS.ids, 7, 4);
    expect(first.map((slot) => slot.id)).toEqual(expected.map((slot) => slot.id));
    for (const [i, slot] of first.entries()) {
      expect(slot.position).toBe(i);
      expect(slot.samplingSeed).toBe(samplingSeed(protocol.sampling, slot));
      expect(slot.shard).toBe(shardOf(slot.id, 4));
    }
    expect(firstSlots(protocol, SETS.ids, 0, null)).toEqual([]);
    expect(firstSlots(protocol, SETS.ids, 1000, null)).toHaveLength(60);
  });

  test('counts the slots of each shard', () => {
    const sizes = shardSizes(protocol, SETS.ids, 7);
    expect(sizes).toHaveLength(7);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(60);
    const counted = [...orderedSlots(protocol, SETS.ids)].filter((slot) => shardOf(slot.id, 7) === 3);
    expect(sizes[3]).toBe(counted.length);
  });
});
