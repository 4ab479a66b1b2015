import { describe, expect, it } from 'vitest';
import type { CheckpointMark } from '../../src/audit/checkpoint-trail.js';
import { CLOCK_TOLERANCE_S, type OrderFacts, provedOrder } from '../../src/audit/order.js';
import type { Stamp } from '../../src/audit/stamps.js';
import { type Digest, digestOf } from '../../src/core/digest.js';

const MANIFEST = digestOf('manifest');
const PARENT = digestOf('parent');
const OLD_PLAN = digestOf('old plan');
const REPORT = digestOf('report');
const NOTE = digestOf('note');
const LATER_NOTE = digestOf('later note');
const START = Date.UTC(2026, 10, 30, 12) / 1000;

/** A time so many seconds after noon. */
function at(seconds: number): string {
  return new Date((START + seconds) * 1000).toISOString();
}

function instant(seconds: number): string {
  return at(seconds).replace('.000Z', 'Z');
}

/** A stamp of one moment, give or take a second. */
function stamp(subject: Digest, seconds: number, label = 'attestations/a.tsr'): Stamp {
  return { subject, noEarlierThan: START + seconds - 1, noLaterThan: START + seconds + 1, label };
}

function mark(size: number, seconds: number, timestamps: readonly Digest[] = []): CheckpointMark {
  return { size, root: 'a'.repeat(64), time: at(seconds), before: at(seconds - 1), note: null, timestamps };
}

/** The manifest was stamped at 0 s, a token of 10 s is named at 20 s, attempts began at 30 s as entry 5. */
function facts(change: Partial<OrderFacts> = {}): OrderFacts {
  return {
    manifest: { digest: MANIFEST, created: at(-60) },
    lineage: [],
    report: null,
    firstAttempt: { seq: 5, time: at(30) },
    carries: false,
    marks: [mark(2, 20, [digestOf('token')])],
    notes: new Map(),
    stamps: new Map([
      [digestOf('plan token'), stamp(MANIFEST, 0)],
      [digestOf('token'), stamp(digestOf('anything'), 10, 'token')],
    ]),
    present: { plan: true, named: true },
    ...change,
  };
}

function stamps(...all: readonly (readonly [token: string, stamp: Stamp])[]): OrderFacts['stamps'] {
  return new Map(all.map(([token, one]) => [digestOf(token), one]));
}

describe('the order that time stamps prove', () => {
  it('plan, then first attempt: at the safe ends of what the tokens say', () => {
    const { times, lines, notChecked, notes } = provedOrder(facts());
    expect(times).toEqual({
      plan_no_later_than: instant(1),
      first_attempt_no_earlier_than: instant(9),
      entries_no_later_than: [],
      report_no_later_than: null,
      plan_before_first_attempt: true,
    });
    expect(lines).toEqual([
      'plan no later than 2026-11-30T12:00:01Z: attestations/a.tsr stamps the manifest',
      'first attempt no earlier than 2026-11-30T12:00:09Z: entry 2, before it, names the token token',
      'the plan came before the first attempt, by these time stamps',
    ]);
    expect(notChecked).toEqual([
      'whether models were asked before, outside this ledger: no time stamp shows it',
    ]);
    expect(notes).toEqual([]);
  });

  it('takes the earliest stamp of the plan and the latest token before the first attempt', () => {
    const { times } = provedOrder(
      facts({
        marks: [
          mark(2, 20, [digestOf('a'), digestOf('b')]),
          mark(4, 28, [digestOf('c')]),
          // After the first attempt: says nothing of it.
          mark(9, 60, [digestOf('d')]),
        ],
        stamps: stamps(
          ['late', stamp(MANIFEST, 5)],
          ['early', stamp(MANIFEST, 2)],
          ['a', stamp(REPORT, 12)],
          ['b', stamp(REPORT, 11)],
          ['c', stamp(MANIFEST, 18)],
          ['d', stamp(REPORT, 50)],
        ),
      }),
    );
    expect(times.plan_no_later_than).toBe(instant(3));
    expect(times.first_attempt_no_earlier_than).toBe(instant(17));
  });

  it('a token over the manifest that an entry before the first attempt names proves it whatever the times', () => {
    const { times, lines, notChecked } = provedOrder(
      facts({ stamps: stamps(['token', stamp(MANIFEST, 10)]) }),
    );
    expect(times).toMatchObject({
      plan_no_later_than: instant(11),
      first_attempt_no_earlier_than: instant(9),
      plan_before_first_attempt: true,
    });
    expect(lines.at(-1)).toBe(
      'the plan came before the first attempt: entry 2, before it, names a token over the manifest',
    );
    expect(notChecked.join()).not.toContain('whether the plan came before');
    const late = { marks: [mark(9, 60, [digestOf('token')])], present: { plan: true, named: false } };
    const after = provedOrder(facts({ ...late, stamps: stamps(['token', stamp(MANIFEST, 10)]) }));
    expect(after.times.plan_before_first_attempt).toBe(false);
  });

  it.each([
    [
      'nothing at all',
      { marks: [], stamps: null, present: { plan: false, named: false } },
      /no time stamp is over the manifest; no entry before the first attempt names a time-stamp token/,
    ],
    ['no authority', { stamps: null }, /no authority was given for the time stamps \(--tsa-ca PEM\)/],
    [
      'nothing that verifies',
      { stamps: new Map() },
      /over the manifest verifies; no token .* names verifies/,
    ],
    [
      'no stamp of the plan',
      { stamps: stamps(['token', stamp(REPORT, 10)]), present: { plan: false, named: true } },
      /: no time stamp is over the manifest$/,
    ],
    [
      'no token that an entry names',
      { marks: [], present: { plan: true, named: false } },
      /: no entry before the first attempt names a time-stamp token$/,
    ],
    [
      'a plan that was stamped after the token',
      { stamps: stamps(['p', stamp(MANIFEST, 15)], ['token', stamp(REPORT, 10)]) },
      /stamped by 2026-11-30T12:00:16Z, and the first attempt is only known to be later than 2026-11-30T12:00:09Z/,
    ],
  ] as const)('not proved with %s, and it says why', (_, change, reason) => {
    const { times, lines, notChecked, notes } = provedOrder(facts(change as Partial<OrderFacts>));
    expect(times.plan_before_first_attempt).toBe(false);
    expect(lines.join()).not.toContain('came before');
    expect(notChecked[0]).toMatch(/^whether the plan came before the first attempt, by clocks other than/);
    expect(notChecked[0]).toMatch(reason);
    expect(notes).toEqual([]);
  });

  it('a plan that was stamped when entries existed already is said to be, and is no finding', () => {
    const { times, notChecked, notes } = provedOrder(
      facts({
        marks: [mark(2, 20, [digestOf('token')]), mark(50, 100)],
        notes: new Map([[NOTE, 50]]),
        stamps: stamps(['p', stamp(MANIFEST, 500)], ['n', stamp(NOTE, 110)], ['token', stamp(REPORT, 10)]),
      }),
    );
    expect(times.entries_no_later_than).toEqual([{ entries: 50, time: instant(111) }]);
    expect(notChecked[0]).toContain('when entries 0 to 49 existed already');
    expect(notes).toEqual([]);
  });

  it('checkpoints bound the entries before them; what a longer one shows earlier is left out', () => {
    const { times, lines } = provedOrder(
      facts({
        marks: [mark(2, 20), mark(50, 100), mark(70, 140)],
        notes: new Map([
          [digestOf('n2'), 2],
          [NOTE, 50],
          [LATER_NOTE, 70],
        ]),
        report: REPORT,
        stamps: stamps(
          ['a', stamp(digestOf('n2'), 300)],
          ['b', stamp(NOTE, 120)],
          ['c', stamp(NOTE, 110)],
          ['d', stamp(LATER_NOTE, 200)],
          ['e', stamp(REPORT, 400)],
        ),
      }),
    );
    expect(times.entries_no_later_than).toEqual([
      { entries: 50, time: instant(111) },
      { entries: 70, time: instant(201) },
    ]);
    expect(times.report_no_later_than).toBe(instant(401));
    expect(lines).toContain(
      'entries 0 to 49 no later than 2026-11-30T12:01:51Z: attestations/a.tsr stamps the checkpoint over them',
    );
  });

  it('a stamp on an earlier manifest proves that one only', () => {
    const { times, lines } = provedOrder(
      facts({
        lineage: [
          { digest: PARENT, name: 'tiny', revision: 2, samePlan: true },
          { digest: OLD_PLAN, name: 'tiny', revision: 1, samePlan: false },
        ],
        stamps: stamps(['p', stamp(PARENT, 0)], ['o', stamp(OLD_PLAN, -100)], ['token', stamp(REPORT, 10)]),
        present: { plan: false, named: true },
      }),
    );
    expect(times).toMatchObject({ plan_no_later_than: null, plan_before_first_attempt: false });
    expect(lines[0]).toMatch(
      /an earlier manifest \(tiny\.r2, .*\) no later than .* the same protocol; what was bound since/,
    );
    expect(lines[1]).toMatch(/an earlier manifest \(tiny\.r1, .*another protocol/);
  });

  it('before the first attempt nothing is missing, and carried slots are named', () => {
    const none = provedOrder(facts({ firstAttempt: null }));
    expect(none.times.first_attempt_no_earlier_than).toBeNull();
    expect(none.notChecked).toEqual([]);
    expect(provedOrder(facts({ carries: true })).lines[1]).toContain('carried over were attempted before');
  });
});

describe('times that a stamp shows to be false', () => {
  const wrong = CLOCK_TOLERANCE_S + 2;

  it('an entry that names a token from its own future', () => {
    const { notes } = provedOrder(facts({ stamps: stamps(['token', stamp(REPORT, 20 + wrong)]) }));
    expect(notes).toEqual([
      {
        code: 'TIME_CONTRADICTED',
        where: { seq: 2, pointer: '/time' },
        message:
          'the entry is dated 2026-11-30T12:00:20.000Z and names a token that was not made before 2026-11-30T12:05:21Z',
      },
    ]);
  });

  it('entries that were stamped before their own time', () => {
    const { notes } = provedOrder(
      facts({
        marks: [mark(50, 100)],
        notes: new Map([[NOTE, 50]]),
        stamps: stamps(['n', stamp(NOTE, 99 - wrong)]),
      }),
    );
    expect(notes).toMatchObject([{ code: 'TIME_CONTRADICTED', where: { seq: 49 } }]);
  });

  it('a manifest that was stamped before it was frozen', () => {
    const { notes } = provedOrder(facts({ stamps: stamps(['p', stamp(MANIFEST, -60 - wrong)]) }));
    expect(notes).toMatchObject([{ code: 'TIME_CONTRADICTED', where: { pointer: '/created' } }]);
  });

  it('clocks may be off by the tolerance', () => {
    const { notes } = provedOrder(
      facts({
        marks: [mark(2, 20, [digestOf('token')]), mark(50, 100)],
        notes: new Map([[NOTE, 50]]),
        stamps: stamps(
          ['token', stamp(REPORT, 20 + CLOCK_TOLERANCE_S)],
          ['n', stamp(NOTE, 100 - CLOCK_TOLERANCE_S)],
          ['p', stamp(MANIFEST, -60 - CLOCK_TOLERANCE_S)],
        ),
      }),
    );
    expect(notes).toEqual([]);
  });
});
