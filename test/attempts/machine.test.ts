import { describe, expect, test } from 'vitest';
import { step } from '../../src/attempts/machine.js';
import { nextAction } from '../../src/attempts/next-action.js';
import type { SlotEvent } from '../../src/attempts/slot-event.js';
import { PLANNED, type SlotRules, type SlotState } from '../../src/attempts/slot-state.js';
import {
  A1,
  A2,
  A3,
  byModelFailure,
  byReport,
  byRule,
  C1,
  C2,
  failed,
  failure,
  finished,
  generated,
  graded,
  R1,
  R2,
  RULES,
  recovered,
  signalsOf,
  start,
  unresolved,
  verdict,
} from './events.js';

function replay(events: readonly SlotEvent[], rules: SlotRules = RULES): SlotState {
  return events.reduce<SlotState>((state, event) => {
    const result = step(state, event, rules);
    if (!result.ok) throw new Error(`${event.type}: ${result.violation.clause} ${result.violation.message}`);
    return result.state;
  }, PLANNED);
}

/** The clause that refuses `event` after `events`; null when it is lawful. */
function refusal(events: readonly SlotEvent[], event: SlotEvent, rules: SlotRules = RULES): string | null {
  const result = step(replay(events, rules), event, rules);
  return result.ok ? null : result.violation.clause;
}

// Histories that several rows share.
const GENERATING = [start(A1)];
const GRADING = [start(A1), generated(A1)];
const REPORTED = [...GRADING, graded(A1, 0)];
const DONE = [...REPORTED, finished(A1, 'report')];
const SETTLED = [...DONE, byReport(0, A1)];
const LOST = [start(A1), ...failure(A1, 'generate', 'infrastructure')];
const REPLACED = [...LOST, start(A2, 'replacement', A1)];
const LOST_TWICE = [...REPLACED, ...failure(A2, 'generate', 'infrastructure')];
const GRADER_BROKE = [...GRADING, ...failure(A1, 'grade', 'infrastructure')];
const REGRADING = [...GRADER_BROKE, start(A2, 'regrade', A1, C1)];
const GRADER_BROKE_TWICE = [...REGRADING, ...failure(A2, 'grade', 'infrastructure')];
const UNKNOWN = [start(A1), ...failure(A1, 'generate', 'undetermined')];
const UNRESOLVED = [...UNKNOWN, unresolved('undetermined')];
const AT_LIMIT = [...LOST_TWICE, unresolved('limit_reached')];
const MODEL = [start(A1), ...failure(A1, 'generate', 'model')];
const MODEL_SETTLED = [...MODEL, byModelFailure(A1)];
const JUDGED_MODEL = [...UNRESOLVED, verdict(A1, 'model'), byModelFailure(A1)];

describe('lawful lives of a slot', () => {
  test.each<[string, readonly SlotEvent[], number | string]>([
    ['P11 a report of 0 settles the slot', SETTLED, 0],
    [
      'P11 a report of 1 settles the slot',
      [...GRADING, graded(A1, 1), finished(A1, 'report'), byReport(1, A1)],
      1,
    ],
    [
      'P13 one replacement with the same seed',
      [...REPLACED, generated(A2), graded(A2, 1), finished(A2, 'report'), byReport(1, A2)],
      1,
    ],
    [
      'P12 one regrade of the same candidate',
      [...REGRADING, graded(A2, 1, C1, R2), finished(A2, 'report'), byReport(1, A2, R2)],
      1,
    ],
    [
      'P12, P13 a replacement whose grader fails is regraded',
      [
        ...REPLACED,
        generated(A2, C2),
        ...failure(A2, 'grade', 'infrastructure'),
        start(A3, 'regrade', A2, C2),
        graded(A3, 1, C2),
        finished(A3, 'report'),
        byReport(1, A3),
      ],
      1,
    ],
    ['P14 a model failure with nothing to grade is 0', MODEL_SETTLED, 0],
    [
      'P14 a model failure after a lost attempt is 0',
      [...REPLACED, ...failure(A2, 'generate', 'model'), byModelFailure(A2)],
      0,
    ],
    ['P14 the undetermined stays unresolved', UNRESOLVED, 'undetermined'],
    ['P15 the second loss reaches the limit', AT_LIMIT, 'limit_reached'],
    [
      'P15 the second grader fault reaches the limit',
      [...GRADER_BROKE_TWICE, unresolved('limit_reached')],
      'limit_reached',
    ],
    ['P14 an adjudicator says model', JUDGED_MODEL, 0],
    [
      'P14 an adjudicator says infrastructure',
      [
        ...UNRESOLVED,
        verdict(A1, 'infrastructure'),
        start(A2, 'replacement', A1),
        generated(A2),
        graded(A2, 1),
        finished(A2, 'report'),
        byReport(1, A2),
      ],
      1,
    ],
    [
      'P14 an adjudicator cannot tell',
      [...UNRESOLVED, verdict(A1, 'undetermined'), unresolved('undetermined')],
      'undetermined',
    ],
    [
      'P14 a verdict of infrastructure on a graded candidate gives a regrade',
      [
        ...GRADING,
        ...failure(A1, 'grade', 'undetermined'),
        unresolved('undetermined'),
        verdict(A1, 'infrastructure'),
        start(A2, 'regrade', A1, C1),
        graded(A2, 1),
        finished(A2, 'report'),
        byReport(1, A2),
      ],
      1,
    ],
    [
      'a verdict at the limit stays unresolved',
      [
        ...REPLACED,
        ...failure(A2, 'generate', 'undetermined'),
        unresolved('undetermined'),
        verdict(A2, 'infrastructure'),
        unresolved('limit_reached'),
      ],
      'limit_reached',
    ],
    [
      'a verdict is revised before unblinding',
      [...JUDGED_MODEL, verdict(A1, 'undetermined'), unresolved('undetermined')],
      'undetermined',
    ],
    [
      'a revised verdict reopens a slot that it had closed at the limit',
      [
        ...REPLACED,
        ...failure(A2, 'generate', 'undetermined'),
        unresolved('undetermined'),
        verdict(A2, 'infrastructure'),
        unresolved('limit_reached'),
        verdict(A2, 'model'),
        byModelFailure(A2),
      ],
      0,
    ],
    [
      'a dead process with nothing made is replaced',
      [
        start(A1),
        recovered(A1, 'nothing'),
        finished(A1, 'failure'),
        start(A2, 'replacement', A1),
        generated(A2),
        graded(A2, 1),
        finished(A2, 'report'),
        byReport(1, A2),
      ],
      1,
    ],
    [
      'a dead process with a candidate is graded',
      [...GRADING, recovered(A1, 'candidate'), ...REPORTED.slice(2), finished(A1, 'report'), byReport(0, A1)],
      0,
    ],
    [
      'ends that a dead process left are recorded',
      [
        start(A1),
        recovered(A1, 'end'),
        generated(A1),
        recovered(A1, 'end'),
        graded(A1, 1),
        finished(A1, 'report'),
        byReport(1, A1),
      ],
      1,
    ],
  ])('%s', (_, events, end) => {
    const state = replay(events);
    expect(nextAction(state, RULES)).toBeNull();
    expect(
      state.phase === 'settled' ? state.value : state.phase === 'unresolved' ? state.reason : state.phase,
    ).toBe(end);
  });

  test('a late verdict is counted and changes nothing', () => {
    const state = replay([...JUDGED_MODEL, verdict(A1, 'infrastructure', true)]);
    expect(state).toEqual({ ...replay(JUDGED_MODEL), lateAttributions: 1 });
    const open = replay([...UNRESOLVED, verdict(A1, 'model', true)]);
    expect(open).toEqual({ ...replay(UNRESOLVED), lateAttributions: 1 });
    expect(nextAction(open, RULES)).toBeNull();
  });
});

describe('refusals, each under its clause', () => {
  test.each<[string, readonly SlotEvent[], SlotEvent, string]>([
    ['nothing before a start', [], generated(A1), 'P11'],
    ['no settlement before a start', [], byReport(1, A1), 'P11'],
    ['no failure before a start', [], failed(A1, 'generate'), 'P11'],
    ['no attribution before a failure', GENERATING, byRule(A1, 'infrastructure', 'lost'), 'P11'],
    ['the first attempt is a first', [], start(A1, 'replacement'), 'P13'],
    ['the first attempt is no regrade', [], start(A1, 'regrade', null, C1), 'P12'],
    ['the first attempt follows nothing', [], start(A1, 'first', A2), 'P11'],
    ['the first attempt has no candidate', [], start(A1, 'first', null, C1), 'P12'],
    ['another sampling seed', [], start(A1, 'first', null, null, 8), 'P18'],
    ['another name', [], start(A2), 'P16'],
    ['two attempts at once', GENERATING, start(A2, 'replacement', A1), 'P11'],
    ['a report without candidate', GENERATING, graded(A1, 1), 'P11'],
    ['a second candidate', GRADING, generated(A1, C2), 'P11'],
    ['a candidate of another attempt', GENERATING, generated(A2), 'P16'],
    ['a report about another candidate', GRADING, graded(A1, 1, C2), 'P11'],
    ['a report of another attempt', GRADING, graded(A2, 1), 'P16'],
    ['a reward above the range', GRADING, graded(A1, 1.5), 'P11'],
    ['a reward below the range', GRADING, graded(A1, -0.5), 'P11'],
    ['a reward that is not a number', GRADING, graded(A1, Number.NaN), 'P11'],
    ['a failure of the other stage', GENERATING, failed(A1, 'grade'), 'P14'],
    ['a failure of the other stage', GRADING, failed(A1, 'generate'), 'P14'],
    ['a failure of another attempt', GENERATING, failed(A2, 'generate'), 'P16'],
    ['a second report before the end', REPORTED, graded(A1, 1, C1, R2), 'law 3'],
    ['a second report before the settlement', DONE, graded(A1, 1, C1, R2), 'law 3'],
    ['a second report after the settlement', SETTLED, graded(A1, 1, C1, R2), 'law 3'],
    ['a failure after a report', REPORTED, failed(A1, 'grade'), 'P11'],
    ['a retry after a report of 0', DONE, start(A2, 'replacement', A1), 'P11'],
    ['a retry after a settlement', SETTLED, start(A2, 'replacement', A1), 'P13'],
    ['a regrade after a settlement', SETTLED, start(A2, 'regrade', A1, C1), 'P12'],
    ['a first attempt after a settlement', SETTLED, start(A2), 'P11'],
    ['a retry after a model failure', MODEL, start(A2, 'replacement', A1), 'P11'],
    ['a retry of the undetermined', UNKNOWN, start(A2, 'replacement', A1), 'P11'],
    ['a retry of the unresolved', UNRESOLVED, start(A2, 'replacement', A1), 'P13'],
    ['a second replacement', LOST_TWICE, start(A3, 'replacement', A2), 'P11'],
    ['a second replacement after closing', AT_LIMIT, start(A3, 'replacement', A2), 'P13'],
    ['a second regrade', GRADER_BROKE_TWICE, start(A3, 'regrade', A2, C1), 'P11'],
    ['a new generation where a candidate exists', GRADER_BROKE, start(A2, 'replacement', A1), 'P13'],
    ['a regrade where no candidate exists', LOST, start(A2, 'regrade', A1, C1), 'P12'],
    ['a regrade of another candidate', GRADER_BROKE, start(A2, 'regrade', A1, C2), 'P12'],
    ['a regrade of no candidate', GRADER_BROKE, start(A2, 'regrade', A1, null), 'P12'],
    ['a regrade that names no predecessor', GRADER_BROKE, start(A2, 'regrade', null, C1), 'P12'],
    ['a replacement with another seed', LOST, start(A2, 'replacement', A1, null, 8), 'P18'],
    ['a replacement of another attempt', LOST, start(A2, 'replacement', A2), 'P13'],
    ['a replacement under a used name', LOST, start(A1, 'replacement', A1), 'P16'],
    ['a candidate in a regrade', REGRADING, generated(A2), 'P11'],
    [
      'a retry before the failure is attributed',
      [...GENERATING, failed(A1, 'generate')],
      start(A2, 'replacement', A1),
      'P11',
    ],
    ['a retry before the end is recorded', LOST.slice(0, -1), start(A2, 'replacement', A1), 'P11'],
    [
      'an attribution that no rule gives',
      [...GENERATING, failed(A1, 'generate', 'undetermined')],
      byRule(A1, 'infrastructure', 'lost'),
      'P14',
    ],
    [
      'the right attribution by the wrong rule',
      [...GENERATING, failed(A1, 'generate')],
      byRule(A1, 'infrastructure', 'grader'),
      'P14',
    ],
    [
      'an attribution of another attempt',
      [...GENERATING, failed(A1, 'generate')],
      byRule(A2, 'infrastructure', 'lost'),
      'P16',
    ],
    [
      'a late attribution by rule',
      [...GENERATING, failed(A1, 'generate')],
      { ...byRule(A1, 'infrastructure', 'lost'), late: true } as SlotEvent,
      'P14',
    ],
    ['a second attribution by rule', LOST, byRule(A1, 'infrastructure', 'lost'), 'P11'],
    [
      'an adjudicator before the rules',
      [...GENERATING, failed(A1, 'generate', 'undetermined')],
      verdict(A1, 'infrastructure'),
      'P11',
    ],
    ['an adjudicator before the slot is unresolved', UNKNOWN, verdict(A1, 'infrastructure'), 'P11'],
    ['an adjudicator over a rule that decided', LOST, verdict(A1, 'model'), 'P11'],
    ['an adjudicator over a report', SETTLED, verdict(A1, 'infrastructure'), 'P11'],
    ['an adjudicator over a model failure by rule', MODEL_SETTLED, verdict(A1, 'infrastructure'), 'P11'],
    ['an adjudicator over a rule at the limit (P15)', AT_LIMIT, verdict(A2, 'model'), 'P11'],
    ['a late adjudicator over a report', SETTLED, verdict(A1, 'infrastructure', true), 'P11'],
    [
      'an adjudicator who names a rule',
      UNRESOLVED,
      { ...verdict(A1, 'model'), rule: 'length' } as SlotEvent,
      'P14',
    ],
    ['an adjudicator on another attempt', UNRESOLVED, verdict(A2, 'model'), 'P16'],
    [
      'a verdict on an attempt that was replaced',
      [...UNRESOLVED, verdict(A1, 'infrastructure'), start(A2, 'replacement', A1)],
      verdict(A1, 'model'),
      'P11',
    ],
    ['an end without result', GENERATING, finished(A1, 'failure'), 'P11'],
    ['an end that denies the report', REPORTED, finished(A1, 'failure'), 'P11'],
    ['an end that claims a report', LOST.slice(0, -1), finished(A1, 'report'), 'P11'],
    ['two ends', DONE, finished(A1, 'report'), 'law 4'],
    ['an end of another attempt', REPORTED, finished(A2, 'report'), 'P16'],
    ['another value than the report', DONE, byReport(1, A1), 'law 3'],
    ['another report', DONE, byReport(0, A1, R2), 'law 3'],
    ['another attempt', DONE, byReport(0, A2, R1), 'law 3'],
    ['a model failure where a report lies', DONE, byModelFailure(A1), 'law 3'],
    ['a settlement before the end', REPORTED, byReport(0, A1), 'P11'],
    ['a second settlement', SETTLED, byReport(0, A1), 'law 3'],
    ['a model failure above 0', MODEL, byModelFailure(A1, 1), 'law 3'],
    ['0 for an infrastructure failure', LOST, byModelFailure(A1), 'P11'],
    ['0 for an undetermined failure', UNKNOWN, byModelFailure(A1), 'P11'],
    ['unresolved under a report', DONE, unresolved('undetermined'), 'P11'],
    ['unresolved for a model failure', MODEL, unresolved('undetermined'), 'P11'],
    ['unresolved while a retry is due', LOST, unresolved('limit_reached'), 'P11'],
    ['the wrong reason', UNKNOWN, unresolved('limit_reached'), 'P14'],
    ['the wrong reason', LOST_TWICE, unresolved('undetermined'), 'P14'],
    ['unresolved twice', UNRESOLVED, unresolved('undetermined'), 'P11'],
    ['recovery of a planned slot', [], recovered(A1, 'nothing'), 'P11'],
    ['recovery of another attempt', GENERATING, recovered(A2, 'nothing'), 'P16'],
    ['recovery of a candidate that nobody recorded', GENERATING, recovered(A1, 'candidate'), 'law 2'],
    ['recovery that drops a candidate', GRADING, recovered(A1, 'nothing'), 'P12'],
    ['recovery that drops a report', REPORTED, recovered(A1, 'nothing'), 'P11'],
    ['recovery of a settled slot', SETTLED, recovered(A1, 'candidate'), 'P11'],
    ['recovery of an end behind a report', REPORTED, recovered(A1, 'end'), 'P11'],
    ['recovery of an end of another attempt', GENERATING, recovered(A2, 'end'), 'P16'],
  ])('%s', (_, events, event, clause) => {
    expect(refusal(events, event)).toBe(clause);
  });

  test('a refused event leaves the state as it was', () => {
    const before = replay(DONE);
    const copy = structuredClone(before);
    step(before, start(A2, 'replacement', A1), RULES);
    expect(before).toEqual(copy);
  });
});

describe('the declared limits', () => {
  const none: SlotRules = { ...RULES, replacements: 0, regrades: 0 };

  test('no replacement where the protocol allows none (P13)', () => {
    expect(nextAction(replay(LOST, none), none)).toEqual({ do: 'unresolve', reason: 'limit_reached' });
    expect(refusal(LOST, start(A2, 'replacement', A1), none)).toBe('P11');
  });

  test('no regrade where the protocol allows none (P12)', () => {
    expect(nextAction(replay(GRADER_BROKE, none), none)).toEqual({
      do: 'unresolve',
      reason: 'limit_reached',
    });
    expect(refusal(GRADER_BROKE, start(A2, 'regrade', A1, C1), none)).toBe('P11');
  });

  test('the declared reward range decides what a valid report is (P11)', () => {
    const wide: SlotRules = { ...RULES, reward: { min: -1, max: 10 } };
    expect(refusal(GRADING, graded(A1, 10), wide)).toBeNull();
    expect(refusal(GRADING, graded(A1, -1), wide)).toBeNull();
    expect(refusal(GRADING, graded(A1, 10.000001), wide)).toBe('P11');
  });

  test('the settlement keeps the failure that an adjudicator may revise, and no other', () => {
    const judged = replay(JUDGED_MODEL);
    expect(judged).toMatchObject({ phase: 'settled', by: 'adjudicator' });
    expect(judged.phase === 'settled' && judged.failure).toEqual({
      attempt: A1,
      stage: 'generate',
      signals: signalsOf('generate', 'undetermined'),
      candidate: null,
    });
    expect(replay(SETTLED)).toMatchObject({ by: 'report', failure: null, basis: { report: R1 } });
  });
});
