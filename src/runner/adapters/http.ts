import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { Pool } from 'undici';
import { systemCode } from '../../core/errors.js';
import type { Cause, Phase } from '../../protocol/schema/signals.js';
import { KeyedPool } from './keyed-pool.js';

/**
 * One HTTP request and what came of it. All limits are the caller's: the library's own are off, since a limit that
 * the protocol did not set would fail the arm with the longer answers (F-71). Nothing is retried and no redirect is
 * followed (F-69).
 */
export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body: Buffer | null;
  readonly timeoutMs: number;
  /** Past this many bytes of body the connection is cut. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** Sees each piece of a body as it comes; true ends the request there, as an answer. */
  readonly watch?: (status: number, piece: Buffer) => boolean;
}

export type HttpResult =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly body: Buffer;
    }
  | {
      readonly kind: 'failure';
      readonly cause: Cause;
      readonly phase: Phase;
      readonly status: number | null;
      readonly text: string;
      /** Whether the pool was destroyed in the meantime: no act of the server. */
      readonly isTorn: boolean;
      /** What had come of the body; at most `maxBytes`. */
      readonly body: Buffer;
    }
  | { readonly kind: 'abandoned' };

/** @param key that every request bears and no answer shows; null for none */
export function createPool(origin: string, connections: number, key: string | null = null): Pool {
  const options: Pool.Options = {
    connections,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    connectTimeout: 0,
    // Servers close idle connections; one that is closed while a request is on its way would look like a failure of
    // the server. None of the usual servers closes within a second.
    keepAliveTimeout: 1000,
    keepAliveMaxTimeout: 1000,
  };
  return key === null ? new Pool(origin, options) : new KeyedPool(origin, options, key);
}

/** Sends one request. Never throws and always settles: every end is a value. */
export function send(pool: Pool, request: HttpRequest): Promise<HttpResult> {
  return new Promise((resolve) => {
    if (request.signal.aborted) {
      resolve({ kind: 'abandoned' });
      return;
    }
    const kept = pool instanceof KeyedPool ? (body: Buffer) => pool.kept(body) : null;
    const exchange = new Exchange(request, kept, resolve);
    pool.dispatch(
      {
        method: request.method,
        path: request.path,
        body: request.body,
        headers: request.body === null ? {} : { 'content-type': 'application/json' },
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      exchange,
    );
  });
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: HttpRequest;
  readonly #kept: ((body: Buffer) => Buffer) | null;
  readonly #resolve: (result: HttpResult) => void;
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort: () => void;
  #controller: Dispatcher.DispatchController | null = null;
  #phase: Phase = 'connect';
  #status: number | null = null;
  #headers: IncomingHttpHeaders = {};
  #chunks: Buffer[] = [];
  #size = 0;
  #done = false;

  constructor(
    request: HttpRequest,
    kept: ((body: Buffer) => Buffer) | null,
    resolve: (result: HttpResult) => void,
  ) {
    this.#request = request;
    this.#kept = kept;
    this.#resolve = resolve;
    const limit = () => this.#fail('time_limit', `no complete answer within ${request.timeoutMs / 1000} s`);
    this.#timer = setTimeout(limit, request.timeoutMs);
    this.#onAbort = () => this.#cut({ kind: 'abandoned' });
    request.signal.addEventListener('abort', this.#onAbort);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#done) controller.abort(new Error('the caller has gone'));
    else this.#phase = 'headers';
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    this.#phase = 'body';
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#done) return;
    const room = this.#request.maxBytes - this.#size;
    this.#size += chunk.length;
    const kept = chunk.length > room ? chunk.subarray(0, room) : chunk;
    this.#chunks.push(kept);
    if (this.#request.watch?.(this.#status ?? 0, kept) === true) this.#cut(this.#answer());
    else if (this.#size > this.#request.maxBytes) {
      this.#fail('body_too_large', `the answer is longer than ${this.#request.maxBytes} bytes`);
    }
  }

  onResponseEnd(): void {
    this.#end(this.#answer());
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const code = systemCode(error);
    const isTorn = code !== undefined && TORN.has(code);
    const cause = isTorn ? 'connection_lost' : causeOf(this.#phase);
    this.#fail(cause, `${code ?? error.name}: ${error.message}`, isTorn);
  }

  #fail(cause: Cause, text: string, isTorn = false): void {
    this.#cut({
      kind: 'failure',
      cause,
      phase: this.#phase,
      status: this.#status,
      text,
      isTorn,
      body: this.#body(),
    });
  }

  #answer(): HttpResult {
    return { kind: 'answer', status: this.#status ?? 0, headers: this.#headers, body: this.#body() };
  }

  #body(): Buffer {
    const [only] = this.#chunks;
    const body = this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks);
    return this.#kept === null ? body : this.#kept(body);
  }

  /** Ends the exchange without waiting for the other side. */
  #cut(result: HttpResult): void {
    const wasOpen = !this.#done;
    this.#end(result);
    if (wasOpen) this.#controller?.abort(new Error('the caller has gone'));
  }

  #end(result: HttpResult): void {
    if (this.#done) return;
    this.#done = true;
    clearTimeout(this.#timer);
    this.#request.signal.removeEventListener('abort', this.#onAbort);
    this.#chunks = [];
    this.#resolve(result);
  }
}

/** Errors of requests whose pool was destroyed or closed. */
const TORN: ReadonlySet<string> = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED']);

/** The cause of an error of the connection. */
function causeOf(phase: Phase): Cause {
  // What is no HTTP ends the connection too. Causes that begin with `body_` are kept for bodies that came whole.
  return phase === 'connect' ? 'connection_refused' : 'connection_lost';
}
