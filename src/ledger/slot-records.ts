import { attemptId, type SlotRules, type SlotState } from '../attempts/slot-state.js';
import type { Digest } from '../core/digest.js';
import type { StageEffort } from './costs.js';
import type { DraftOf } from './entries/entry.js';

/** A slot that an attempt was started for and that can still change. */
export interface LiveSlot {
  /** Number of the slot in the plan. */
  readonly index: number;
  readonly queue: string;
  readonly arm: string;
  readonly rules: SlotRules;
  /** Position of the entry that started the first attempt. */
  readonly since: number;
  /** Position of the last entry that was taken for the slot. */
  changed: number;
  state: SlotState;
  /** The session that runs the present attempt: the one that started it, or the one that recovered it. */
  session: string | null;
  /** The session that last went on with the grading that another one had begun in the present attempt. */
  takenOver: string | null;
  readonly stages: StageEffort[];
}

/** What of a {@link LiveSlot} does not follow from its number in the plan: plain data. */
export type LiveSnapshot = Readonly<Omit<LiveSlot, 'queue' | 'arm' | 'rules'>>;

/** A slot that the superseded plan's ledger had closed (P22). Its history lies there; nothing can happen to it here. */
export interface CarriedSlot {
  /** Number of the slot in the plan. */
  readonly index: number;
  /** Position there of the last entry that closed it. */
  readonly closedBy: number;
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

/** Parts of {@link SettledSlot.history}, each in units of the one before. */
const FAILED_GRADING = 1;
const REGRADES = 2;
const REPLACEMENTS = 4;
const MAX_REPLACEMENTS = 3;
const ATTEMPTS = 16;

/**
 * A slot settled for good, in as little as a million of them need. Attempt ids follow from the slot's id and are computed
 * when asked for; the signals of a failure are left to the ledger.
 */
export class SettledSlot {
  readonly index: number;
  readonly value: number;
  /** The adopted report; null when a model failure settled it. */
  readonly report: Digest | null;
  /** attempts · 16 + replacements · 4 + regrades · 2 + (1 for a failure in grading) */
  readonly history: number;

  constructor(index: number, value: number, report: Digest | null, history: number) {
    this.index = index;
    this.value = value;
    this.report = report;
    this.history = history;
  }

  /** The lean form of a state that nothing lawful can change any more; null for any other state. */
  static of(index: number, state: SlotState): SettledSlot | null {
    // An adjudicator's settlement can be revised (P14).
    if (
      state.phase !== 'settled' ||
      state.by === 'adjudicator' ||
      state.replacements > MAX_REPLACEMENTS ||
      state.regrades > 1
    )
      return null;
    const history =
      state.attempts.length * ATTEMPTS +
      state.replacements * REPLACEMENTS +
      state.regrades * REGRADES +
      (state.failure?.stage === 'grade' ? FAILED_GRADING : 0);
    return new SettledSlot(
      index,
      state.value,
      state.basis.kind === 'report' ? state.basis.report : null,
      history,
    );
  }

  /** The state machine's form of it. */
  toState(slot: string): Settled {
    const total = Math.floor(this.history / ATTEMPTS);
    const attempts = Array.from({ length: total }, (_, i) => attemptId(slot, i + 1));
    const attempt = attempts.at(-1) ?? '';
    const stage = (this.history & FAILED_GRADING) === 0 ? 'generate' : 'grade';
    return {
      phase: 'settled',
      attempts,
      replacements: Math.floor(this.history / REPLACEMENTS) & MAX_REPLACEMENTS,
      regrades: (this.history & REGRADES) === 0 ? 0 : 1,
      lateAttributions: 0,
      value: this.value,
      ...(this.report === null
        ? {
            basis: { kind: 'model_failure', attempt },
            failure: { attempt, stage, signals: null, candidate: null },
            by: 'rule',
          }
        : { basis: { kind: 'report', attempt, report: this.report }, failure: null, by: 'report' }),
    };
  }
}
