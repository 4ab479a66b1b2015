import { attemptId, type SlotRules, type SlotState } from '../attempts/machine.js';
import type { Digest } from '../core/digest.js';
import type { StageEffort } from './costs.js';
import type { DraftOf } from './entries.js';

/** A slot that an attempt was started for and that can still change. */
export interface LiveSlot {
  /** Number of the slot in the plan. */
  readonly index: number;
  readonly queue: string;
  readonly rules: SlotRules;
  state: SlotState;
  /** The session that runs the present attempt: the one that started it, or the one that recovered it. */
  session: string | null;
  readonly stages: StageEffort[];
}

/** A slot that the superseded plan's ledger had closed (P22). Its history lies there; nothing can happen to it here. */
export interface CarriedSlot {
  /** Number of the slot in the plan. */
  readonly index: number;
  /** Attempts that were started there. */
  readonly attempts: number;
  readonly outcome: DraftOf<'slot.carried'>['outcome'];
}

/** The state machine's form of a carried slot. How its attempts followed one another is left to the other ledger. */
export function carriedState(slot: string, { attempts: count, outcome }: CarriedSlot): SlotState {
  const attempts = Array.from({ length: count }, (_, i) => attemptId(slot, i + 1));
  const attempt = attempts.at(-1) ?? '';
  const history = { attempts, replacements: 0, regrades: 0, lateAttributions: 0 };
  const failure = { attempt, stage: 'generate', signals: null, candidate: null } as const;
  if (outcome.kind === 'unresolved') {
    return { ...history, phase: 'unresolved', reason: outcome.reason, by: 'rule', ...failure };
  }
  const { value, basis } = outcome;
  return basis.kind === 'report'
    ? { ...history, phase: 'settled', value, basis, failure: null, by: 'report' }
    : { ...history, phase: 'settled', value, basis, failure, by: 'rule' };
}

type Settled = Extract<SlotState, { phase: 'settled' }>;

/**
 * A slot settled for good, in as few bytes as a million of them need. Attempt ids follow from the slot's id and are
 * computed when asked for; the signals of a failure are left to the ledger.
 */
export class SettledSlot {
  readonly index: number;
  readonly value: number;
  /** The adopted report; null when a model failure settled it. */
  readonly report: Digest | null;
  /** attempts · 16 + replacements · 4 + regrades · 2 + (1 for a failure in grading) */
  readonly #counts: number;

  private constructor(index: number, value: number, report: Digest | null, counts: number) {
    this.index = index;
    this.value = value;
    this.report = report;
    this.#counts = counts;
  }

  /** The lean form of a state that nothing lawful can change any more; null for any other state. */
  static of(index: number, state: SlotState): SettledSlot | null {
    // An adjudicator's settlement can be revised (P14).
    if (
      state.phase !== 'settled' ||
      state.by === 'adjudicator' ||
      state.replacements > 3 ||
      state.regrades > 1
    )
      return null;
    const graded = state.failure?.stage === 'grade' ? 1 : 0;
    const counts = state.attempts.length * 16 + state.replacements * 4 + state.regrades * 2 + graded;
    return new SettledSlot(
      index,
      state.value,
      state.basis.kind === 'report' ? state.basis.report : null,
      counts,
    );
  }

  /** The state machine's form of it. */
  toState(slot: string): Settled {
    const total = this.#counts >> 4;
    const attempts = Array.from({ length: total }, (_, i) => attemptId(slot, i + 1));
    const attempt = attempts.at(-1) ?? '';
    return {
      phase: 'settled',
      attempts,
      replacements: (this.#counts >> 2) & 3,
      regrades: (this.#counts >> 1) & 1,
      lateAttributions: 0,
      value: this.value,
      ...(this.report === null
        ? {
            basis: { kind: 'model_failure', attempt },
            failure: {
              attempt,
              stage: this.#counts & 1 ? 'grade' : 'generate',
              signals: null,
              candidate: null,
            },
            by: 'rule',
          }
        : { basis: { kind: 'report', attempt, report: this.report }, failure: null, by: 'report' }),
    };
  }
}
