import type { Cause, HostEvent, Phase, Stage } from '../protocol/schema/signals.js';

/**
 * What was observed of a failure, outside the candidate's reach (DESIGN §9). Typed signals decide; `exception` and
 * `text` are shown to people and may only narrow a rule.
 */
export interface FailureSignals {
  readonly stage: Stage;
  readonly phase: Phase;
  readonly cause: Cause;
  /** Status of the HTTP answer, when there was one. */
  readonly http_status: number | null;
  /** Status named by an error body that came under another status, when there was one. */
  readonly embedded_status: number | null;
  /** Exit status of the process, when it exited by itself. */
  readonly exit_status: number | null;
  /** Signal that ended the process. */
  readonly signal: string | null;
  /** Whether the service's process lived when the failure was seen; null when there is no service. */
  readonly service_alive: boolean | null;
  /**
   * Whether the kernel ended a process of the stage's own control group for want of memory; absent when no group was
   * watched.
   */
  readonly oom_kill?: boolean;
  /** What befell the host before the failure was recorded; absent for nothing. */
  readonly host_event?: HostEvent;
  /** Name of an exception, as reported. */
  readonly exception: string | null;
  /** Of a streamed answer: whether any token had come; absent where nothing is streamed. */
  readonly first_token?: boolean;
  /** At most 500 characters of error text. */
  readonly text: string | null;
}

/** Signals with everything unobserved but what is given. `text` is cut to 500 code units on a code point border. */
export function failureSignals(
  observed: Pick<FailureSignals, 'stage' | 'phase' | 'cause'> & Partial<FailureSignals>,
): FailureSignals {
  return {
    http_status: null,
    embedded_status: null,
    exit_status: null,
    signal: null,
    service_alive: null,
    exception: null,
    ...observed,
    text: observed.text == null ? null : observed.text.slice(0, 500).toWellFormed(),
  };
}
