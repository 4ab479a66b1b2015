import type { Runner } from '../../protocol/schema/runner.js';
import { type FailureSignals, failureSignals } from '../signals.js';

/** A failure as it is met in practice, and what is observed of it. */
export interface KnownFailure {
  readonly id: string;
  readonly what: string;
  /** The adapters that can meet it. */
  readonly adapters: readonly Runner['adapter'][];
  readonly signals: FailureSignals;
  /** No stage ended: the next run finds the attempt's process gone, and no rule is asked. */
  readonly isRecovered: boolean;
}

export function failure(
  id: string,
  what: string,
  adapters: KnownFailure['adapters'],
  signals: Parameters<typeof failureSignals>[0],
): KnownFailure {
  return { id, what, adapters, signals: failureSignals(signals), isRecovered: false };
}

/** An attempt that ends with the runner, before it made a candidate. */
export function recovered(id: string, what: string, adapters: KnownFailure['adapters']): KnownFailure {
  const signals = failureSignals({ stage: 'generate', phase: 'running', cause: 'process_gone' });
  return { id, what, adapters, signals, isRecovered: true };
}

export const generate = { stage: 'generate' } as const;
export const grade = { stage: 'grade' } as const;
