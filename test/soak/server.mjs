// A server that fails in every way that the protocol's rules tell apart. What it does with a request is the first word of
// the request's prompt. Each line of its log is one request that it read, written before anything is done about it.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    port: { type: 'string' },
    host: { type: 'string' },
    model: { type: 'string' },
    weights: { type: 'string' },
    log: { type: 'string' },
  },
});
const model = values.model;
/** Requests after which a start of this server may die or hang. */
const LASTS = 400;
const REFUSING_MS = 200;
const SLOW_HEALTH_MS = 300;

let requests = 0;
let hung = false;
let slowHealthUntil = 0;
/** Questions by prompt and seed. */
const counts = new Map();
/** The one that waits for another to swap answers with. */
let waiting = null;

const server = createServer((request, response) => {
  response.on('error', () => undefined);
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    if (!hung) handle(request, response, Buffer.concat(chunks).toString('utf8'));
  });
});
listen();

function listen() {
  server.listen(Number(values.port), values.host);
}

function handle(request, response, body) {
  if (request.url === '/health') {
    const slow = performance.now() < slowHealthUntil;
    setTimeout(() => response.writeHead(200).end(), slow ? SLOW_HEALTH_MS : 0);
    return;
  }
  if (request.url === '/v1/models') {
    json(response, 200, { object: 'list', data: [{ id: model }] });
    return;
  }
  if (request.method !== 'POST') {
    json(response, 404, { error: { message: 'not here' } });
    return;
  }
  requests++;
  const asked = JSON.parse(body);
  const prompt = asked.messages.at(-1).content;
  appendFileSync(values.log, `${JSON.stringify({ prompt, seed: asked.seed })}\n`);
  const key = `${asked.seed} ${prompt}`;
  const count = (counts.get(key) ?? 0) + 1;
  counts.set(key, count);
  MODES[prompt.split(' ')[0]]({ response, stream: asked.stream === true, count, prompt });
}

const MODES = {
  right: (ask) => reply(ask, '7'),
  wrong: (ask) => reply(ask, '8'),
  // Two that wait get each other's answer; one that waits alone gets its own.
  swap: (ask) => {
    const answer = ask.prompt.split(' ')[1];
    if (waiting === null) {
      const timer = setTimeout(() => {
        waiting = null;
        reply(ask, answer);
      }, 100);
      waiting = { ask, answer, timer };
      return;
    }
    const other = waiting;
    waiting = null;
    clearTimeout(other.timer);
    reply(ask, other.answer);
    reply(other.ask, answer);
  },
  'reset-before': ({ response }) => response.socket?.resetAndDestroy(),
  'reset-after': ({ response }) => {
    response.writeHead(200, { 'content-length': 1000 }).flushHeaders();
    setTimeout(() => response.socket?.resetAndDestroy(), 20);
  },
  'reset-once': (ask) => (ask.count === 1 ? ask.response.socket?.resetAndDestroy() : reply(ask, '7')),
  'cut-before': ({ response, stream }) => cut(response, stream ? head() : '{"id":'),
  'cut-after': ({ response, stream }) =>
    cut(response, stream ? head() + token('7') : whole('7').slice(0, -9)),
  'ends-early': ({ response, stream }) =>
    response.writeHead(200).end(stream ? head() + token('7') : whole('7').slice(0, -9)),
  'busy-429': (ask) => (ask.count === 1 ? busy(ask.response, 429, { 'retry-after': '1' }) : reply(ask, '7')),
  'busy-503': (ask) => (ask.count <= 2 ? busy(ask.response, 503) : reply(ask, '7')),
  'busy-always-429': ({ response }) => busy(response, 429),
  'busy-always-503': ({ response }) => busy(response, 503, { 'retry-after': '1' }),
  500: ({ response }) => json(response, 500, { error: { message: 'internal' } }),
  'error-200': ({ response }) => json(response, 200, { error: { code: 429, message: 'slow down' } }),
  html: ({ response }) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Busy</html>'),
  huge: ({ response }) => response.writeHead(200).end(Buffer.alloc(1_000_000, 0x20)),
  hangs: () => undefined,
  stalls: ({ response, stream }) => response.writeHead(200).write(stream ? head() + token('7') : '{"id":'),
  dies: (ask) => (requests > LASTS ? process.exit(9) : reply(ask, '7')),
  'hangs-up': (ask) => {
    if (requests <= LASTS) return reply(ask, '7');
    hung = true;
  },
  refuses: (ask) => {
    reply(ask, '7');
    if (!server.listening) return;
    server.close();
    setTimeout(listen, REFUSING_MS);
  },
  'slow-health': (ask) => {
    slowHealthUntil = performance.now() + 2000;
    reply(ask, '7');
  },
};

function reply({ response, stream }, text) {
  if (!stream) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(whole(text, model));
    return;
  }
  const usage = event({ model, choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(head(model) + token(text, model));
  response.end(`${event(chunk({}, model, 'stop'))}${usage}data: [DONE]\n\n`);
}

function whole(content, name = model) {
  return JSON.stringify({
    id: 'x',
    object: 'chat.completion',
    model: name,
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 2 },
  });
}

function head(name = model) {
  return event(chunk({ role: 'assistant', content: '' }, name));
}

function token(content, name = model) {
  return event(chunk({ content }, name));
}

function chunk(delta, name, finish_reason = null) {
  return {
    id: 'x',
    object: 'chat.completion.chunk',
    model: name,
    choices: [{ index: 0, delta, finish_reason }],
  };
}

function event(value) {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function busy(response, status, headers = {}) {
  response.writeHead(status, headers).end('{"error":{"message":"busy"}}');
}

function cut(response, text) {
  response.writeHead(200, { 'transfer-encoding': 'chunked' });
  response.write(text, () => setTimeout(() => response.socket?.destroy(), 20));
}

function json(response, status, value) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
