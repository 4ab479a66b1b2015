import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalText } from '../../src/core/canonical-json.js';
import type { Protocol } from '../../src/protocol/schema/protocol.js';
import {
  expandSlots,
  isSelected,
  orderedSlots,
  planDigest,
  slotLine,
  slotsFile,
} from '../../src/slots/plan.js';
import { orderKey, type Slot, samplingSeed, shardOf, slotId, slotTuple } from '../../src/slots/slot.js';
import { read, spoil, VALID } from '../protocol/support.js';

/**
 * The figures of this file were computed with Python's standard library alone:
 * `c = lambda v: json.dumps(v, separators=(',', ':'), ensure_ascii=False).encode()`,
 * `sha = lambda b: hashlib.sha256(b).hexdigest()`, then for example `sha(c(["main", "O", 42, 0, "t1", 0]))[:32]`,
 * `int(sha(c(["small-study", "main", 0, "t1", 0]))[:16], 16) >> (64 - 31)`, `sha(c(["order", "small-study", id]))`.
 */
const ids = new Map([
  ['all', ['t1', 't2', 't3', 't4']],
  ['half', ['t3', 't1']],
]);
const protocol = read(VALID).protocol;

const key = (
  queue: string,
  arm: string,
  trainingSeed: number | null,
  evaluationSeed: number,
  task: string,
  rep: number,
) => ({
  queue,
  arm,
  trainingSeed,
  evaluationSeed,
  task,
  rep,
});
const FIRST = key('main', 'O', 42, 0, 't1', 0);
const BASE = key('main', 'base', null, 0, 't1', 0);
const ODD = key('main', 'O', 42, 3, 'a"b\\c/é題😀', 15);

describe('identity', () => {
  test.each([
    [FIRST, 'f95267bfc3e6d53c51810058660cb765', [0, 0, 3, 308]],
    [BASE, '3cfb9aa0ff9018e7acceb8b26428ec4b', [1, 1, 6, 319]],
    [ODD, 'ca6fc8cd8a04b5b179a1dd144896bb23', [1, 0, 1, 233]],
  ])('slot id and shards of 2, 3, 7, 1000: %o', (slot, id, shards) => {
    expect(slotId(slot)).toBe(id);
    expect([2, 3, 7, 1000].map((n) => shardOf(id, n))).toEqual(shards);
  });

  test.each([
    [FIRST, 'small-study', 31, 314347597],
    [BASE, 'small-study', 31, 314347597], // neither arm nor training seed enters (P18)
    [FIRST, 'ns é', 53, 1618044728046942],
    [FIRST, 'x', 8, 99],
    [ODD, 'small-study', 31, 1310995318],
    [ODD, 'ns é', 53, 6219226270899771],
    [ODD, 'x', 8, 227],
  ])('sampling seed %#', (slot, namespace, bits, seed) => {
    expect(samplingSeed({ namespace, bits }, slot)).toBe(seed);
  });

  test('order key', () => {
    expect(orderKey('small-study', 'f95267bfc3e6d53c51810058660cb765')).toBe(
      'b1ea9e2eb1788fec800a24063da9b1948790c175e31abf0e67b7534957b27446',
    );
    expect(orderKey('ns é', 'ca6fc8cd8a04b5b179a1dd144896bb23')).toBe(
      '720a1d3e3abdc8555604c5466d0d2a807e139703908b58aecd6658743f759b08',
    );
  });

  test('no two cells share a seed by the way their parts are joined (F-53)', () => {
    const sampling = { namespace: 'n', bits: 53 };
    const seed = (queue: string, task: string, rep: number, evaluationSeed = 0) =>
      samplingSeed(sampling, { queue, task, rep, evaluationSeed });
    expect(seed('q', '1', 11)).not.toBe(seed('q', '11', 1));
    expect(seed('q1', '1', 1)).not.toBe(seed('q', '11', 1));
    expect(seed('q', 't', 1, 0)).not.toBe(seed('q', 't', 0, 1));
  });
});

describe('expansion', () => {
  test('has the pinned digest, which is that of the slots file', () => {
    const digest = 'sha256:df0c22125413a28945ba836d129bfbd1a3bed510a99c4543bf22e1267f47b353';
    expect(planDigest(protocol, ids)).toEqual({ count: 60, digest });
    const file = [...slotsFile(protocol, ids)].map((piece) => piece.text).join('');
    expect(`sha256:${createHash('sha256').update(file).digest('hex')}`).toBe(digest);
    expect(file.split('\n')[0]).toBe('["f95267bfc3e6d53c51810058660cb765","main","O",42,0,"t1",0]');
  });

  test('gives the slots file line by line', () => {
    const lines = [...expandSlots(protocol, ids)].map(slotLine).join('');
    expect([...slotsFile(protocol, ids)].map((piece) => piece.text).join('')).toBe(lines);
  });

  test('counts queues x arms x seeds x evaluations x tasks x reps', () => {
    const two = read(spoil(['reps: 2,', 'reps: 2, evaluation_seeds: [0, 1, 2],'])).protocol;
    expect(planDigest(two, ids).count).toBe(3 * 4 * 4 + 3 * 3 * 2 * 2);
  });

  test('does not depend on the order in which maps and arms are written (F-19)', () => {
    const NAMES = ['10', '9', '01', 'b'];
    const written = (names: readonly string[]) =>
      spoil(
        ['  base: { weights: models/base }', names.map((n) => `  "${n}": { weights: "m/${n}" }`).join('\n')],
        [
          '  base: { model: base, condition: default }',
          names.map((n) => `  "${n}": { model: "${n}", condition: default }`).join('\n'),
        ],
        ['arms: [O, base], role: conf', `arms: [${names.map((n) => `"${n}"`).join(', ')}, O], role: conf`],
        ['arms: [O, base], role: expl', 'arms: [O, "9"], role: expl'],
        ['subtrahend: base', 'subtrahend: "9"'],
      );
    const digestOf = (names: readonly string[]) => planDigest(read(written(names)).protocol, ids);
    expect(digestOf(NAMES).count).toBe(6 * 4 * 4 + 3 * 2 * 2);
    fc.assert(
      fc.property(fc.shuffledSubarray(NAMES, { minLength: 4 }), (names) => {
        expect(digestOf(names)).toEqual(digestOf(NAMES));
      }),
      { seed: 3, numRuns: 20 },
    );
  });

  test('gives every slot its own id, equal to that of the rule', () => {
    const slots = [...expandSlots(protocol, ids)];
    expect(new Set(slots.map((slot) => slot.id)).size).toBe(60);
    for (const slot of slots) expect(slot.id).toBe(slotId(slot));
  });

  test('renders any task id as canonical JSON does', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' }), { minLength: 1, maxLength: 4 }), (tasks) => {
        for (const slot of expandSlots(protocol, new Map([['all', tasks]]))) {
          expect(slot.id).toBe(slotId(slot));
          expect(slotLine(slot)).toBe(`${canonicalText([slot.id, ...slotTuple(slot)])}\n`);
        }
      }),
      { seed: 1, numRuns: 100 },
    );
  });
});

describe('order (P19)', () => {
  const sha = (slots: Iterable<Slot>) =>
    createHash('sha256')
      .update([...slots].map((slot) => slot.id).join('\n'))
      .digest('hex');

  test('groups as declared, inside a group by hash: pinned', () => {
    expect(sha(orderedSlots(protocol, ids))).toBe(
      '1e202b68ddd402bb003f62d7973361b245bc9b983b8d28baf8643ca28b779deb',
    );
    expect([...orderedSlots(protocol, ids)].slice(0, 3).map((slot) => slot.id)).toEqual([
      '0701ba68d0ec3bc8cbde8729dd6f52d8',
      '1d0e2e5121c57c423e3b3b88c895a2a0',
      'efc4b45db25d8ec8d1c944cf108af1e0',
    ]);
  });

  test('one group: pinned', () => {
    const one = { ...protocol, order: { group_by: [], within: 'hash' as const } };
    expect(sha(orderedSlots(one, ids))).toBe(
      '592acaafd4066c6e9466d22970fc6d006390329a116859407aea573837ab66dd',
    );
  });

  test('equals a plain sort by whole keys, where leading bits agree too', () => {
    const tasks = Array.from({ length: 20_000 }, (_, i) => `task-${i}`);
    const large = { ...protocol, order: { group_by: [], within: 'hash' as const } };
    const many = new Map([['all', tasks]]);
    const slots = [...expandSlots(large, many)].map((slot) => ({
      slot,
      key: orderKey('small-study', slot.id),
    }));
    slots.sort((a, b) => (a.key < b.key ? -1 : 1));
    const leading = slots.map(({ key: whole }) => whole.slice(0, 8));
    // 240,000 slots: some pair is expected to agree in its leading 32 bits.
    expect(leading.some((bits, i) => bits === leading[i - 1])).toBe(true);
    const expected = slots.map(({ slot }) => slot.id);
    expect([...orderedSlots(large, many)].map((slot) => slot.id)).toEqual(expected);
  });

  test('a selection is the plan order with the others left out', () => {
    const all = [...orderedSlots(protocol, ids)];
    const selections = [
      { only: { arm: 'base' } },
      { only: { training_seed: '7', queue: 'main' } },
      { only: { training_seed: 'null' } },
      { only: { task: 't3' }, shard: { index: 1, count: 3 } },
      { only: { slot: all[17]?.id ?? '' } },
      { only: { arm: 'nobody' } },
    ];
    for (const selection of selections) {
      expect([...orderedSlots(protocol, ids, selection)]).toEqual(
        all.filter((slot) => isSelected(slot, selection)),
      );
    }
    expect([...orderedSlots(protocol, ids, { only: { slot: all[17]?.id ?? '' } })]).toEqual([all[17]]);
  });

  test('slots are left out by their number in the expansion', () => {
    const numbers = new Map([...expandSlots(protocol, ids)].map(({ id }, number) => [id, number]));
    const all = [...orderedSlots(protocol, ids)];
    for (const [of, selection] of [
      [2, {}],
      [3, { only: { queue: 'main' } }],
      [1, {}],
      [5, { shard: { index: 0, count: 2 } }],
    ] as const) {
      const without = (number: number) => number % of === 0;
      expect([...orderedSlots(protocol, ids, { ...selection, without })]).toEqual(
        all.filter((slot) => isSelected(slot, selection) && !without(numbers.get(slot.id) ?? 0)),
      );
    }
  });

  test('shards partition the plan, in plan order', () => {
    const all = [...orderedSlots(protocol, ids)].map((slot) => slot.id);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), (count) => {
        const shards = Array.from({ length: count }, (_, index) =>
          [...orderedSlots(protocol, ids, { shard: { index, count } })].map((slot) => slot.id),
        );
        expect(shards.flat().sort()).toEqual([...all].sort());
        for (const shard of shards) expect(all.filter((id) => shard.includes(id))).toEqual(shard);
      }),
      { seed: 1, numRuns: 20 },
    );
  });

  test('is lazy: the first slot of a large plan does not wait for later groups', () => {
    const tasks = Array.from({ length: 2000 }, (_, i) => `task-${i}`);
    const queues = Object.fromEntries(
      Array.from({ length: 1000 }, (_, i) => [`q${i}`, { ...protocol.queues.main, reps: 100 }]),
    );
    const huge = {
      ...protocol,
      queues,
      order: { group_by: ['queue', 'arm', 'training_seed'], within: 'hash' },
    };
    const start = performance.now();
    orderedSlots(huge as unknown as Protocol, new Map([['all', tasks]])).next();
    // 600 million slots in all; one group has 200,000.
    expect(performance.now() - start).toBeLessThan(20_000);
  });
});
