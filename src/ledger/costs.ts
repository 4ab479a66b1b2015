import type { SlotState } from '../attempts/slot-state.js';
import type { Digest } from '../core/digest.js';
import type { EntryOf } from './entries/entry.js';

/** What was spent on attempts. Seconds are wall-clock seconds of stages; they overlap when attempts run side by side. */
export interface Effort {
  /** Finished stages. */
  readonly stages: number;
  readonly seconds: number;
  /** Waiting for a busy server; part of `seconds`. */
  readonly queue_seconds: number;
  readonly generated_tokens: number;
  /** Generations whose server reported no token count: `generated_tokens` lacks them. */
  readonly uncounted_generations: number;
  readonly gradings: number;
}

/**
 * Effort as it may be shown. Stages, tokens and gradings are null while outcomes are blinded: a slot that settled
 * without a grading is a model failure with the value 0, stages beyond the attempts are gradings, and tokens are the
 * lengths of answers (law 8).
 */
export interface ShownEffort {
  readonly stages: number | null;
  readonly seconds: number;
  readonly queue_seconds: number;
  readonly generated_tokens: number | null;
  readonly uncounted_generations: number | null;
  readonly gradings: number | null;
}

/** What may be shown of effort while outcomes are blinded: time. */
export function maskEffort({ seconds, queue_seconds }: Effort): ShownEffort {
  return {
    stages: null,
    seconds,
    queue_seconds,
    generated_tokens: null,
    uncounted_generations: null,
    gradings: null,
  };
}

export const NO_EFFORT: Effort = {
  stages: 0,
  seconds: 0,
  queue_seconds: 0,
  generated_tokens: 0,
  uncounted_generations: 0,
  gradings: 0,
};

/** One finished stage of a slot that can still change. */
export interface StageEffort {
  readonly attempt: string;
  readonly stage: 'generate' | 'grade';
  /** The candidate that it made or graded. */
  readonly candidate: Digest | null;
  readonly effort: Effort;
}

export function stageEffort(entry: EntryOf<'stage.finished'>): StageEffort {
  const { attempt, stage, result, seconds, queue_seconds } = entry;
  const tokens = entry.usage?.completion_tokens ?? null;
  const generated = stage === 'generate';
  return {
    attempt,
    stage,
    candidate: result.kind === 'failure' ? null : result.candidate,
    effort: {
      stages: 1,
      seconds,
      queue_seconds,
      generated_tokens: generated ? (tokens ?? 0) : 0,
      uncounted_generations: generated && tokens === null ? 1 : 0,
      gradings: generated ? 0 : 1,
    },
  };
}

/** Effort by what became of it (P21). */
export interface EffortParts {
  /** A settlement rests on it. */
  readonly used: Effort;
  /** Stages that failed, those of replaced attempts among them. */
  readonly failed: Effort;
  /** Candidates that were made and that no settlement rests on. */
  readonly unused: Effort;
  /** Of slots that are not closed: whether it was of use is not known yet. */
  readonly open: Effort;
}

export const NO_PARTS: EffortParts = {
  used: NO_EFFORT,
  failed: NO_EFFORT,
  unused: NO_EFFORT,
  open: NO_EFFORT,
};

/** The effort on one slot. What the settlement rests on is used, a failure that counts as the model's own among it. */
export function splitEffort(state: SlotState, stages: readonly StageEffort[]): EffortParts {
  const parts = { ...NO_PARTS };
  const closed = state.phase === 'settled' || state.phase === 'unresolved';
  const candidate = settledCandidate(state, stages);
  for (const stage of stages) {
    const part = restsOn(state, stage, candidate)
      ? 'used'
      : !closed
        ? 'open'
        : stage.candidate === null
          ? 'failed'
          : 'unused';
    parts[part] = addEffort(parts[part], stage.effort);
  }
  return parts;
}

export function addParts(a: EffortParts, b: EffortParts): EffortParts {
  return {
    used: addEffort(a.used, b.used),
    failed: addEffort(a.failed, b.failed),
    unused: addEffort(a.unused, b.unused),
    open: addEffort(a.open, b.open),
  };
}

/** The effort of all parts together. */
export function sumParts({ used, failed, unused, open }: EffortParts): Effort {
  return addEffort(addEffort(used, failed), addEffort(unused, open));
}

/** Effort as it may be shown, by what became of it. */
export type ShownParts = Readonly<Record<keyof EffortParts, ShownEffort>>;

export function maskParts({ used, failed, unused, open }: EffortParts): ShownParts {
  return {
    used: maskEffort(used),
    failed: maskEffort(failed),
    unused: maskEffort(unused),
    open: maskEffort(open),
  };
}

function settledCandidate(state: SlotState, stages: readonly StageEffort[]): Digest | null {
  if (state.phase !== 'settled') return null;
  if (state.failure !== null) return state.failure.candidate;
  return (
    stages.find(({ attempt, stage }) => attempt === state.basis.attempt && stage === 'grade')?.candidate ??
    null
  );
}

/** A regrade settles with a candidate of an earlier attempt, whose generation was of use although its grading was not. */
function restsOn(state: SlotState, stage: StageEffort, candidate: Digest | null): boolean {
  if (state.phase !== 'settled') return false;
  if (stage.attempt === state.basis.attempt) return true;
  return stage.stage === 'generate' && candidate !== null && stage.candidate === candidate;
}

export function addEffort(a: Effort, b: Effort): Effort {
  return {
    stages: a.stages + b.stages,
    seconds: a.seconds + b.seconds,
    queue_seconds: a.queue_seconds + b.queue_seconds,
    generated_tokens: a.generated_tokens + b.generated_tokens,
    uncounted_generations: a.uncounted_generations + b.uncounted_generations,
    gradings: a.gradings + b.gradings,
  };
}
