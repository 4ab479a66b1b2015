import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { step } from '../../src/attempts/machine.js';
import { type Action, nextAction } from '../../src/attempts/next-action.js';
import type { SlotEvent } from '../../src/attempts/slot-event.js';
import { PLANNED, type SlotState } from '../../src/attempts/slot-state.js';
import {
  A1,
  A2,
  A3,
  A4,
  byModelFailure,
  byReport,
  byRule,
  C1,
  C2,
  failed,
  finished,
  generated,
  graded,
  R1,
  R2,
  RULES,
  recovered,
  settled,
  start,
  unresolved,
  verdict,
} from './events.js';
import { isLawful } from './naive.js';

const ATTRIBUTIONS = ['infrastructure', 'model', 'undetermined'] as const;

/** Twelve events that lead through every phase, for sequences with nothing left out. */
const SMALL: readonly SlotEvent[] = [
  start(A1),
  start(A2, 'replacement', A1),
  start(A2, 'regrade', A1, C1),
  generated(A1),
  graded(A1, 0),
  failed(A1, 'generate'),
  failed(A1, 'grade', 'undetermined'),
  byRule(A1, 'infrastructure', 'lost'),
  byRule(A1, 'undetermined', null),
  finished(A1, 'failure'),
  finished(A1, 'report'),
  byReport(0, A1),
];

/** Everything that can be said of one attempt, true or false. */
function eventsOf(attempt: string): SlotEvent[] {
  return [
    generated(attempt, C1),
    generated(attempt, C2),
    graded(attempt, 0, C1, R1),
    graded(attempt, 1, C1, R2),
    graded(attempt, 1, C2, R1),
    graded(attempt, 2, C1, R1),
    ...ATTRIBUTIONS.flatMap((whose) => [
      failed(attempt, 'generate', whose),
      failed(attempt, 'grade', whose),
      verdict(attempt, whose),
      verdict(attempt, whose, true),
    ]),
    byRule(attempt, 'infrastructure', 'lost'),
    byRule(attempt, 'infrastructure', 'grader'),
    byRule(attempt, 'model', 'length'),
    byRule(attempt, 'model', 'invalid'),
    byRule(attempt, 'undetermined', null),
    recovered(attempt, 'candidate'),
    recovered(attempt, 'nothing'),
    recovered(attempt, 'end'),
    finished(attempt, 'report'),
    finished(attempt, 'failure'),
    ...closings(attempt),
  ];
}

function closings(attempt: string): SlotEvent[] {
  return [
    byReport(0, attempt, R1),
    byReport(1, attempt, R1),
    byReport(1, attempt, R2),
    settled(0.5, { kind: 'report', attempt, report: R1 }),
    byModelFailure(attempt),
    byModelFailure(attempt, 1),
  ];
}

const STARTS: readonly SlotEvent[] = [A1, A2, A3, A4].flatMap((attempt) => [
  start(attempt),
  start(attempt, 'first', null, null, 8),
  ...[A1, A2, A3].flatMap((of) => [
    start(attempt, 'replacement', of),
    start(attempt, 'replacement', of, null, 8),
    start(attempt, 'replacement', of, C1),
    start(attempt, 'regrade', of, C1),
    start(attempt, 'regrade', of, C2),
    start(attempt, 'regrade', of, null),
  ]),
]);

const ENDS: readonly SlotEvent[] = [
  ...[A1, A2, A3].flatMap(closings),
  unresolved('undetermined'),
  unresolved('limit_reached'),
];

const FULL: readonly SlotEvent[] = [
  ...STARTS,
  ...[A1, A2, A3].flatMap(eventsOf),
  unresolved('undetermined'),
  unresolved('limit_reached'),
];

/** What the machine and the naive rules say of `event`; they must agree. */
function judge(history: readonly SlotEvent[], state: SlotState, event: SlotEvent): SlotState | null {
  const result = step(state, event, RULES);
  if (result.ok !== isLawful(history, event, RULES)) {
    throw new Error(
      `machine ${result.ok}, naive ${!result.ok}: ${JSON.stringify([...history, event].map(brief))}`,
    );
  }
  return result.ok ? result.state : null;
}

function brief(event: SlotEvent): string {
  return Object.values(event)
    .map((value) =>
      typeof value === 'object' ? JSON.stringify(value).slice(0, 60) : String(value).slice(0, 12),
    )
    .join(' ');
}

/** The event that carries out an action, when the action fixes it. */
function eventFor(action: Action, state: SlotState): SlotEvent | null {
  switch (action.do) {
    case 'start': {
      const attempt = [A1, A2, A3, A4][state.attempts.length] ?? '';
      return start(attempt, action.kind, action.of, action.candidate);
    }
    case 'settle':
      return settled(action.value, action.basis);
    case 'unresolve':
      return unresolved(action.reason);
    case 'finish':
      return finished(action.attempt, action.outcome);
    default:
      return null;
  }
}

const key = (event: SlotEvent): string => JSON.stringify(Object.entries(event).sort());

/** All starts and closings with their keys. */
const CANDIDATES = [...STARTS, ...ENDS].map((event) => ({ event, key: key(event) }));

/** How often verdicts may repeat inside a walked history; each further one is still judged as a continuation. */
const MAX_VERDICTS = 3;

function verdictsIn(history: readonly SlotEvent[]): number {
  return history.filter((event) => event.type === 'attribution.recorded' && event.by === 'adjudicator')
    .length;
}

/** The same for recovered ends, which change no state; a history with one is walked to a smaller length. */
const MAX_ENDS = 1;
const END_COSTS = 4;

function endsIn(history: readonly SlotEvent[]): number {
  return history.filter((event) => event.type === 'attempt.recovered' && event.found === 'end').length;
}

/** `nextAction` and `step` say the same about starts, ends and closings. */
function agree(state: SlotState): void {
  const action = nextAction(state, RULES);
  const due = action === null ? null : eventFor(action, state);
  if (due !== null && !step(state, due, RULES).ok) throw new Error(`due, yet refused: ${brief(due)}`);
  const dueKey = due === null ? null : key(due);
  for (const { event, key } of CANDIDATES) {
    if (step(state, event, RULES).ok !== (key === dueKey))
      throw new Error(`not due, yet taken: ${brief(event)}`);
  }
}

/** What no lawful history may break, whatever else it holds. */
function holdInvariants(history: readonly SlotEvent[]): void {
  const starts = history.filter((event) => event.type === 'attempt.started');
  const judged = history.some((event) => event.type === 'attribution.recorded' && event.by === 'adjudicator');
  const settlements = history.filter((event) => event.type === 'slot.settled');
  const reports = history.filter((event) => event.type === 'graded');
  expect(starts.filter((event) => event.kind === 'replacement').length).toBeLessThanOrEqual(1);
  expect(starts.filter((event) => event.kind === 'regrade').length).toBeLessThanOrEqual(1);
  expect(reports.length).toBeLessThanOrEqual(1);
  if (!judged) expect(settlements.length).toBeLessThanOrEqual(1);
  for (const event of starts) expect(event.samplingSeed).toBe(RULES.samplingSeed);
  const byReports = settlements.filter((event) => event.basis.kind === 'report');
  expect(byReports.length).toBeLessThanOrEqual(1);
  for (const event of byReports) {
    expect(event.value).toBe(reports[0]?.value);
    expect(event.basis).toMatchObject({ attempt: reports[0]?.attempt, report: reports[0]?.report });
  }
  const known = new Set<string>();
  for (const event of history) {
    if (event.type === 'generated') known.add(event.candidate);
    if (event.type === 'attempt.started' && event.kind === 'regrade')
      expect(known.has(event.candidate ?? '')).toBe(true);
  }
  let closed = false;
  for (const event of history) {
    if (event.type === 'slot.settled' || event.type === 'slot.unresolved') closed = true;
    else if (event.type === 'attribution.recorded' && event.by === 'adjudicator' && !event.late)
      closed = false;
    else if (event.type === 'attempt.started') expect(closed).toBe(false);
  }
}

describe('the machine against a second implementation', () => {
  test('every sequence of 12 events up to length 5, one by one', () => {
    let sequences = 0;
    const walk = (history: readonly SlotEvent[], state: SlotState, left: number): void => {
      for (const event of SMALL) {
        sequences++;
        const next = judge(history, state, event);
        if (left > 1) walk(next === null ? history : [...history, event], next ?? state, left - 1);
      }
    };
    walk([], PLANNED, 5);
    console.log(`${sequences} sequences compared`);
    expect(sequences).toBe([1, 2, 3, 4, 5].reduce((sum, n) => sum + 12 ** n, 0));
  });

  test('every sequence of all events up to length 7, refused events included', () => {
    // A refused event leaves history and state as they were, so that a sequence comes to the lawful history of the events
    // that were taken. Each lawful history is judged once, with every event after it, and stands for all sequences that
    // come to it: their number grows by each event that is refused there.
    const LENGTH = 7;
    const covered: bigint[] = new Array<bigint>(LENGTH + 1).fill(0n);
    let histories = 0;
    const walk = (history: readonly SlotEvent[], state: SlotState, before: readonly bigint[]): void => {
      histories++;
      agree(state);
      holdInvariants(history);
      const taken = FULL.flatMap((event) => {
        const next = history.length < LENGTH ? judge(history, state, event) : null;
        return next === null ? [] : [{ event, next }];
      });
      const refused = BigInt(FULL.length - taken.length);
      // By length: how many sequences come to this history.
      const sequences = before.slice(0, history.length);
      for (let n = history.length; n <= LENGTH; n++) {
        const longer = n === history.length ? 0n : (sequences[n - 1] ?? 0n) * refused;
        sequences[n] = longer + (n === 0 ? 1n : (before[n - 1] ?? 0n));
        covered[n] = (covered[n] ?? 0n) + (sequences[n] ?? 0n);
      }
      for (const { event, next } of taken) walk([...history, event], next, sequences);
    };
    walk([], PLANNED, []);
    const all = BigInt(FULL.length);
    expect(covered).toEqual(covered.map((_, n) => all ** BigInt(n)));
    console.log(
      `${covered.reduce((sum, n) => sum + n) - 1n} sequences of ${all} events, by ${histories} lawful histories`,
    );
  });

  test('every lawful history of the full alphabet up to length 12, with every event after it', () => {
    let histories = 0;
    let comparisons = 0;
    const walk = (history: readonly SlotEvent[], state: SlotState, left: number): void => {
      histories++;
      agree(state);
      holdInvariants(history);
      for (const event of FULL) {
        comparisons++;
        const next = judge(history, state, event);
        if (next === null || left <= 0) continue;
        const longer = [...history, event];
        const more = left - (endsIn([event]) === 0 ? 1 : END_COSTS);
        if (verdictsIn(longer) <= MAX_VERDICTS && endsIn(longer) <= MAX_ENDS) walk(longer, next, more);
      }
    };
    walk([], PLANNED, 12);
    console.log(
      `${histories} lawful histories, ${comparisons} continuations of ${FULL.length} events compared`,
    );
    expect(comparisons).toBe(histories * FULL.length);
    expect(histories).toBeGreaterThan(10_000);
  });

  test('random lawful lives up to 24 events, through all three attempts', () => {
    let longest = 0;
    fc.assert(
      fc.property(fc.array(fc.nat(), { minLength: 8, maxLength: 24 }), (choices) => {
        let state = PLANNED;
        const history: SlotEvent[] = [];
        for (const choice of choices) {
          const lawful = FULL.filter((event) => judge(history, state, event) !== null);
          const event = lawful[choice % Math.max(lawful.length, 1)];
          const next = event === undefined ? null : judge(history, state, event);
          if (event === undefined || next === null) break;
          history.push(event);
          state = next;
          agree(state);
        }
        longest = Math.max(longest, state.attempts.length);
        holdInvariants(history);
      }),
      { seed: 20260927, numRuns: 500 },
    );
    expect(longest).toBe(3);
  });
});
