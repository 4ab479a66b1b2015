import type { Digest } from '../core/digest.js';
import { unreachable } from '../core/unreachable.js';
import type { AttemptKind, SettlementBasis, SlotRules, SlotState, UnresolvedReason } from './slot-state.js';

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
