import { BoundbookError } from '../core/errors.js';
import type { Breaker } from './breaker.js';
import { lackOfSpace } from './free-space.js';
import { countedAttempts } from './interruptions.js';
import type { StopCause, StopSwitch } from './stop.js';

/** What ends a session before its plan is done, apart from its operator. */

/** A fault of the host or of Boundbook, not of an attempt: nothing that it touched can be recorded any more. */
export function stopForFault(stop: StopSwitch, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  const typed =
    error instanceof BoundbookError
      ? error
      : new BoundbookError('INTERNAL', `internal fault: ${message}`, { cause: error });
  const reason = typed.code === 'DISK_FULL' ? 'disk_full' : 'fault';
  stop.request({ reason, detail: typed.message.slice(0, 2000), error: typed }, 0);
}

/** @returns whether the disk that the folder lies on has room for another attempt */
export function stopForLackOfSpace(stop: StopSwitch, folder: string): boolean {
  const full = lackOfSpace(folder);
  // No grace is set: a disk that still has room for what is in flight lets it end.
  if (full !== null) stop.request({ reason: 'disk_full', detail: full.message, error: full }, null);
  return full === null;
}

export function stopForBreaker(stop: StopSwitch, breaker: Breaker): void {
  const detail = breaker.describe();
  const error = new BoundbookError('BREAKER_OPEN', `the breaker opened: ${detail}`, {
    hint: 'Find the cause before running again: a slot that fails so is replaced once at most, and what no rule attributes stays unresolved.',
  });
  stop.request({ reason: 'breaker', detail, error }, null);
}

/**
 * Why a session ended, and what was cut by whose act.
 *
 * @param abandoned number of attempts that were cut
 * @param byOperator whether the operator asked for that
 */
export function causeOfEnd({ cause }: StopSwitch, abandoned: number, byOperator: boolean): StopCause {
  const ended = cause ?? { reason: 'finished', detail: null, error: null };
  if (abandoned === 0) return ended;
  const act = byOperator ? ' by the operator, who asked twice' : '';
  const note = `${countedAttempts(abandoned)} abandoned${act}`;
  return { ...ended, detail: ended.detail === null ? note : `${ended.detail.slice(0, 1900)}; ${note}` };
}
