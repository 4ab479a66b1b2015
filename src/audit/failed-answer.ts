import type { FailureSignals } from '../attempts/signals.js';
import type { OpenaiRunner } from '../protocol/schema.js';
import { errorText, readAnswer } from '../runner/adapters/openai-answer.js';

/** Causes that are read off a whole body under status 200. */
const FROM_BODY: ReadonlySet<string> = new Set([
  'body_not_json',
  'body_error',
  'body_no_choice',
  'body_malformed',
]);
const BUSY: ReadonlySet<number> = new Set([429, 503]);

/** What the signals of a failed request must be, and what they are. */
export interface Contradiction {
  readonly what: string;
  readonly expected: string | number | null;
  readonly actual: string | number | null;
}

/**
 * What in the signals of a failed `generate` of a service is not what the kept answer shows (P11, P13): whoever may
 * choose the cause of a failure can choose another try.
 *
 * @param body the kept answer; empty when none was kept, as the body of an answer can be
 * @returns null when nothing contradicts
 */
export function contradictionIn(
  signals: FailureSignals,
  body: Buffer,
  endpoint: OpenaiRunner['endpoint'],
  model: string,
): Contradiction | null {
  const { cause, http_status: status, embedded_status, exception } = signals;
  const shown = FROM_BODY.has(cause) ? bodyShows(body, endpoint, model) : statusShows(signals, body);
  return (
    differ('the cause', shown.cause, cause) ??
    (shown.fitsStatus(status)
      ? null
      : { what: 'the status', expected: 'another for this cause', actual: status }) ??
    differ('the embedded status', shown.embeddedStatus, embedded_status) ??
    differ('the exception', shown.exception, exception)
  );
}

interface Shown {
  readonly cause: string;
  readonly fitsStatus: (status: number | null) => boolean;
  readonly embeddedStatus: number | null;
  readonly exception: string | null;
}

function bodyShows(body: Buffer, endpoint: OpenaiRunner['endpoint'], model: string): Shown {
  const fitsStatus = (status: number | null) => status === 200;
  const reading = readAnswer(body, endpoint, model);
  if (reading.ok) return { cause: 'a complete answer', fitsStatus, embeddedStatus: null, exception: null };
  const { cause, embeddedStatus, exception } = reading;
  return { cause, fitsStatus, embeddedStatus, exception };
}

/** Of other failures the body decides nothing; under an error status it names an exception. */
function statusShows({ cause }: FailureSignals, body: Buffer): Shown {
  const none = { cause, embeddedStatus: null };
  switch (cause) {
    case 'http_status':
      return {
        ...none,
        fitsStatus: (status) => status !== null && status !== 200,
        exception: errorText(body).exception,
      };
    case 'queue_limit':
      return {
        ...none,
        fitsStatus: (status) => status !== null && BUSY.has(status),
        exception: errorText(body).exception,
      };
    default:
      return { ...none, fitsStatus: () => true, exception: null };
  }
}

function differ(
  what: string,
  expected: string | number | null,
  actual: string | number | null,
): Contradiction | null {
  return expected === actual ? null : { what, expected, actual };
}
