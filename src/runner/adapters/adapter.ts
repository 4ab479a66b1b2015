import type { FailureSignals } from '../../attempts/signals.js';
import type { AttemptKind } from '../../attempts/slot-state.js';
import type { Digest } from '../../core/digest.js';
import type { JsonObject } from '../../core/json.js';
import type { Condition } from '../../protocol/schema/conditions.js';
import type { Stage } from '../../protocol/schema/signals.js';
import type { Slot } from '../../slots/slot.js';
import type { Usage } from './openai-answer.js';
import type { StageRecord } from './stage-record.js';

/** What one slot is about, with everything that the plan fixes for it. */
export interface Work {
  readonly slot: Slot;
  /** `M@42`, or `base` for a model without seed. */
  readonly model: string;
  readonly condition: Condition;
  /** The task's fields. */
  readonly fields: JsonObject;
  readonly samplingSeed: number;
}

/** One started attempt. */
export interface RunningAttempt {
  readonly work: Work;
  readonly attempt: string;
  readonly kind: AttemptKind;
  /** The request as the ledger has it; null for a regrade. */
  readonly request: Buffer | null;
  /** The session that goes on with the grading, when another one had begun the attempt. */
  readonly takenOver: string | null;
}

/** Content that is kept of a stage: its bytes, or an object that is durable already. */
export type Evidence = Buffer | { readonly stored: Digest; readonly size: number };

/** How a stage ended; measured by a steady clock, in seconds. */
interface StageEnd {
  /** Response, stdout, stderr …, by name. */
  readonly objects: Readonly<Record<string, Evidence>>;
  readonly usage: Usage | null;
  readonly finishReason: string | null;
  readonly seconds: number;
  /** Waiting for a busy server, a part of `seconds`. */
  readonly queueSeconds: number;
  /** Of a streamed answer: from its request to its first token. */
  readonly firstTokenSeconds?: number | undefined;
}

/** Stopped from outside before it ended: nothing came of it, and that it was cut is all that can be recorded. */
export type Abandoned = { readonly kind: 'abandoned' };

export type GenerateEnd =
  | ({
      readonly kind: 'candidate';
      readonly bytes: Buffer;
      /** How its process ended, when that was no end by itself with exit status 0: it may have been cut while it wrote. */
      readonly cut?: FailureSignals;
    } & StageEnd)
  | ({ readonly kind: 'failure'; readonly signals: FailureSignals } & StageEnd)
  | Abandoned;

export type GradeEnd =
  | ({ readonly kind: 'report'; readonly bytes: Buffer; readonly value: number } & StageEnd)
  | ({ readonly kind: 'failure'; readonly signals: FailureSignals } & StageEnd)
  | Abandoned;

/** How attempts of a runner are executed. Failures are values; what is thrown is a fault of Boundbook or of the host. */
export interface Adapter {
  /** Grading takes no time worth a commit of its own: both stages are recorded together. */
  readonly gradesAtOnce: boolean;
  /** The request of an attempt, which the ledger names before anything is sent (law 2). */
  request(work: Work, attempt: string): Buffer;
  generate(attempt: RunningAttempt, signal: AbortSignal): Promise<GenerateEnd>;
  grade(attempt: RunningAttempt, candidate: Buffer, signal: AbortSignal): Promise<GradeEnd>;
  /** Makes the end of a stage durable before the ledger has it. */
  mark(attempt: string, record: StageRecord): Promise<void>;
  /**
   * What is durable of the end of a stage and the ledger never got: what {@link mark} kept, or a valid report whose process
   * was not seen to end (law 3); null when there is neither. To be called when nothing of the attempt runs any more.
   */
  recover(stage: Stage, attempt: LostAttempt): Promise<StageRecord | null>;
  /** Ends what an attempt may have left running outside of every process of its session. */
  endLeftovers?(lost: Pick<LostAttempt, 'attempt' | 'takenOver'>): Promise<void>;
}

/** An attempt whose process is gone. */
export interface LostAttempt {
  readonly attempt: string;
  readonly work: Work;
  /** What was being graded; null while it was being made. */
  readonly candidate: Digest | null;
  /** The session that had gone on with its grading, when it was not the one that began it. */
  readonly takenOver: string | null;
}

export const NOTHING_MORE = { objects: {}, usage: null, finishReason: null, queueSeconds: 0 } as const;

/** Seconds since `start` (of `performance.now()`), to the microsecond. */
export function secondsSince(start: number): number {
  return Math.max(0, Math.round((performance.now() - start) * 1000) / 1e6);
}
