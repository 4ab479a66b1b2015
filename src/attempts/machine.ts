import { canonicalText } from '../core/canonical-json.js';
import { type Digest, sha256Hex } from '../core/digest.js';
import type { AttributionRule } from '../protocol/schema/attempts.js';
import { type Attribution, classify } from './rules.js';
import type { FailureSignals } from './signals.js';

/**
 * The life of one slot as a pure state machine (DESIGN §9). The runner asks {@link nextAction} what to do, the
 * audit replays a ledger through {@link step}; both meet the same rules, so they cannot disagree.
 */

export type AttemptKind = 'first' | 'replacement' | 'regrade';

/** What of a slot's history the rules look at. One event for each ledger entry that names the slot. */
export type SlotEvent =
  | {
      readonly type: 'attempt.started';
      readonly attempt: string;
      readonly kind: AttemptKind;
      /** The attempt that this one replaces or regrades; null for the first. */
      readonly of: string | null;
      readonly samplingSeed: number;
      /** The candidate under regrading; null otherwise. */
      readonly candidate: Digest | null;
    }
  | { readonly type: 'generated'; readonly attempt: string; readonly candidate: Digest }
  | {
      readonly type: 'graded';
      readonly attempt: string;
      readonly candidate: Digest;
      readonly report: Digest;
      readonly value: number;
    }
  | { readonly type: 'failed'; readonly attempt: string; readonly signals: FailureSignals }
  /**
   * The process that ran the attempt is gone; `found` is what it had made durable: a candidate that is in the ledger, the
   * end of a stage that is not and follows now, or nothing.
   */
  | {
      readonly type: 'attempt.recovered';
      readonly attempt: string;
      readonly found: 'candidate' | 'nothing' | 'end';
    }
  | {
      readonly type: 'attribution.recorded';
      readonly attempt: string;
      readonly attribution: Attribution;
      readonly by: 'rule' | 'adjudicator';
      readonly rule: string | null;
      /** Recorded after unblinding: it is kept and shown, and changes nothing (DESIGN §9). */
      readonly late: boolean;
    }
  | { readonly type: 'attempt.finished'; readonly attempt: string; readonly outcome: 'report' | 'failure' }
  | { readonly type: 'slot.settled'; readonly value: number; readonly basis: SettlementBasis }
  | { readonly type: 'slot.unresolved'; readonly reason: UnresolvedReason };

export type SettlementBasis =
  | { readonly kind: 'report'; readonly attempt: string; readonly report: Digest }
  /** A clear model failure with nothing to grade counts 0 (P14). */
  | { readonly kind: 'model_failure'; readonly attempt: string };

export type UnresolvedReason = 'undetermined' | 'limit_reached';

/** The last failure of a slot and what became of it. */
export interface FailureRecord {
  readonly attempt: string;
  readonly stage: 'generate' | 'grade';
  readonly signals: FailureSignals | null;
  readonly candidate: Digest | null;
}

interface History {
  /** Attempts so far, in order. */
  readonly attempts: readonly string[];
  readonly replacements: number;
  readonly regrades: number;
  /** Attributions recorded after unblinding. */
  readonly lateAttributions: number;
}

export type SlotState = History &
  (
    | { readonly phase: 'planned' }
    | { readonly phase: 'generating'; readonly attempt: string }
    | { readonly phase: 'grading'; readonly attempt: string; readonly candidate: Digest }
    | {
        readonly phase: 'reported';
        readonly attempt: string;
        readonly report: Digest;
        readonly value: number;
        readonly finished: boolean;
      }
    | ({ readonly phase: 'failed' } & FailureRecord)
    | ({
        readonly phase: 'attributed';
        readonly attribution: Attribution;
        readonly by: 'rule' | 'adjudicator';
        readonly finished: boolean;
      } & FailureRecord)
    | {
        readonly phase: 'settled';
        readonly value: number;
        readonly basis: SettlementBasis;
        /** The failure behind a model verdict, which an adjudicator may still revise; null under a report. */
        readonly failure: FailureRecord | null;
        readonly by: 'report' | 'rule' | 'adjudicator';
      }
    | ({
        readonly phase: 'unresolved';
        readonly reason: UnresolvedReason;
        readonly by: 'rule' | 'adjudicator';
      } & FailureRecord)
  );

/** What the plan fixes about a slot before anything runs. */
export interface SlotRules {
  readonly slot: string;
  readonly samplingSeed: number;
  readonly replacements: number;
  readonly regrades: number;
  readonly rules: readonly AttributionRule[];
  readonly reward: { readonly min: number; readonly max: number };
}

export interface Violation {
  /** The clause or law that the event breaks. */
  readonly clause: string;
  readonly message: string;
}

export type StepResult =
  | { readonly ok: true; readonly state: SlotState }
  | { readonly ok: false; readonly violation: Violation };

export const PLANNED: SlotState = {
  phase: 'planned',
  attempts: [],
  replacements: 0,
  regrades: 0,
  lateAttributions: 0,
};

/** The name of a slot's n-th attempt (1-based): first 32 hexadecimal digits of SHA-256 of `["attempt", slot, n]`. */
export function attemptId(slot: string, n: number): string {
  return sha256Hex(`["attempt",${canonicalText(slot)},${canonicalText(n)}]`).slice(0, 32);
}

/** What must happen to a slot next; null when it is closed. */
export type Action =
  | {
      readonly do: 'start';
      readonly kind: AttemptKind;
      readonly of: string | null;
      readonly candidate: Digest | null;
    }
  | { readonly do: 'generate'; readonly attempt: string }
  | { readonly do: 'grade'; readonly attempt: string; readonly candidate: Digest }
  | { readonly do: 'attribute'; readonly attempt: string }
  | { readonly do: 'finish'; readonly attempt: string; readonly outcome: 'report' | 'failure' }
  | { readonly do: 'settle'; readonly value: number; readonly basis: SettlementBasis }
  | { readonly do: 'unresolve'; readonly reason: UnresolvedReason };

/** The one lawful continuation of a slot, apart from what only an observer can tell (candidate, report, failure). */
export function nextAction(state: SlotState, rules: SlotRules): Action | null {
  switch (state.phase) {
    case 'planned':
      return { do: 'start', kind: 'first', of: null, candidate: null };
    case 'generating':
      return { do: 'generate', attempt: state.attempt };
    case 'grading':
      return { do: 'grade', attempt: state.attempt, candidate: state.candidate };
    case 'failed':
      return { do: 'attribute', attempt: state.attempt };
    case 'reported':
      // law 3: success and failure settle alike
      return state.finished
        ? {
            do: 'settle',
            value: state.value,
            basis: { kind: 'report', attempt: state.attempt, report: state.report },
          }
        : { do: 'finish', attempt: state.attempt, outcome: 'report' };
    case 'attributed':
      return state.finished
        ? afterFailure(state, rules)
        : { do: 'finish', attempt: state.attempt, outcome: 'failure' };
    case 'settled':
    case 'unresolved':
      return null;
    default:
      return unreachable(state);
  }
}

function afterFailure(state: Extract<SlotState, { phase: 'attributed' }>, rules: SlotRules): Action {
  switch (state.attribution) {
    case 'undetermined':
      return { do: 'unresolve', reason: 'undetermined' };
    case 'model':
      return { do: 'settle', value: 0, basis: { kind: 'model_failure', attempt: state.attempt } };
    case 'infrastructure':
      // P12: the candidate exists, so only grading may be repeated. P13: nothing exists, so generation may be.
      if (state.candidate !== null) {
        return state.regrades < rules.regrades
          ? { do: 'start', kind: 'regrade', of: state.attempt, candidate: state.candidate }
          : { do: 'unresolve', reason: 'limit_reached' };
      }
      return state.replacements < rules.replacements
        ? { do: 'start', kind: 'replacement', of: state.attempt, candidate: null }
        : { do: 'unresolve', reason: 'limit_reached' };
    default:
      return unreachable(state.attribution);
  }
}

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

/**
 * The failure that an adjudicator may judge (P14): one that no rule could attribute, or one judged by an
 * adjudicator before. A slot at the retry limit whose failure a rule attributed stays unresolved (P15).
 */
export function adjudicable(state: SlotState): FailureRecord | null {
  if (state.phase === 'unresolved') {
    return state.reason === 'undetermined' || state.by === 'adjudicator' ? failureOf(state) : null;
  }
  if (state.phase === 'attributed' && state.by === 'adjudicator') return failureOf(state);
  if (state.phase === 'settled' && state.by === 'adjudicator') return state.failure;
  return null;
}

/** Whether no rule could attribute a slot's failure and no adjudicator has judged it yet. */
export function awaitsVerdict(state: SlotState): boolean {
  return state.phase === 'unresolved' && state.reason === 'undetermined' && state.by === 'rule';
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

function failureOf(state: FailureRecord): FailureRecord {
  return { attempt: state.attempt, stage: state.stage, signals: state.signals, candidate: state.candidate };
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

function unreachable(value: never): never {
  throw new Error(`unhandled case ${JSON.stringify(value)}`);
}
