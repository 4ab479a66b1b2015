import { canonicalText } from '../core/canonical-json.js';
import { type Digest, sha256Hex } from '../core/digest.js';
import type { AttributionRule } from '../protocol/schema/attempts.js';
import type { Attribution } from './rules.js';
import type { FailureSignals } from './signals.js';

export type AttemptKind = 'first' | 'replacement' | 'regrade';

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

export interface History {
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

export const PLANNED: SlotState = {
  phase: 'planned',
  attempts: [],
  replacements: 0,
  regrades: 0,
  lateAttributions: 0,
};

/** What the plan fixes about a slot before anything runs. */
export interface SlotRules {
  readonly slot: string;
  readonly samplingSeed: number;
  readonly replacements: number;
  readonly regrades: number;
  readonly rules: readonly AttributionRule[];
  readonly reward: { readonly min: number; readonly max: number };
}

/** The name of a slot's n-th attempt (1-based): first 32 hexadecimal digits of SHA-256 of `["attempt", slot, n]`. */
export function attemptId(slot: string, n: number): string {
  return sha256Hex(`["attempt",${canonicalText(slot)},${canonicalText(n)}]`).slice(0, 32);
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

export function failureOf(state: FailureRecord): FailureRecord {
  return { attempt: state.attempt, stage: state.stage, signals: state.signals, candidate: state.candidate };
}
