import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalText } from '../../src/core/canonical-json.js';
import { digestOf } from '../../src/core/digest.js';
import { BoundbookError } from '../../src/core/errors.js';
import type { Protocol } from '../../src/protocol/schema/protocol.js';
import { buildReport } from '../../src/report/build.js';
import type { SlotOutcome } from '../../src/report/report-input.js';
import type { ContrastResult, QueueResult, Report } from '../../src/report/value.js';
import { complete, input, outcomeOf, planned, protocol, settled, taskIds } from './fixture.js';

const keys = planned();
/** Draws are the slow part and no subject of most tests here. */
const quick: Protocol = {
  ...protocol,
  analysis: { ...protocol.analysis, interval: { ...protocol.analysis.interval, resamples: 100 } },
};

function report(change: Parameters<typeof input>[0] = {}): Report {
  return buildReport(input({ protocol: quick, ...change }));
}

function queueOf(value: Report, queue: string): QueueResult {
  const found = value.results?.find((result) => result.queue === queue);
  if (found === undefined) throw new Error(`no results for ${queue}`);
  return found;
}

function contrastOf(value: Report, id: string): ContrastResult {
  const found = queueOf(value, 'main').contrasts.find((contrast) => contrast.id === id);
  if (found === undefined) throw new Error(`no contrast ${id}`);
  return found;
}

/** The mean over tasks of the means over reps, by the most plain loop. */
function plainScore(
  queue: string,
  arm: string,
  seed: number | null,
  rewardOf: (i: number) => number = (i) => outcomeOf(keyAt(i)),
) {
  const tasks = new Map<string, number[]>();
  keys.forEach((key, i) => {
    if (key.queue !== queue || key.arm !== arm || key.trainingSeed !== seed) return;
    tasks.set(key.task, [...(tasks.get(key.task) ?? []), rewardOf(i)]);
  });
  const means = [...tasks.values()].map((values) => values.reduce((a, b) => a + b, 0) / values.length);
  return means.reduce((a, b) => a + b, 0) / means.length;
}

function keyAt(i: number) {
  const key = keys[i];
  if (key === undefined) throw new Error('no such slot');
  return key;
}

function withStates(states: ReadonlyMap<number, 'unresolved' | 'pending'>): SlotOutcome[] {
  return keys.map((key, i) => {
    const state = states.get(i);
    return state === undefined ? settled(key) : { key, state };
  });
}

describe('scores', () => {
  it('are means over tasks of means over reps, for each set of weights', () => {
    for (const queue of ['main', 'wide']) {
      for (const row of queueOf(report(), queue).scores?.rows ?? []) {
        const expected = plainScore(queue, row.arm, row.training_seed);
        expect(row.bound.lower.value).toBeCloseTo(expected, 14);
        expect(row.bound.upper.exact).toBe(row.bound.lower.exact);
        expect(row.complete).toBe(true);
      }
    }
    expect(queueOf(report(), 'main').scores?.rows).toHaveLength(11);
  });

  it('count N, K and S, and stay in the plan denominator (P15)', () => {
    const at = keys.findIndex(
      (key) => key.arm === 'M' && key.queue === 'main' && key.trainingSeed === 42 && outcomeOf(key) === 1,
    );
    const value = report({ slots: withStates(new Map([[at, 'unresolved']])) });
    const row = queueOf(value, 'main').scores?.rows.find(
      (each) => each.arm === 'M' && each.training_seed === 42,
    );
    expect(row).toMatchObject({ planned: 8, settled: 7, unresolved: 1, pending: 0, complete: false });
    expect(row?.sum.exact).toBe('7');
    // [S/N, (S + N − K)/N]
    expect([row?.bound.lower.exact, row?.bound.upper.exact]).toEqual(['7/8', '1']);
    expect(row?.sampling_standard_error).toBeNull();
    expect(row?.saturation).toBeNull();
  });

  it('treat slots without any attempt as pending', () => {
    const value = report({ slots: [] });
    expect(value.coverage.total).toEqual({ planned: 124, settled: 0, unresolved: 0, pending: 124 });
    const row = queueOf(value, 'main').scores?.rows[0];
    expect([row?.bound.lower.exact, row?.bound.upper.exact]).toEqual(['0', '1']);
  });

  it('name saturation with a Wilson interval over tasks (F-143)', () => {
    const rows = queueOf(report(), 'main').scores?.rows ?? [];
    const full = rows.find((row) => row.arm === 'M' && row.training_seed === 42);
    expect(full?.saturation).toMatchObject({ at: 'highest', tasks: 4 });
    // statsmodels proportion_confint(4, 4, method='wilson')
    expect(full?.saturation?.wilson.low).toBeCloseTo(0.5101091635454027, 12);
    expect(full?.saturation?.wilson.high).toBe(1);
    expect(rows.filter((row) => row.saturation !== null)).toHaveLength(1);
  });

  it('give several evaluations a row each, their mean and their SD (C8, F-145)', () => {
    const plan: Protocol = {
      ...quick,
      queues: {
        main: {
          tasks: 'rest',
          reps: 1,
          arms: ['base', 'E'],
          role: 'confirmatory',
          evaluation_seeds: [0, 1, 2],
        },
      },
      analysis: {
        ...quick.analysis,
        scores: [{ id: 's', queue: 'main' }],
        contrasts: [],
        tables: [],
        decisions: [],
      },
    };
    // base: 0/2, 1/2, 2/2 over the evaluations.
    const slots = planned(plan).map((key) =>
      settled(key, key.arm === 'E' || key.evaluationSeed + Number(key.task === 't5') > 1 ? 1 : 0),
    );
    const scores = queueOf(report({ protocol: plan, slots }), 'main').scores;
    const base = scores?.rows.find((row) => row.arm === 'base');
    expect(base).toMatchObject({ planned: 6, settled: 6 });
    expect(base?.bound.lower.exact).toBe('1/2');
    expect(base?.evaluation_spread).toMatchObject({ count: 3, standard_deviation: 0.5 });
    const evaluations = scores?.evaluations.filter((row) => row.arm === 'base');
    expect(evaluations?.map((row) => [row.evaluation_seed, row.bound.lower.exact])).toEqual([
      [0, '0'],
      [1, '1/2'],
      [2, '1'],
    ]);
    expect(scores?.rows.find((row) => row.arm === 'E')?.evaluation_spread?.standard_deviation).toBe(0);
  });
});

describe('contrasts', () => {
  it('average paired training seeds (P2, P8)', () => {
    const contrast = contrastOf(report(), 'M-B');
    const seeds = [42, 314159, 271828];
    const differences = seeds.map((s) => plainScore('main', 'M', s) - plainScore('main', 'B', s));
    expect(contrast.pairing).toBe('paired_seeds');
    expect(contrast.pairs.map((pair) => pair.minuend_seed)).toEqual(seeds);
    contrast.pairs.forEach((pair, i) => {
      expect(pair.bound.lower.value).toBeCloseTo(differences[i] ?? Number.NaN, 14);
    });
    expect(contrast.estimate?.value).toBeCloseTo(differences.reduce((a, b) => a + b, 0) / 3, 14);
    expect(contrast.interval).toMatchObject({ method: 'two_way_bootstrap', resamples: 100, seed: 20260927 });
  });

  it('compare E with its one seed, without seed error bars (P3)', () => {
    const contrast = contrastOf(report(), 'M-E');
    expect(contrast.pairing).toBe('one_seed');
    expect(contrast.pairs.map((pair) => [pair.minuend_seed, pair.subtrahend_seed])).toEqual([[42, 42]]);
    expect(contrast.spread).toBeNull();
    expect(contrast.interval).toMatchObject({
      method: 'task_bootstrap',
      order: 'for each resample the tasks',
    });
    expect(contrast.statements.join(' ')).toContain('there is no seed error bar');
  });

  it('depend only on the slots of the seeds that pair', () => {
    const other = keys.findIndex(
      (key) => key.queue === 'main' && key.arm === 'M' && key.trainingSeed === 314159,
    );
    const value = report({ slots: withStates(new Map([[other, 'unresolved']])) });
    expect(contrastOf(value, 'M-E').estimate).not.toBeNull();
    expect(contrastOf(value, 'M-B').estimate).toBeNull();
  });

  it('hold weights without a seed fixed, and count their slots once', () => {
    const at = keys.findIndex((key) => key.queue === 'main' && key.arm === 'base');
    expect(contrastOf(report(), 'M-base').pairing).toBe('one_side_fixed');
    const open = contrastOf(report({ slots: withStates(new Map([[at, 'unresolved']])) }), 'M-base');
    expect(open.missing).toEqual({ unresolved: 1, pending: 0 });
    expect(open.pairs).toHaveLength(3);
  });

  it('have no value when no training seed is common', () => {
    const plan = { ...quick, models: { ...quick.models, B: { training_seeds: [7], weights: 'models/B' } } };
    const slots = planned(plan).map((key) => settled(key));
    const contrast = contrastOf(report({ protocol: plan, slots }), 'M-B');
    expect(contrast).toMatchObject({ pairing: 'none', bound: null, estimate: null, interval: null });
    const value = report({ protocol: plan, slots });
    expect(queueOf(value, 'main').decisions[0]).toMatchObject({ status: 'undecided', conclusion: 'B stays' });
  });

  it('show the same draws to all contrasts: M-B plus B-O is M-O at every end', () => {
    const contrasts: Protocol['analysis']['contrasts'] = [
      { id: 'M-B', minuend: 'M', subtrahend: 'B', queue: 'main', role: 'primary' },
      { id: 'B-M', minuend: 'B', subtrahend: 'M', queue: 'main', role: 'exploratory' },
    ];
    const value = report({ protocol: { ...protocol, analysis: { ...protocol.analysis, contrasts } } });
    const [there, back] = [contrastOf(value, 'M-B').interval, contrastOf(value, 'B-M').interval];
    expect(back?.lower).toBeCloseTo(-(there?.upper ?? Number.NaN), 12);
    expect(back?.upper).toBeCloseTo(-(there?.lower ?? Number.NaN), 12);
  });

  it('say what an interval over three seeds is worth (P9)', () => {
    const notes = report().interval_notes.join(' ');
    expect(notes).toContain('approximate sensitivity statement');
    expect(notes).toContain('2/3 of the variance between training seeds');
    expect(notes).toContain('with probability 1/27, more than the 2.5 % of a tail');
    expect(notes).toContain('75.0 % of cases');
    expect(notes).toContain('seedrandom 3.0.5 (ARC4)');
  });
});

describe('law 6', () => {
  const affected = (id: string, i: number): boolean => {
    const key = keyAt(i);
    const contrast = protocol.analysis.contrasts.find((each) => each.id === id);
    if (key.queue !== contrast?.queue) return false;
    if (id === 'M-E' && key.arm === 'M') return key.trainingSeed === 42;
    return key.arm === contrast.minuend || key.arm === contrast.subtrahend;
  };

  it('no point, interval or spread of a contrast with one unsettled slot, and all others as they were', () => {
    const whole = report();
    for (let i = 0; i < keys.length; i += 3) {
      for (const state of ['unresolved', 'pending'] as const) {
        const value = report({ slots: withStates(new Map([[i, state]])) });
        for (const { id } of protocol.analysis.contrasts) {
          const contrast = contrastOf(value, id);
          if (affected(id, i)) {
            expect(contrast).toMatchObject({ complete: false, estimate: null, interval: null, spread: null });
            expect(contrast.bound?.lower.exact).not.toBe(contrast.bound?.upper.exact);
          } else {
            expect(contrast).toEqual(contrastOf(whole, id));
          }
        }
      }
    }
  });

  it('bounds are the extremes over every completion', () => {
    const open = fc.uniqueArray(fc.nat(keys.length - 1), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(open, (holes) => {
        const value = report({ slots: withStates(new Map(holes.map((i) => [i, 'unresolved']))) });
        const bound = contrastOf(value, 'M-B').bound;
        const estimates = Array.from({ length: 2 ** holes.length }, (_, mask) => {
          const filled = (i: number) => {
            const hole = holes.indexOf(i);
            return hole < 0 ? outcomeOf(keyAt(i)) : (mask >> hole) & 1;
          };
          const score = (arm: string, seed: number) => plainScore('main', arm, seed, filled);
          const seeds = [42, 314159, 271828];
          return seeds.reduce((total, s) => total + score('M', s) - score('B', s), 0) / 3;
        });
        expect(bound?.lower.value).toBeCloseTo(Math.min(...estimates), 12);
        expect(bound?.upper.value).toBeCloseTo(Math.max(...estimates), 12);
      }),
      { numRuns: 30 },
    );
  });
});

describe('law 8', () => {
  it('the blinded report is the same whatever the outcomes are', () => {
    const blinded = (rewardOf: (i: number) => number) =>
      canonicalText(report({ unblinded: null, slots: keys.map((key, i) => settled(key, rewardOf(i))) }));
    const first = blinded(() => 0);
    fc.assert(
      fc.property(fc.array(fc.constantFrom(0, 1), { minLength: 124, maxLength: 124 }), (values) => {
        expect(blinded((i) => values[i] ?? 0)).toBe(first);
      }),
      { numRuns: 20 },
    );
  });

  it('holds no result, failure or truncation, and other failures change nothing', () => {
    const value = report({ unblinded: null });
    expect(value).toMatchObject({ results: null, failures: null, truncation: null, interval_notes: [] });
    expect(report({ unblinded: null, failures: [], generations: [] })).toEqual(value);
    expect(value.notes.join(' ')).toContain('Outcomes are blinded');
  });

  it('blinding: none is said, and still waits for unblinding', () => {
    const value = report({ unblinded: null, protocol: { ...quick, blinding: 'none' } });
    expect(value.results).toBeNull();
    expect(value.notes.join(' ')).toContain('no blinding');
  });
});

describe('law 9', () => {
  const labels = (value: Report) => [
    ...(value.results ?? []).flatMap((result) => [
      result.label,
      ...result.contrasts.map((contrast) => contrast.label),
      ...result.tables.map((table) => table.label),
      ...result.tables.flatMap((table) => table.partitions.flatMap((p) => p.contrasts.map((c) => c.label))),
      ...result.decisions.map((decision) => decision.label),
    ]),
  ];

  it('labels figures as the plan declares them, and no better than their queue', () => {
    const main = queueOf(report(), 'main');
    expect(main.contrasts.map((contrast) => contrast.label)).toEqual([
      'confirmatory',
      'secondary',
      'secondary',
      'exploratory',
    ]);
    expect(queueOf(report(), 'wide').tables[0]?.label).toBe('exploratory');
  });

  it('after a partial unblinding nothing is confirmatory', () => {
    const value = report({ unblinded: { partial: true } });
    expect(value.visibility).toBe('unblinded_partially');
    expect(new Set(labels(value))).toEqual(new Set(['exploratory']));
  });

  it('nor after an amendment that saw outcomes', () => {
    const exposure = { slots_run: 10, settled: 9, unblinded: false, declared: null };
    const revision = {
      revision: 2,
      manifest: digestOf('r2'),
      supersedes: digestOf('r1'),
      reason: 'fewer seeds',
      exposure,
      changes: null,
    };
    const unseen = report({ revisions: [revision] });
    expect(unseen).toMatchObject({ amendment: 'before unblinding', demoted: [] });
    expect(labels(unseen)).toContain('confirmatory');
    expect(unseen.notes.join(' ')).toContain('fewer seeds');
    // An earlier one that saw outcomes is enough.
    const seen = { ...revision, exposure: { ...exposure, unblinded: true } };
    const late = report({ revisions: [revision, seen] });
    expect(late).toMatchObject({ amendment: 'post hoc', demoted: ['post hoc'] });
    expect(new Set(labels(late))).toEqual(new Set(['exploratory']));
  });

  it('nor when another revision took the place of the plan', () => {
    const successor = { manifest: digestOf('r2'), revision: 2, reason: 'fewer seeds', entry: 99 };
    const value = report({ successor });
    expect(value.demoted).toEqual(['superseded']);
    expect(new Set(labels(value))).toEqual(new Set(['exploratory']));
    expect(value.notes.join(' ')).toMatch(/superseded: revision 2 .* with entry 99 \(fewer seeds\)/);
  });

  it('attempts after an unblinding are counted and called exploratory', () => {
    const value = report({
      attempts: { ...input().attempts, after_unblinding: 3 },
      unblinded: { partial: true },
    });
    expect(value.attempts.after_unblinding).toBe(3);
    expect(value.notes.join(' ')).toContain('3 attempts were started when outcomes could be read already');
  });

  it('shows no score for a queue without a declared one', () => {
    const plan = { ...quick, analysis: { ...quick.analysis, scores: [{ id: 'm', queue: 'main' }] } };
    expect(queueOf(report({ protocol: plan }), 'wide').scores).toBeNull();
  });
});

describe('partitions and decisions', () => {
  it('cut the queue and keep the computation (P4, P9)', () => {
    const [table] = queueOf(report(), 'wide').tables;
    expect(table?.partitions.map((each) => [each.partition, each.tasks])).toEqual([
      ['holdout', 4],
      ['rest', 2],
    ]);
    // Only M and B are in this queue: M-O, M-E and M-base are not computed there.
    expect(table?.partitions[0]?.contrasts.map((contrast) => contrast.id)).toEqual(['M-B']);
    expect(table?.partitions[1]?.contrasts[0]?.interval?.degenerate).toBe('no_variation');
  });

  it('show an empty partition as empty', () => {
    const ids = new Map([...taskIds, ['rest', ['t9']]]);
    const [table] = queueOf(report({ taskIds: ids }), 'wide').tables;
    expect(table?.partitions[1]).toEqual({ partition: 'rest', tasks: 0, scores: null, contrasts: [] });
  });

  it('are taken at the unfavourable end', () => {
    const m = keys.flatMap((key, i) => (key.queue === 'main' && key.arm === 'M' ? [i] : []));
    const status = (open: readonly number[]) =>
      queueOf(report({ slots: withStates(new Map(open.map((i) => [i, 'unresolved']))) }), 'main')
        .decisions[0];
    expect(status([])).toMatchObject({ status: 'met', conclusion: 'M is adopted', label: 'confirmatory' });
    expect(status(m.slice(0, 2))).toMatchObject({ status: 'met' });
    expect(status(m)).toMatchObject({ status: 'undecided', conclusion: 'B stays' });
    const wrong = keys.map((key) => settled(key, key.arm === 'M' ? 0 : 1));
    expect(queueOf(report({ slots: wrong }), 'main').decisions[0]).toMatchObject({ status: 'not_met' });
  });
});

describe('law 10', () => {
  it('same input, same bytes, in any order of rows (F-147)', () => {
    const once = canonicalText(report());
    expect(canonicalText(report())).toBe(once);
    const order = fc.shuffledSubarray([...complete()], { minLength: 124, maxLength: 124 });
    fc.assert(
      fc.property(order, (slots) => {
        expect(canonicalText(report({ slots }))).toBe(once);
      }),
      { numRuns: 10 },
    );
    const reversed = input().failures.toReversed();
    expect(canonicalText(report({ failures: reversed }))).toBe(once);
  });

  it('takes fractional rewards in any order', () => {
    const plan: Protocol = {
      ...quick,
      conditions: {
        default: {
          prompt: { user: 'x' },
          decoding: { temperature: 1, top_p: 1, top_k: -1, min_p: 0, max_tokens: 8 },
          grader: { kind: 'report', reward: { min: -1, max: 2 } },
        },
      },
    };
    const slots = keys.map((key, i) => settled(key, [0.1, 0.2, 0.3, -0.7, 1.9][i % 5] ?? 0));
    const once = canonicalText(report({ protocol: plan, slots }));
    expect(canonicalText(report({ protocol: plan, slots: slots.toReversed() }))).toBe(once);
    const open = report({ protocol: plan, slots: [] });
    expect(contrastOf(open, 'M-B').bound).toMatchObject({ lower: { exact: '-3' }, upper: { exact: '3' } });
  });
});

describe('refusals and caveats', () => {
  it('refuses slots outside the plan (P2)', () => {
    const [key] = keys;
    if (key === undefined) throw new Error('no slot');
    for (const foreign of [
      { ...key, rep: 99 },
      { ...key, trainingSeed: 7 },
      { ...key, task: 't9' },
      { ...key, arm: 'X' },
    ]) {
      expect(() => report({ slots: [settled(foreign, 1)] })).toThrow(
        expect.objectContaining({ code: 'SLOT_NOT_PLANNED' }),
      );
    }
    expect(() => report({ slots: [...complete(), settled(key, 1)] })).toThrow(BoundbookError);
  });

  it('names what differs between the conditions of two arms (F-155)', () => {
    const condition = protocol.conditions.default;
    if (condition === undefined) throw new Error('no condition');
    const plan: Protocol = {
      ...quick,
      conditions: { ...quick.conditions, warm: { ...condition, reasoning: 'on' } },
      arms: { ...quick.arms, B: { model: 'B', condition: 'warm' } },
    };
    expect(report({ protocol: plan }).caveats.join(' ')).toContain(
      'M-B: the arms run under different conditions (reasoning)',
    );
    expect(report().caveats.join(' ')).not.toContain('different conditions');
  });

  it('says that queues share tasks and are not pooled (P5, D-24)', () => {
    const caveats = report().caveats.join(' ');
    expect(caveats).toContain('nothing is pooled over them');
    expect(caveats).toContain('The queues main and wide share 4 tasks');
  });

  it('leaves truncation out where no finish reason is known', () => {
    expect(report().truncation).toEqual([{ arm: 'M', known: 32, truncated: 2, unknown: 0 }]);
  });
});
