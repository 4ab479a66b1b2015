import { unreachable } from '../core/unreachable.js';
import { type Action, nextAction } from './next-action.js';
import { classify } from './rules.js';
import type { SlotEvent } from './slot-event.js';
import {
  type AttemptKind,
  adjudicable,
  attemptId,
  failureOf,
  type History,
  type SettlementBasis,
  type SlotRules,
  type SlotState,
} from './slot-state.js';
import type { Violation } from './violation.js';

/**
 * The life of one slot as a pure state machine (DESIGN §9). The runner asks {@link nextAction} what to do, the
 * audit replays a ledger through {@link step}; both meet the same rules, so they cannot disagree.
 */

export type StepResult =
  | { readonly ok: true; readonly state: SlotState }
  | { readonly ok: false; readonly violation: Violation };

/** Applies one event. A violation leaves the state as it was and says which rule forbids the event. */
export function step(state: SlotState, event: SlotEvent, rules: SlotRules): StepResult {
  switch (event.type) {
    case 'attempt.started':
      return started(state, event, rules);
    case 'generated':
      if (state.phase !== 'generating') return outOfPlace(state, event);
      if (state.attempt !== event.attempt) return foreignAttempt(state.attempt, event);
      return to(state, { phase: 'grading', attempt: event.attempt, candidate: event.candidate });
    case 'graded':
      return graded(state, event, rules);
    case 'failed':
      return failed(state, event);
    case 'attempt.recovered':
      return recovered(state, event);
    case 'attribution.recorded':
      return attributed(state, event, rules);
    case 'attempt.finished':
      if (state.phase !== 'reported' && state.phase !== 'attributed') return outOfPlace(state, event);
      if (state.attempt !== event.attempt) return foreignAttempt(state.attempt, event);
      if (state.finished) return forbid('law 4', `attempt ${event.attempt} is finished already`);
      if (event.outcome !== (state.phase === 'reported' ? 'report' : 'failure')) {
        return forbid(
          'P11',
          `attempt ${event.attempt} ended in a ${state.phase === 'reported' ? 'report' : 'failure'}`,
        );
      }
      return { ok: true, state: { ...state, finished: true } };
    case 'slot.settled':
      return settled(state, event, rules);
    case 'slot.unresolved': {
      const due = nextAction(state, rules);
      if (due?.do !== 'unresolve' || state.phase !== 'attributed') return notDue(state, event, due);
      if (due.reason !== event.reason)
        return forbid('P14', `the reason is ${due.reason}, not ${event.reason}`);
      return to(state, { phase: 'unresolved', reason: event.reason, by: state.by, ...failureOf(state) });
    }
    default:
      return unreachable(event);
  }
}

function started(
  state: SlotState,
  event: Extract<SlotEvent, { type: 'attempt.started' }>,
  rules: SlotRules,
): StepResult {
  const due = nextAction(state, rules);
  if (due?.do !== 'start') return notDue(state, event, due);
  if (event.kind !== due.kind)
    return forbid(clauseOf(event.kind), `a ${due.kind} attempt is due, not a ${event.kind}`);
  if (event.of !== due.of)
    return forbid(clauseOf(event.kind), `it must follow attempt ${due.of}, not ${event.of}`);
  if (event.candidate !== due.candidate) return forbid('P12', 'a regrade must grade the same candidate');
  if (event.samplingSeed !== rules.samplingSeed) {
    return forbid('P18', `the sampling seed is ${rules.samplingSeed}, not ${event.samplingSeed}`);
  }
  const expected = attemptId(rules.slot, state.attempts.length + 1);
  if (event.attempt !== expected)
    return forbid('P16', `attempt ${state.attempts.length + 1} is named ${expected}`);
  const history: History = {
    attempts: [...state.attempts, event.attempt],
    replacements: state.replacements + (event.kind === 'replacement' ? 1 : 0),
    regrades: state.regrades + (event.kind === 'regrade' ? 1 : 0),
    lateAttributions: state.lateAttributions,
  };
  if (due.candidate !== null) {
    return {
      ok: true,
      state: { ...history, phase: 'grading', attempt: event.attempt, candidate: due.candidate },
    };
  }
  return { ok: true, state: { ...history, phase: 'generating', attempt: event.attempt } };
}

function graded(
  state: SlotState,
  event: Extract<SlotEvent, { type: 'graded' }>,
  rules: SlotRules,
): StepResult {
  if (state.phase === 'settled' || state.phase === 'reported') {
    return forbid('law 3', 'the first valid report has closed this slot; a later one is never adopted');
  }
  if (state.phase !== 'grading') return outOfPlace(state, event);
  if (state.attempt !== event.attempt) return foreignAttempt(state.attempt, event);
  if (state.candidate !== event.candidate) return forbid('P11', 'the report is about another candidate');
  if (!(event.value >= rules.reward.min && event.value <= rules.reward.max)) {
    return forbid('P11', `the reward ${event.value} lies outside [${rules.reward.min}, ${rules.reward.max}]`);
  }
  return to(state, {
    phase: 'reported',
    attempt: event.attempt,
    report: event.report,
    value: event.value,
    finished: false,
  });
}

function failed(state: SlotState, event: Extract<SlotEvent, { type: 'failed' }>): StepResult {
  if (state.phase !== 'generating' && state.phase !== 'grading') return outOfPlace(state, event);
  if (state.attempt !== event.attempt) return foreignAttempt(state.attempt, event);
  const stage = state.phase === 'generating' ? 'generate' : 'grade';
  if (event.signals.stage !== stage)
    return forbid('P14', `the ${stage} stage failed, not ${event.signals.stage}`);
  return to(state, {
    phase: 'failed',
    attempt: event.attempt,
    stage,
    signals: event.signals,
    candidate: state.phase === 'grading' ? state.candidate : null,
  });
}

function recovered(state: SlotState, event: Extract<SlotEvent, { type: 'attempt.recovered' }>): StepResult {
  if (state.phase !== 'generating' && state.phase !== 'grading') return outOfPlace(state, event);
  if (state.attempt !== event.attempt) return foreignAttempt(state.attempt, event);
  if (event.found === 'end') return { ok: true, state };
  if (event.found === 'candidate') {
    // A complete candidate goes on to grading; the interrupted grading left no report.
    if (state.phase !== 'grading') return forbid('law 2', 'no candidate of this attempt is in the ledger');
    return { ok: true, state };
  }
  if (state.phase === 'grading')
    return forbid('P12', 'a candidate exists: it is graded, not generated again');
  // DESIGN §9: the evidence is that the process is gone, which is infrastructure by itself.
  return to(state, {
    phase: 'attributed',
    attempt: event.attempt,
    stage: 'generate',
    signals: null,
    candidate: null,
    attribution: 'infrastructure',
    by: 'rule',
    finished: false,
  });
}

function attributed(
  state: SlotState,
  event: Extract<SlotEvent, { type: 'attribution.recorded' }>,
  rules: SlotRules,
): StepResult {
  if (event.by === 'rule') {
    // A rule follows from the signals at once; only a person's verdict can come too late.
    if (event.late) return forbid('P14', 'an attribution by rule is never late');
    if (state.phase !== 'failed' || state.signals === null) return outOfPlace(state, event);
    if (state.attempt !== event.attempt) return foreignAttempt(state.attempt, event);
    const due = classify(rules.rules, state.signals);
    if (due.attribution !== event.attribution || due.rule !== event.rule) {
      return forbid(
        'P14',
        `the rules say ${due.attribution} by ${due.rule ?? 'default'}, not ${event.attribution}`,
      );
    }
    return to(state, {
      phase: 'attributed',
      ...failureOf(state),
      attribution: event.attribution,
      by: 'rule',
      finished: false,
    });
  }
  if (event.rule !== null) return forbid('P14', 'an adjudicator gives a verdict, not a rule');
  const failure = adjudicable(state);
  if (failure === null) return outOfPlace(state, event);
  if (failure.attempt !== event.attempt) return foreignAttempt(failure.attempt, event);
  if (event.late) return { ok: true, state: { ...state, lateAttributions: state.lateAttributions + 1 } };
  return to(state, {
    phase: 'attributed',
    ...failure,
    attribution: event.attribution,
    by: 'adjudicator',
    finished: true,
  });
}

function settled(
  state: SlotState,
  event: Extract<SlotEvent, { type: 'slot.settled' }>,
  rules: SlotRules,
): StepResult {
  if (state.phase === 'settled') return forbid('law 3', 'the slot is settled already');
  const due = nextAction(state, rules);
  if (due?.do !== 'settle') return notDue(state, event, due);
  if (due.value !== event.value) return forbid('law 3', `the value is ${due.value}, not ${event.value}`);
  if (!isSameBasis(due.basis, event.basis)) {
    return forbid('law 3', 'the settlement does not rest on the first valid report');
  }
  const failure = state.phase === 'attributed' ? failureOf(state) : null;
  const by = state.phase === 'attributed' ? state.by : 'report';
  return to(state, { phase: 'settled', value: event.value, basis: event.basis, failure, by });
}

function isSameBasis(a: SettlementBasis, b: SettlementBasis): boolean {
  const reports = a.kind === 'report' && b.kind === 'report' ? a.report === b.report : a.kind === b.kind;
  return a.attempt === b.attempt && reports;
}

type Phases = SlotState extends infer S ? (S extends SlotState ? Omit<S, keyof History> : never) : never;

function to(state: SlotState, next: Phases): StepResult {
  const { attempts, replacements, regrades, lateAttributions } = state;
  return { ok: true, state: { attempts, replacements, regrades, lateAttributions, ...next } as SlotState };
}

function forbid(clause: string, message: string): StepResult {
  return { ok: false, violation: { clause, message } };
}

function clauseOf(kind: AttemptKind): string {
  return kind === 'regrade' ? 'P12' : kind === 'replacement' ? 'P13' : 'P11';
}

function notDue(state: SlotState, event: SlotEvent, due: Action | null): StepResult {
  if (event.type === 'attempt.started' && (state.phase === 'settled' || state.phase === 'unresolved')) {
    return forbid(clauseOf(event.kind), `the slot is ${state.phase}: no further attempt is lawful`);
  }
  return forbid('P11', `${event.type} is not due in phase ${state.phase} (due: ${due?.do ?? 'nothing'})`);
}

function outOfPlace(state: SlotState, event: SlotEvent): StepResult {
  return forbid('P11', `${event.type} has no place in phase ${state.phase}`);
}

function foreignAttempt(expected: string, event: SlotEvent): StepResult {
  return forbid('P16', `${event.type} names another attempt than ${expected}`);
}
