import { BoundbookError } from '../core/errors.js';
import type { ServiceName } from './service-record.js';

/** The reason that `run.paused` bears. */
export function pauseReason(error: BoundbookError | null) {
  if (error?.code === 'GATE_REFUSED') return 'bindings_changed';
  if (error?.code === 'DISK_FULL') return 'disk_full';
  if (error?.code === 'SERVICE_CHANGED') return 'service_changed';
  return isServiceFailure(error) ? 'service_failed' : 'fault';
}

/** Whether a service could not be had: another start may fare better. */
export function isServiceFailure(error: unknown): boolean {
  return (
    error instanceof BoundbookError && (error.code === 'SERVICE_FAILED' || error.code === 'PORT_NOT_OWNED')
  );
}

/** Of a service that gives no canary. */
export function unanswered({ service }: ServiceName, reason: string): BoundbookError {
  return new BoundbookError(
    'SERVICE_FAILED',
    `the service ${service} does not answer its canary: ${reason}`,
    {
      hint: 'The protocol declares a canary: the server must give log-probabilities at the endpoint that attempts use.',
    },
  );
}

/** Of a service that became another one while it was in use. */
export function changedInUse({ service }: ServiceName, message: string): BoundbookError {
  return new BoundbookError('SERVICE_CHANGED', message, {
    hint: 'Find out who changed the server and bring it back to what it was; then run again. The attempts that are in doubt stand in the book: note them (boundbook note --slots), or amend the plan.',
    evidence: { service },
  });
}

/** Of a service that used up its restarts. */
export function tooOften(model: string, restarts: number, unresponsive: boolean): BoundbookError {
  const what = unresponsive ? 'died, or left questions unanswered,' : 'died';
  return new BoundbookError(
    'SERVICE_FAILED',
    `the service for ${model} ${what} more often than the ${restarts} restarts that the protocol allows`,
    { hint: 'Its output lies in the work folder of the ledger. When the cause is found, run again.' },
  );
}
