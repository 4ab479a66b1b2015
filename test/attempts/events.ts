import type { Attribution } from '../../src/attempts/rules.js';
import { type FailureSignals, failureSignals } from '../../src/attempts/signals.js';
import type { SlotEvent } from '../../src/attempts/slot-event.js';
import {
  type AttemptKind,
  attemptId,
  type SettlementBasis,
  type SlotRules,
  type UnresolvedReason,
} from '../../src/attempts/slot-state.js';
import { type Digest, digestOf } from '../../src/core/digest.js';

/** A slot with one replacement, one regrade, and one rule for each attribution. */
export const RULES: SlotRules = {
  slot: 'a'.repeat(32),
  samplingSeed: 7,
  replacements: 1,
  regrades: 1,
  reward: { min: 0, max: 1 },
  rules: [
    { id: 'lost', when: { cause: 'connection_lost' }, attribute: 'infrastructure', sufficient: true },
    { id: 'length', when: { cause: 'body_malformed' }, attribute: 'model', sufficient: true },
    { id: 'grader', when: { cause: 'grader_fault' }, attribute: 'infrastructure', sufficient: true },
    { id: 'invalid', when: { cause: 'report_invalid' }, attribute: 'model', sufficient: true },
  ],
};

export const [A1, A2, A3, A4] = [1, 2, 3, 4].map((n) => attemptId(RULES.slot, n)) as [
  string,
  string,
  string,
  string,
];

/** Two candidates and two reports. */
export const C1 = digestOf('candidate 1');
export const C2 = digestOf('candidate 2');
export const R1 = digestOf('report 1');
export const R2 = digestOf('report 2');

/** Signals whose attribution by {@link RULES} is the one that is asked for. */
export function signalsOf(stage: 'generate' | 'grade', attribution: Attribution): FailureSignals {
  if (stage === 'generate') {
    const cause = { infrastructure: 'connection_lost', model: 'body_malformed', undetermined: 'time_limit' };
    return failureSignals({ stage, phase: 'body', cause: cause[attribution] as FailureSignals['cause'] });
  }
  const cause = { infrastructure: 'grader_fault', model: 'report_invalid', undetermined: 'report_missing' };
  return failureSignals({ stage, phase: 'collect', cause: cause[attribution] as FailureSignals['cause'] });
}

/** The rule that fires on {@link signalsOf}. */
export function ruleOf(stage: 'generate' | 'grade', attribution: Attribution): string | null {
  if (attribution === 'undetermined') return null;
  const names = {
    generate: { infrastructure: 'lost', model: 'length' },
    grade: { infrastructure: 'grader', model: 'invalid' },
  };
  return names[stage][attribution];
}

export function start(
  attempt: string,
  kind: AttemptKind = 'first',
  of: string | null = null,
  candidate: Digest | null = null,
  samplingSeed = RULES.samplingSeed,
): SlotEvent {
  return { type: 'attempt.started', attempt, kind, of, samplingSeed, candidate };
}

export function generated(attempt: string, candidate: Digest = C1): SlotEvent {
  return { type: 'generated', attempt, candidate };
}

export function graded(attempt: string, value: number, candidate: Digest = C1, report = R1): SlotEvent {
  return { type: 'graded', attempt, candidate, report, value };
}

export function failed(
  attempt: string,
  stage: 'generate' | 'grade',
  attribution: Attribution = 'infrastructure',
): SlotEvent {
  return { type: 'failed', attempt, signals: signalsOf(stage, attribution) };
}

export function byRule(attempt: string, attribution: Attribution, rule: string | null): SlotEvent {
  return { type: 'attribution.recorded', attempt, attribution, by: 'rule', rule, late: false };
}

export function verdict(attempt: string, attribution: Attribution, late = false): SlotEvent {
  return { type: 'attribution.recorded', attempt, attribution, by: 'adjudicator', rule: null, late };
}

export function recovered(attempt: string, found: 'candidate' | 'nothing' | 'end'): SlotEvent {
  return { type: 'attempt.recovered', attempt, found };
}

export function finished(attempt: string, outcome: 'report' | 'failure'): SlotEvent {
  return { type: 'attempt.finished', attempt, outcome };
}

export function settled(value: number, basis: SettlementBasis): SlotEvent {
  return { type: 'slot.settled', value, basis };
}

export function byReport(value: number, attempt: string, report = R1): SlotEvent {
  return settled(value, { kind: 'report', attempt, report });
}

export function byModelFailure(attempt: string, value = 0): SlotEvent {
  return settled(value, { kind: 'model_failure', attempt });
}

export function unresolved(reason: UnresolvedReason): SlotEvent {
  return { type: 'slot.unresolved', reason };
}

/** A whole failed attempt, from its failure to its end. */
export function failure(
  attempt: string,
  stage: 'generate' | 'grade',
  attribution: Attribution,
): readonly SlotEvent[] {
  return [
    failed(attempt, stage, attribution),
    byRule(attempt, attribution, ruleOf(stage, attribution)),
    finished(attempt, 'failure'),
  ];
}
