import type { Digest } from '../core/digest.js';
import type { Attribution } from './rules.js';
import type { FailureSignals } from './signals.js';
import type { AttemptKind, SettlementBasis, UnresolvedReason } from './slot-state.js';

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
