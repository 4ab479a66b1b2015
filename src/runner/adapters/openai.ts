import type { IncomingHttpHeaders } from 'node:http';
import type { Pool } from 'undici';
import { type FailureSignals, failureSignals } from '../../attempts/signals.js';
import { canonicalBytes } from '../../core/canonical-json.js';
import { BoundbookError } from '../../core/errors.js';
import { isAnswerGrader } from '../../grading/answer.js';
import type { OpenaiRunner } from '../../protocol/schema/openai-runner.js';
import type { Adapter, GenerateEnd, GradeEnd, RunningAttempt, Work } from './adapter.js';
import { secondsSince } from './adapter.js';
import { gradeText } from './answer-grading.js';
import { fingerprintsIn } from './fingerprint.js';
import { type HttpResult, send } from './http.js';
import { type AnswerReading, errorText, type Question } from './openai-answer.js';
import { buildRequest, ENDPOINT_PATHS, questionOf } from './openai-request.js';
import { readResponse, StreamReader } from './openai-stream.js';
import { retryAfter } from './retry-after.js';

/** The service as the adapter sees it. */
export interface Endpoint {
  readonly pool: Pool;
  /** Whether the service's process lives, as seen when it has had a moment to end. */
  isAlive(waitMs: number): Promise<boolean>;
  /** Whether Boundbook gave it up while it lived. */
  readonly isGivenUp: boolean;
}

/** Told at once when a connection to a service was refused or lost, before anything else is made of it. */
export type OnBrokenConnection = (endpoint: Endpoint) => void;

/** Told at once when an answer came under another model's name, before anything else is made of it. */
export type OnOtherModel = (model: string, said: string) => void;

/** Told of what an answer says of the system that gave it. */
export type OnFingerprints = (model: string, said: readonly string[]) => void;

/** Longest pause between two questions to a busy server that names none. */
const MAX_PAUSE_MS = 5000;
const FIRST_PAUSE_MS = 250;
/** How long after a broken connection the end of the service's process is waited for. */
const DEATH_MS = 250;

/** Asks a server that speaks the OpenAI protocol: one request for each attempt, graded in this process. */
export class OpenaiAdapter implements Adapter {
  readonly gradesAtOnce = true;
  readonly #runner: OpenaiRunner;
  /** The service that is up; replaced when a service is started. */
  endpoint: Endpoint | null = null;
  onBrokenConnection: OnBrokenConnection = () => undefined;
  onOtherModel: OnOtherModel = () => undefined;
  onFingerprints: OnFingerprints = () => undefined;

  constructor(runner: OpenaiRunner) {
    this.#runner = runner;
  }

  request({ condition, model, fields, samplingSeed }: Work): Buffer {
    const { endpoint, stream } = this.#runner;
    return buildRequest(endpoint, condition, model, fields, samplingSeed, stream);
  }

  async generate(attempt: RunningAttempt, signal: AbortSignal): Promise<GenerateEnd> {
    const { endpoint } = this;
    if (endpoint === null || attempt.request === null) {
      throw new BoundbookError('INTERNAL', 'an attempt was started without a service or a request');
    }
    const start = performance.now();
    const question = questionOf(this.#runner, attempt.work);
    const asked = await this.#ask(endpoint.pool, attempt.request, question, signal);
    if (asked.result.kind === 'abandoned') return asked.result;
    if (isBroken(asked.result)) this.onBrokenConnection(endpoint);
    const { answer, body, ...seen } = readEnd(asked.result, question);
    const fingerprints = fingerprintsIn(body);
    if (fingerprints.length > 0) this.onFingerprints(question.model, fingerprints);
    if (!answer.ok && answer.otherModel !== undefined) this.onOtherModel(question.model, answer.otherModel);
    const rest = {
      objects: objectsOf(body, asked.refusals),
      usage: answer.ok ? answer.usage : null,
      finishReason: answer.ok ? answer.finishReason : null,
      seconds: secondsSince(start),
      queueSeconds: asked.queueSeconds,
      // A stream of which nothing is kept has shown no token.
      firstTokenSeconds: seen.first_token === true ? asked.firstTokenSeconds : undefined,
    };
    if (answer.ok) return { kind: 'candidate', bytes: Buffer.from(answer.text, 'utf8'), ...rest };
    const observed = { ...signalsOf(asked.result, answer, asked.queueLimit), ...seen };
    if (isTorn(asked.result)) {
      return {
        kind: 'failure',
        signals: { ...observed, ...tornBy(endpoint), service_alive: false },
        ...rest,
      };
    }
    // A broken connection is often seen before the end of the process that broke it.
    const service_alive = await endpoint.isAlive(observed.http_status === null ? DEATH_MS : 0);
    return { kind: 'failure', signals: { ...observed, service_alive }, ...rest };
  }

  async grade(attempt: RunningAttempt, candidate: Buffer): Promise<GradeEnd> {
    const { grader } = attempt.work.condition;
    if (!isAnswerGrader(grader)) {
      throw new BoundbookError('PROTOCOL_INVALID', 'the openai adapter has no grade command to report', {
        hint: 'Use the grader kinds exact or integer, or the command adapter.',
      });
    }
    return gradeText(grader, attempt.work, candidate);
  }

  async mark(): Promise<void> {
    // The response is committed as soon as it is there; there is no moment to bridge.
  }

  async recover(): Promise<null> {
    return null;
  }

  /** Asks until the server takes the request; what it refuses as busy before any token is queue time (DESIGN §9). */
  async #ask(pool: Pool, body: Buffer, question: Question, signal: AbortSignal): Promise<Asked> {
    const { limits, endpoint } = this.#runner;
    const request = {
      method: 'POST',
      path: ENDPOINT_PATHS[endpoint],
      body,
      timeoutMs: limits.request_s * 1000,
      maxBytes: limits.response_bytes,
      signal,
    } as const;
    const start = performance.now();
    const refusals: Refusal[] = [];
    for (;;) {
      const queueSeconds = refusals.length === 0 ? 0 : secondsSince(start);
      const watched = question.stream ? watchStream(question) : null;
      const result = await send(pool, watched === null ? request : { ...request, watch: watched.watch });
      const busy = result.kind === 'answer' && (result.status === 429 || result.status === 503);
      if (!busy) {
        const firstTokenSeconds = watched?.firstTokenSeconds();
        return { result, refusals, queueSeconds, queueLimit: false, firstTokenSeconds };
      }
      const waited = secondsSince(start);
      const left = limits.queue_wait_s - waited;
      const pause = pauseBefore(refusals.length, result.headers, left);
      refusals.push({ status: result.status, at_seconds: waited, pause_seconds: pause ?? 0 });
      const rest = { refusals, firstTokenSeconds: undefined };
      if (pause === null) return { result, queueSeconds: waited, queueLimit: true, ...rest };
      if (!(await sleep(pause * 1000, signal))) {
        return { result: { kind: 'abandoned' }, queueSeconds: 0, queueLimit: false, ...rest };
      }
    }
  }
}

/** Follows a stream as it comes, for what cannot be seen afterwards: when its first token came, and where to stop. */
function watchStream(question: Question) {
  const reader = new StreamReader(question);
  const start = performance.now();
  let seconds: number | undefined;
  const watch = (status: number, piece: Buffer): boolean => {
    // Without a stop rule nothing after the first token is waited for.
    if (status !== 200 || (seconds !== undefined && question.loopStop === null)) return false;
    const stopped = reader.feed(piece);
    if (reader.firstToken) seconds ??= secondsSince(start);
    return stopped;
  };
  return { watch, firstTokenSeconds: () => seconds };
}

type Refused = Extract<AnswerReading, { ok: false }>;
type Ended = Exclude<HttpResult, { kind: 'abandoned' }>;

interface EndReading {
  readonly answer: AnswerReading;
  /** What is kept of the response. */
  readonly body: Buffer;
  /** Of a streamed one: whether any token had come. */
  readonly first_token?: boolean;
}

/** What came of a request. A stream that is complete is an answer, whatever became of its connection (P13). */
function readEnd(result: Ended, question: Question): EndReading {
  const isRead = result.status === 200 && (result.kind === 'answer' || question.stream);
  const reading = isRead ? readResponse(result.body, question) : null;
  const body = result.body.subarray(0, reading?.stoppedAt ?? result.body.length);
  const first_token = question.stream ? { first_token: reading?.firstToken ?? false } : {};
  return { answer: reading?.answer ?? NO_ANSWER, body, ...first_token };
}

/** Whether the connection was closed here: its service had died, or was given up. */
function isTorn(result: Ended): boolean {
  return result.kind === 'failure' && result.isTorn;
}

function tornBy({ isGivenUp }: Endpoint): Pick<FailureSignals, 'cause' | 'text'> {
  const text = isGivenUp
    ? 'Boundbook gave the service up and closed its connections'
    : 'the service had ended, and Boundbook closed its connections';
  return { cause: 'connection_lost', text };
}

/** Whether nobody listened, or whoever did has gone. */
function isBroken(result: Ended): boolean {
  return (
    result.kind === 'failure' && (result.cause === 'connection_refused' || result.cause === 'connection_lost')
  );
}

const NO_ANSWER: Refused = {
  ok: false,
  cause: 'http_status',
  text: '',
  embeddedStatus: null,
  exception: null,
};

function signalsOf(result: Ended, answer: Refused, queueLimit: boolean): FailureSignals {
  if (result.kind === 'failure') {
    const { phase, cause, text, status } = result;
    return failureSignals({ stage: 'generate', phase, cause, text, http_status: status });
  }
  const answered = { stage: 'generate', http_status: result.status } as const;
  if (result.status !== 200) {
    const phase = queueLimit ? 'queue' : 'headers';
    const cause = queueLimit ? 'queue_limit' : 'http_status';
    return failureSignals({ ...answered, phase, cause, ...errorText(result.body) });
  }
  const { cause, text, exception, embeddedStatus } = answer;
  const embedded_status = embeddedStatus;
  return failureSignals({ ...answered, phase: 'body', cause, text, exception, embedded_status });
}

/** One time that the server said it was busy; all of them are kept, so that its count of requests can be explained. */
interface Refusal {
  readonly status: number;
  readonly at_seconds: number;
  readonly pause_seconds: number;
}

interface Asked {
  readonly result: HttpResult;
  readonly refusals: readonly Refusal[];
  readonly queueSeconds: number;
  readonly queueLimit: boolean;
  readonly firstTokenSeconds: number | undefined;
}

function objectsOf(body: Buffer, refusals: readonly Refusal[]): Record<string, Buffer> {
  return {
    ...(body.length === 0 ? {} : { response: body }),
    ...(refusals.length === 0 ? {} : { queue: canonicalBytes(refusals) }),
  };
}

/** Seconds to wait before asking again; null when the bound is reached. */
function pauseBefore(asked: number, headers: IncomingHttpHeaders, left: number): number | null {
  if (left <= 0) return null;
  const wanted =
    retryAfter(headers['retry-after'], Date.now()) ??
    Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** asked) / 1000;
  return Math.max(0.01, Math.min(wanted, left));
}

/** Resolves true after the time, false when the signal came first. */
function sleep(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve(false);
      return;
    }
    const end = (done: boolean) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      resolve(done);
    };
    const onAbort = () => end(false);
    const timer = setTimeout(() => end(true), ms);
    signal.addEventListener('abort', onAbort);
  });
}
