import type { SlotState } from '../attempts/machine.js';
import type { Digest } from '../core/digest.js';
import type { EntryOf } from './entries.js';

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

/** P21: what the settlement rests on is used; failed and replaced stages are not. */
export function splitEffort(
  state: SlotState,
  stages: readonly StageEffort[],
): { readonly used: Effort; readonly unused: Effort } {
  let used = NO_EFFORT;
  let unused = NO_EFFORT;
  const candidate = settledCandidate(state, stages);
  for (const stage of stages) {
    if (restsOn(state, stage, candidate)) used = addEffort(used, stage.effort);
    else unused = addEffort(unused, stage.effort);
  }
  return { used, unused };
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
