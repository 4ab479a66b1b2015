import type { Digest } from '../core/digest.js';
import type { AttemptLimits } from '../protocol/schema/attempts.js';
import type { KnownFailure } from './known-failures/known-failure.js';
import { nextAction } from './next-action.js';
import { type Classification, classify } from './rules.js';
import { attemptId, PLANNED, type SlotState } from './slot-state.js';

/** What a rule set makes of a failure that is a slot's first. */
export interface FailureDecision extends Classification {
  /** What follows for the slot. */
  readonly next: 'replacement' | 'regrade' | 'settled as 0' | 'unresolved';
}

const SLOT = '0'.repeat(32);
const CANDIDATE: Digest = `sha256:${'0'.repeat(64)}`;

/** How the state machine attributes an attempt whose process is gone. */
const GONE: Classification = { attribution: 'infrastructure', rule: null };

/** Asks the rules for the attribution and the state machine for what follows, as a run does. */
export function decide({ signals, isRecovered }: KnownFailure, limits: AttemptLimits): FailureDecision {
  const classification = isRecovered ? GONE : classify(limits.rules, signals);
  const state: SlotState = {
    ...PLANNED,
    phase: 'attributed',
    attempt: attemptId(SLOT, 1),
    stage: signals.stage,
    signals,
    candidate: signals.stage === 'grade' ? CANDIDATE : null,
    attribution: classification.attribution,
    by: 'rule',
    finished: true,
  };
  const action = nextAction(state, {
    ...limits,
    slot: SLOT,
    samplingSeed: 0,
    reward: { min: 0, max: 1 },
  });
  const next =
    action?.do === 'settle'
      ? 'settled as 0'
      : action?.do === 'start' && action.kind !== 'first'
        ? action.kind
        : 'unresolved';
  return { ...classification, next };
}
