import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BoundbookError } from '../../core/errors.js';
import type { Closing } from '../closing.js';
import type { AdjudicationRound } from '../round.js';
import { verdictOf } from '../words.js';
import type { Html } from './html.js';
import { closedPage, closePage, itemPage, messagePage } from './page.js';
import { STYLE } from './style.js';

const HOST = '127.0.0.1';
const MAX_BODY = 64 * 1024;

/** Nothing is loaded from anywhere, no script runs, nobody may frame the page, forms go back to it alone. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;

/** A page on this host for one round of adjudication. Who knows the token in its address may judge. */
export class AdjudicationServer {
  readonly #round: AdjudicationRound;
  readonly #server: Server;
  readonly #token = randomBytes(24).toString('base64url');
  #port = 0;
  /** Requests are answered one after the other: two verdicts at once would be a race. */
  #turn: Promise<void> = Promise.resolve();
  readonly #closed: Promise<Closing>;
  #conclude: (closing: Closing) => void = () => undefined;

  constructor(round: AdjudicationRound) {
    this.#round = round;
    this.#closed = new Promise((resolve) => {
      this.#conclude = resolve;
    });
    this.#server = createServer({ requestTimeout: 30_000, maxHeaderSize: 16_384 }, (request, response) => {
      this.#turn = this.#turn.then(() => this.#answer(request, response));
    });
  }

  /**
   * @param port 0 for any that is free
   * @returns the address of the page
   * @throws {BoundbookError} USAGE when the port is taken or may not be used.
   */
  async listen(port: number): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (cause) =>
        reject(
          new BoundbookError('USAGE', `port ${port} of ${HOST} cannot be used: ${cause.message}`, {
            hint: 'Leave --port out, and a free one is taken.',
            cause,
          }),
        ),
      );
      this.#server.listen(port, HOST, resolve);
    });
    this.#port = (this.#server.address() as AddressInfo).port;
    return `http://${HOST}:${this.#port}${this.#base}/`;
  }

  /** Resolves when the round was closed on the page. */
  get closed(): Promise<Closing> {
    return this.#closed;
  }

  async stop(): Promise<void> {
    await this.#turn;
    this.#server.closeIdleConnections();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  get #base(): string {
    return `/${this.#token}`;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#route(request, response);
    } catch (error) {
      const known = error instanceof BoundbookError ? error : null;
      const text =
        known === null ? 'The page failed; the verdicts that are committed are safe.' : known.message;
      send(response, known?.exitCode === 2 ? 409 : 500, messagePage('Not possible', text, this.#base));
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', `http://${HOST}`);
    const [token = '', ...path] = url.pathname.slice(1).split('/');
    // A page of another name that resolves to this host is another site's.
    if (!this.#isOwnHost(request) || !this.#isOwnOrigin(request))
      return send(response, 403, messagePage('Refused', 'The request came from another site.', null));
    if (!isSame(token, this.#token))
      return send(response, 404, messagePage('Not found', 'The address is not that of this round.', null));
    const [what = '', alias = '', piece, index] = path;
    const search = (url.searchParams.get('q') ?? '').slice(0, 200);
    if (request.method === 'GET' || request.method === 'HEAD') {
      if (what === '' && path.length <= 1) return this.#next(response);
      if (what === 'item' && path.length === 2) return this.#item(response, alias, search);
      if (what === 'item' && piece === 'piece' && path.length === 4)
        return this.#piece(response, alias, index ?? '');
      if (what === 'close' && path.length === 1)
        return send(response, 200, closePage(this.#base, this.#round.progress()));
    } else if (request.method === 'POST' && path.length === 1) {
      if (what === 'verdict') return this.#judge(response, await formOf(request));
      if (what === 'close') return this.#close(response);
    }
    send(response, 404, messagePage('Not found', 'There is no such page.', this.#base));
  }

  #isOwnHost({ headers: { host } }: IncomingMessage): boolean {
    return host === `${HOST}:${this.#port}` || host === `localhost:${this.#port}`;
  }

  #isOwnOrigin({ headers: { origin, host } }: IncomingMessage): boolean {
    return origin === undefined || origin === `http://${host}`;
  }

  #next(response: ServerResponse): void {
    const questions = this.#round.questions();
    const next = questions.find(({ judged }) => !judged);
    redirect(response, next === undefined ? `${this.#base}/close` : `${this.#base}/item/${next.alias}`);
  }

  #item(response: ServerResponse, alias: string, search: string, fault?: string, reason = ''): void {
    const questions = this.#round.questions();
    const page = itemPage({
      base: this.#base,
      progress: this.#round.progress(),
      alias,
      judged: questions.some((one) => one.alias === alias && one.judged),
      evidence: this.#round.evidence(alias),
      questions,
      search,
      fault: fault ?? null,
      reason,
    });
    send(response, fault === undefined ? 200 : 422, page);
  }

  #piece(response: ServerResponse, alias: string, index: string): void {
    const piece = /^\d{1,6}$/.test(index) ? this.#round.evidence(alias)[Number(index)] : undefined;
    if (piece === undefined) {
      send(response, 404, messagePage('Not found', 'There is no such evidence.', this.#base));
      return;
    }
    response.writeHead(200, { ...HEADERS, 'content-type': 'text/plain; charset=utf-8' }).end(piece.text);
  }

  async #judge(response: ServerResponse, form: URLSearchParams): Promise<void> {
    const [alias, reason, search] = [form.get('alias') ?? '', form.get('reason') ?? '', form.get('q') ?? ''];
    try {
      await this.#round.judge(alias, verdictOf(form.get('verdict') ?? ''), reason);
    } catch (error) {
      if (!(error instanceof BoundbookError) || error.code !== 'USAGE') throw error;
      return this.#item(response, alias, search, error.message, reason);
    }
    redirect(response, `${this.#base}/`);
  }

  #close(response: ServerResponse): void {
    const progress = this.#round.progress();
    const closing = this.#round.close();
    send(response, 200, closedPage(progress, closing));
    response.once('close', () => this.#conclude(closing));
  }
}

function send(response: ServerResponse, status: number, page: Html): void {
  response.writeHead(status, { ...HEADERS, 'content-type': 'text/html; charset=utf-8' }).end(page.text);
}

function redirect(response: ServerResponse, location: string): void {
  response.writeHead(303, { ...HEADERS, location }).end();
}

async function formOf(request: IncomingMessage): Promise<URLSearchParams> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > MAX_BODY) throw new BoundbookError('USAGE', 'the form is too large');
    parts.push(part);
  }
  return new URLSearchParams(Buffer.concat(parts).toString('utf8'));
}

/** In a time that does not tell how much of the token is right. */
function isSame(given: string, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}
