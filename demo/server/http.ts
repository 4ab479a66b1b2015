import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { complete } from './generate.js';
import type { Loaded } from './load.js';
import { type ParsedRequest, parseChat, parseCompletion, RequestError } from './request.js';

/** Largest request body, in bytes. */
export const MAX_BODY = 1024 * 1024;
/** Answers that one drill spoils. */
export const DRILL_LENGTH = 4;
export const SERVER_VERSION = '0.1.0';

/** What the server says about itself. */
export interface Served {
  /** The name clients use. */
  readonly name: string;
  /** The model directory. */
  readonly root: string;
  readonly loaded: Loaded;
}

/** A server, not yet listening, and the switch that spoils its next answers. */
export interface ModelServer {
  readonly server: Server;
  /** The next {@link DRILL_LENGTH} completion requests get status 200 and an error body. */
  readonly startDrill: () => void;
}

interface Answer {
  readonly status: number;
  /** For a stream, its events. */
  readonly body: unknown;
  readonly isStream?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

type Handler = (body: unknown) => Answer;

interface Route {
  readonly method: 'GET' | 'POST';
  readonly handle: Handler;
}

/** An OpenAI-compatible server for one model: the endpoints that a client of vLLM calls. */
export function createModelServer(served: Served): ModelServer {
  const routes = routesOf(served);
  const server = createServer((request, response) => {
    answer(routes, request)
      .catch(toAnswer)
      .then((result) => send(response, result))
      // Nothing is left to tell a client that has gone away.
      .catch(() => response.destroy());
  });
  // Longer than a client keeps an idle connection, so that a reused one isn't closed under a request.
  server.keepAliveTimeout = 75_000;
  return { server, startDrill: routes.startDrill };
}

interface Routes {
  readonly paths: ReadonlyMap<string, Route>;
  readonly startDrill: () => void;
}

function routesOf({ name, root, loaded }: Served): Routes {
  const created = Math.floor(Date.now() / 1000);
  let spoiled = 0;

  const completion =
    (parse: (body: unknown, loaded: Loaded) => ParsedRequest, kind: Kind): Handler =>
    (body) => {
      if (spoiled > 0) {
        spoiled--;
        return { status: 200, body: { error: { message: 'drill: no completion', type: 'server_error' } } };
      }
      const { model, job, stream, includeUsage } = parse(body, loaded);
      if (model !== undefined && model !== name) {
        throw new RequestError(
          404,
          `the model ${JSON.stringify(model)} isn't served here`,
          'model_not_found',
        );
      }
      const { text, finish, tokens } = complete(loaded, job);
      const frame = {
        id: `${kind.prefix}-${randomUUID()}`,
        object: stream ? kind.chunk : kind.object,
        created: Math.floor(Date.now() / 1000),
        model: name,
      };
      const usage = {
        prompt_tokens: job.prompt.length,
        completion_tokens: tokens,
        total_tokens: job.prompt.length + tokens,
      };
      const choices = (part: object, finish_reason: string | null) => [
        { index: 0, ...part, logprobs: null, finish_reason },
      ];
      if (!stream)
        return { status: 200, body: { ...frame, choices: choices(kind.whole(text), finish), usage } };
      // A character is a token.
      const parts = [...text].map((character) => kind.part(character));
      const events = [
        ...parts.map((part) => ({ ...frame, choices: choices(part, null) })),
        { ...frame, choices: choices(kind.part(''), finish) },
        ...(includeUsage ? [{ ...frame, choices: [], usage }] : []),
        '[DONE]',
      ];
      return { status: 200, body: events, isStream: true };
    };

  const get = (body: () => unknown): Route => ({
    method: 'GET',
    handle: () => ({ status: 200, body: body() }),
  });
  const card = {
    id: name,
    object: 'model',
    created,
    owned_by: 'boundbook',
    root,
    parent: null,
    max_model_len: loaded.model.config.positions,
  };
  const paths = new Map<string, Route>([
    ['/health', get(() => ({ status: 'ok' }))],
    ['/version', get(() => ({ version: SERVER_VERSION }))],
    ['/v1/models', get(() => ({ object: 'list', data: [card] }))],
    [
      '/v1/chat/completions',
      {
        method: 'POST',
        handle: completion(parseChat, CHAT),
      },
    ],
    ['/v1/completions', { method: 'POST', handle: completion(parseCompletion, TEXT) }],
  ]);
  return {
    paths,
    startDrill: () => {
      spoiled = DRILL_LENGTH;
    },
  };
}

interface Kind {
  readonly prefix: string;
  readonly object: string;
  /** `object` of a chunk of a stream. */
  readonly chunk: string;
  /** The choice of a whole answer, and of a chunk. */
  readonly whole: (text: string) => object;
  readonly part: (text: string) => object;
}

const CHAT: Kind = {
  prefix: 'chatcmpl',
  object: 'chat.completion',
  chunk: 'chat.completion.chunk',
  whole: (content) => ({ message: { role: 'assistant', content } }),
  part: (content) => ({ delta: { role: 'assistant', content } }),
};
const TEXT: Kind = {
  prefix: 'cmpl',
  object: 'text_completion',
  chunk: 'text_completion',
  whole: (text) => ({ text }),
  part: (text) => ({ text }),
};

async function answer(routes: Routes, request: IncomingMessage): Promise<Answer> {
  // Read before anything is refused: a body left unread would be taken for the next request of the connection, or reset
  // the connection before the client has seen the refusal.
  const body = await readBody(request);
  const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
  const route = routes.paths.get(path);
  if (route === undefined) throw new RequestError(404, `no such path: ${path}`, 'not_found');
  if (request.method !== route.method) {
    const refusal = new RequestError(405, `${path} answers ${route.method} only`, 'method_not_allowed');
    return { ...toAnswer(refusal), headers: { allow: route.method } };
  }
  return route.handle(route.method === 'GET' ? undefined : parseJson(body));
}

/** The body; what is over the limit is thrown away as it arrives. */
async function readBody(request: IncomingMessage): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request) {
    const bytes = chunk as Uint8Array;
    size += bytes.byteLength;
    if (size <= MAX_BODY) chunks.push(bytes);
    else chunks.length = 0;
  }
  if (size > MAX_BODY)
    throw new RequestError(413, `the body is larger than ${MAX_BODY} bytes`, 'body_too_large');
  return Buffer.concat(chunks);
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new RequestError(400, "the body isn't valid JSON", 'invalid_json');
  }
}

function toAnswer(cause: unknown): Answer {
  if (cause instanceof RequestError) {
    return {
      status: cause.status,
      body: { error: { message: cause.message, type: cause.type, code: cause.code } },
    };
  }
  return { status: 500, body: { error: { message: 'internal error', type: 'server_error', code: null } } };
}

function send(response: ServerResponse, { status, body, headers, isStream }: Answer): void {
  if (isStream === true) {
    response.writeHead(status, { 'content-type': 'text/event-stream', ...headers });
    for (const event of body as readonly unknown[]) {
      response.write(`data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`);
    }
    response.end();
    return;
  }
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': String(bytes.byteLength),
    ...headers,
  });
  response.end(bytes);
}
