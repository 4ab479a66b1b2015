import type { FailureSignals } from '../attempts/signals.js';
import { errorText, type Question } from '../runner/adapters/openai-answer.js';
import { type ResponseReading, readResponse } from '../runner/adapters/openai-stream.js';

/** Causes that are read off a whole body under status 200. */
const FROM_BODY: ReadonlySet<string> = new Set([
  'body_not_json',
  'body_error',
  'body_no_choice',
  'body_malformed',
  'stream_cut',
  'model_differs',
  'settings_differ',
]);
const BUSY: ReadonlySet<number> = new Set([429, 503]);

/** What the signals of a failed request must be, and what they are. */
export interface Contradiction {
  readonly what: string;
  readonly expected: Shown;
  readonly actual: Shown;
}

type Shown = string | number | boolean | null;

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
  question: Question,
): Contradiction | null {
  const { cause, http_status: status, embedded_status, exception } = signals;
  const isFromBody = FROM_BODY.has(cause);
  const isRead = (question.stream || isFromBody) && (status === 200 || status === null);
  const reading = isRead ? readResponse(body, question) : null;
  const shown = isFromBody ? bodyShows(reading) : statusShows(signals, body);
  return (
    hiddenStream(reading, question, cause) ??
    differ('the cause', shown.cause, cause) ??
    (shown.fitsStatus(status)
      ? null
      : { what: 'the status', expected: 'another for this cause', actual: status }) ??
    differ('the embedded status', shown.embeddedStatus, embedded_status) ??
    differ('the exception', shown.exception, exception) ??
    differ('whether a token came', firstToken(reading, question), signals.first_token ?? null)
  );
}

/** A stream that is complete, or at which the stop rule fired, was no failure, whatever became of its connection (P13). */
function hiddenStream(
  reading: ResponseReading | null,
  { stream }: Question,
  cause: FailureSignals['cause'],
): Contradiction | null {
  const isHidden = stream && reading !== null && (reading.answer.ok || reading.stoppedAt !== null);
  return isHidden ? { what: 'the cause', expected: 'a complete answer', actual: cause } : null;
}

/** Null where nothing is streamed. */
function firstToken(reading: ResponseReading | null, { stream }: Question): boolean | null {
  return stream ? (reading?.firstToken ?? false) : null;
}

interface FromKept {
  readonly cause: string;
  readonly fitsStatus: (status: number | null) => boolean;
  readonly embeddedStatus: number | null;
  readonly exception: string | null;
}

function bodyShows(reading: ResponseReading | null): FromKept {
  const fitsStatus = (status: number | null) => status === 200;
  const none = { fitsStatus, embeddedStatus: null, exception: null };
  if (reading === null) return { cause: 'http_status', ...none };
  if (reading.answer.ok) return { cause: 'a complete answer', ...none };
  const { cause, embeddedStatus, exception } = reading.answer;
  return { cause, fitsStatus, embeddedStatus, exception };
}

/** Of other failures the body decides nothing; under an error status it names an exception. */
function statusShows({ cause }: FailureSignals, body: Buffer): FromKept {
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

function differ(what: string, expected: Shown, actual: Shown): Contradiction | null {
  return expected === actual ? null : { what, expected, actual };
}
