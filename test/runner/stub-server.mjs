// A server under test that misbehaves on demand. What it does with a request is written in the request's own prompt:
// `<mode> <anything>`. Each line of its log is one request that it saw.
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    port: { type: 'string' },
    host: { type: 'string', default: '127.0.0.1' },
    model: { type: 'string', default: 'stub' },
    weights: { type: 'string', default: '' },
    log: { type: 'string', default: '' },
    // How the whole server behaves: ok, never-ready, exit-at-once, dies-after, stubborn, elsewhere, child, wrong-model
    manner: { type: 'string', default: 'ok' },
    after: { type: 'string', default: '0' },
    // With the manner squatted: where a stranger listens on the port before this server can.
    squat: { type: 'string', default: '127.0.0.1' },
    // Where every request is noted.
    seen: { type: 'string', default: '' },
  },
});

const { manner } = values;

/**
 * What can change while it runs, in the file beside its log that a test or a prompt (`set {…}`) writes: version, props and
 * info (what it says of itself), models (listed), name (under which it answers), fingerprint (of its answers), health (ok, fail, hang), drift (of log-probabilities), word (what it
 * answers to a canary), key (that every request must bear).
 */
function state() {
  const file = `${values.log}.state`;
  return values.log !== '' && existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
}
let requests = 0;
let hung = false;
let sickUntil = 0;
/** The listener. */
let server = null;
const seen = new Map();

if (manner === 'exit-at-once') {
  process.stderr.write('no such model\n');
  process.exit(7);
}
if (manner === 'stubborn') process.on('SIGTERM', () => undefined);
// A stranger that no test ended.
if (values.seen !== '') setTimeout(() => process.exit(0), 30_000).unref();
if (manner === 'elsewhere' || manner === 'child') handOver();
else if (manner === 'squatted') squatted();
else listen();

/** Lets another process listen: a child of this one, or one that has left its family. */
function handOver() {
  const args = process.argv
    .slice(1)
    .filter((_, i, all) => all[i] !== '--manner' && all[i - 1] !== '--manner');
  if (manner === 'child') {
    spawn(process.execPath, args, { stdio: 'inherit' });
  } else {
    // Through a process that ends at once, so that the listener has no parent here, and with nothing in its
    // environment by which it could be found: a stranger.
    const start = `require('node:child_process').spawn(process.execPath, ${JSON.stringify(args)}, { detached: true, stdio: 'ignore', env: {} }).unref()`;
    spawn(process.execPath, ['-e', start], { detached: true, stdio: 'ignore', env: {} }).unref();
  }
  setInterval(() => undefined, 1000);
}

/** A stranger takes the port between its choice and this start, which then cannot listen and does not end for it. */
function squatted() {
  const port = Number(values.port);
  const args = [process.argv[1], '--port', values.port, '--host', values.squat, '--seen', values.seen];
  const start = `require('node:child_process').spawn(process.execPath, ${JSON.stringify(args)}, { detached: true, stdio: 'ignore', env: {} }).unref()`;
  spawn(process.execPath, ['-e', start], { detached: true, stdio: 'ignore', env: {} }).unref();
  const timer = setInterval(() => {
    const probe = connect(port, '127.0.0.1', () => {
      clearInterval(timer);
      probe.destroy();
      createServer()
        .on('error', () => undefined)
        .listen(port, values.host);
    });
    probe.on('error', () => undefined);
  }, 100);
  setInterval(() => undefined, 1000);
}

function listen() {
  server = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => handle(request, response, Buffer.concat(chunks).toString('utf8')));
  });
  server.listen(Number(values.port), values.host);
}

function handle(request, response, body) {
  if (values.seen !== '') appendFileSync(values.seen, `${request.method} ${request.url}\n`);
  if (request.url === '/stop-stranger') process.exit(0);
  const now = state();
  if (now.key !== undefined && request.headers.authorization !== `Bearer ${now.key}`) {
    json(response, 401, { error: { message: 'no key' } });
    return;
  }
  if (request.url === '/health') {
    if (hung || now.health === 'hang') return;
    const isIll = manner === 'never-ready' || now.health === 'fail' || performance.now() < sickUntil;
    response.writeHead(isIll ? 503 : 200).end();
    return;
  }
  if (request.url === '/v1/models') {
    const ids = manner === 'wrong-model' ? ['somebody-else'] : (now.models ?? [values.model]);
    const created = Math.round(performance.now());
    json(response, 200, { object: 'list', data: ids.map((id) => ({ id, created, root: values.weights })) });
    return;
  }
  const said = {
    '/version': now.version && { version: now.version },
    '/props': now.props,
    '/server_info': now.info,
  };
  if (said[request.url]) {
    json(response, 200, said[request.url]);
    return;
  }
  if (request.method !== 'POST') {
    json(response, 404, { error: { message: 'not here' } });
    return;
  }
  requests++;
  const asked = JSON.parse(body);
  const prompt = asked.messages?.at(-1)?.content ?? asked.prompt;
  const count = (seen.get(prompt) ?? 0) + 1;
  seen.set(prompt, count);
  if (asked.logprobs !== undefined) {
    json(response, 200, canary(asked, now));
    return;
  }
  if (values.log !== '') appendFileSync(values.log, `${JSON.stringify({ prompt, seed: asked.seed })}\n`);
  if (manner === 'dies-after' && requests > Number(values.after) && !diedBefore()) process.exit(9);
  answer(prompt.split(' ')[0], count, asked, response);
}

/** A server that dies once: its next start finds the mark of the first. */
function diedBefore() {
  const mark = `${values.log}.died`;
  if (existsSync(mark)) return true;
  appendFileSync(mark, 'x');
  return false;
}

const MODES = {
  html: (_n, _q, r) =>
    r.writeHead(200, { 'content-type': 'text/html' }).end('<html><body>Busy</body></html>'),
  'error-200': (_n, _q, r) =>
    json(r, 200, { error: { code: 429, message: 'slow down', type: 'rate_limit' } }),
  'error-200-text': (_n, _q, r) => json(r, 200, { error: 'out of cheese' }),
  empty: (_n, q, r) => json(r, 200, { ...frame(q), choices: [] }),
  null: (_n, q, r) => json(r, 200, { ...frame(q), choices: null }),
  nobody: (_n, _q, r) => r.writeHead(200).end('null'),
  nan: (_n, q, r) => r.writeHead(200).end(JSON.stringify(good(q, '7')).replace('"stop"', 'NaN')),
  'wrong-type': (_n, q, r) => json(r, 200, { ...good(q, '7'), choices: 'seven' }),
  two: (_n, q, r) => json(r, 200, { ...frame(q), choices: [choice('7'), choice('8')] }),
  'other-model': (_n, q, r) => json(r, 200, { ...good(q, '7'), model: 'another' }),
  huge: (_n, _q, r) => flood(r),
  'mid-body': (_n, q, r) => {
    const text = JSON.stringify(good(q, '7'));
    r.writeHead(200, { 'content-length': text.length });
    r.write(text.slice(0, 20), () => setTimeout(() => r.socket?.destroy(), 20));
  },
  // A whole answer, then no HTTP: the connection ends, and the body that was kept says nothing of it.
  'bad-chunk': (_n, q, r) => {
    const text = JSON.stringify(good(q, '7'));
    r.writeHead(200);
    r.write(text, () => setTimeout(() => r.socket?.end('no chunk\r\n'), 20));
  },
  'bad-status': (_n, _q, r) => r.socket?.end('HTTP/1.1 two hundred\r\n\r\n'),
  reset: (_n, _q, r) => r.socket?.resetAndDestroy(),
  'reset-once': (n, q, r) => (n === 1 ? r.socket?.resetAndDestroy() : reply(r, q, '7')),
  'busy-twice': (n, q, r) => {
    if (n > 2) return reply(r, q, '7');
    r.writeHead(n === 1 ? 429 : 503, n === 1 ? { 'retry-after': '1' } : {}).end(
      '{"error":{"message":"busy"}}',
    );
  },
  'busy-always': (_n, _q, r) => r.writeHead(503).end('{"error":{"message":"busy"}}'),
  500: (_n, _q, r) => json(r, 500, { error: { message: 'internal', type: 'InternalServerError' } }),
  redirect: (_n, _q, r) => r.writeHead(302, { location: '/v1/models' }).end(),
  context: (_n, _q, r) =>
    json(r, 400, {
      error: { message: "This model's maximum context length is 13 tokens", type: 'BadRequestError' },
    }),
  slow: (_n, q, r) => setTimeout(() => json(r, 200, good(q, '7')), 20_000).unref(),
  boxed: (_n, q, r) => reply(r, q, 'so \\boxed{7}.'),
  later: (_n, q, r) => setTimeout(() => reply(r, q, '7'), 300),
  patient: (_n, q, r) => setTimeout(() => reply(r, q, '7'), 1700),
  length: (_n, q, r) => json(r, 200, good(q, '', 'length', null)),
  aborted: (_n, q, r) => json(r, 200, good(q, '7', 'abort')),
  'no-end': (_n, q, r) =>
    json(r, 200, { ...frame(q), usage: undefined, choices: [{ ...choice('7'), finish_reason: null }] }),
  surrogate: (_n, q, r) =>
    r.writeHead(200).end(JSON.stringify(good(q, 'SURROGATE')).replace('SURROGATE', '7 \\ud800')),
  // Loses a connection, and is not well for a while.
  sick: (_n, _q, r) => {
    sickUntil = performance.now() + 200;
    r.socket?.resetAndDestroy();
  },
  // The process lives on and listens no more, until the next start finds the mark of this one.
  'deaf-once': (_n, q, r) => {
    if (diedBefore()) return json(r, 200, good(q, '7'));
    server.close();
    server.closeAllConnections();
    setInterval(() => undefined, 1000);
  },
  // Nothing is answered any more, health least of all, until the next start finds the mark of this one.
  'hang-once': (_n, q, r) => {
    if (diedBefore()) return json(r, 200, good(q, '7'));
    hung = true;
  },
  right: (_n, q, r) => reply(r, q, '7'),
  wrong: (_n, q, r) => reply(r, q, '8'),
  // Ends the server whenever it is asked, with what is in flight beside it.
  poison: () => setTimeout(() => process.exit(9), 100),
  // The engine is gone, and the front end is not: nothing is answered but questions about health.
  silent: () => undefined,
  die: (n, q, r) => (n === 1 && !diedBefore() ? process.exit(9) : reply(r, q, '7')),
};

function reply(response, asked, text) {
  if (asked.stream) stream(response, whole(asked, text));
  else json(response, 200, good(asked, text));
}

function answer(mode, count, asked, response) {
  if (mode === 'set') set((asked.messages?.at(-1)?.content ?? asked.prompt).slice(4));
  const act = (asked.stream ? STREAMS[mode] : undefined) ?? MODES[mode];
  if (act === undefined) reply(response, asked, '7');
  else act(count, asked, response);
}

/** One chunk of a stream; `more` goes into its choice. */
function chunk({ model }, delta, more = {}) {
  const content = { delta, text: delta.content ?? '' };
  return {
    id: 'x',
    object: 'chat.completion.chunk',
    model,
    system_fingerprint: state().fingerprint,
    choices: [{ index: 0, ...content, finish_reason: null, ...more }],
  };
}

const USAGE = { prompt_tokens: 3, completion_tokens: 2 };

/** A whole stream: role, one chunk for each text, finish reason, usage without a choice (F-65), [DONE]. */
function whole(asked, ...texts) {
  return [
    chunk(asked, { role: 'assistant', content: '' }),
    ...texts.map((content) => chunk(asked, { content })),
    chunk(asked, {}, { finish_reason: 'stop' }),
    { model: asked.model, choices: [], usage: USAGE },
    '[DONE]',
  ];
}

/** As llama.cpp does when it is verbose: the settings stand in the last chunk. */
function echoing(asked, temperature) {
  const [role, text, end, ...rest] = whole(asked, '7');
  const generation_settings = {
    temperature,
    top_p: 1,
    top_k: -1,
    seed: asked.seed,
    n_predict: asked.max_tokens,
  };
  return [role, text, { ...end, __verbose: { generation_settings } }, ...rest];
}

function toEvent(value) {
  return `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
}

/** Sends events in pieces of so many bytes, and ends or cuts the connection. */
function stream(
  response,
  events,
  { cut = false, edit = (text) => text, size = Number.POSITIVE_INFINITY } = {},
) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const bytes = Buffer.isBuffer(events) ? events : Buffer.from(edit(events.map(toEvent).join('')));
  let sent = 0;
  const more = () => {
    if (response.destroyed) return;
    if (sent < bytes.length) {
      response.write(bytes.subarray(sent, sent + size), () => setImmediate(more));
      sent += size;
    } else if (cut) setTimeout(() => response.socket?.destroy(), 20);
    else response.end();
  };
  more();
}

const STREAMS = {
  // Lines and characters are cut wherever a piece ends; comments, names and CR LF are no data.
  pieces: (_n, q, r) =>
    stream(r, whole(q, '7', ' ä€😀'), {
      size: 3,
      edit: (text) => `: ping\n\nevent: message\n${text.replaceAll('\n', '\r\n')}`,
    }),
  'no-done': (_n, q, r) => stream(r, whole(q, '7').slice(0, -1)),
  'usage-without-choices': (_n, q, r) =>
    stream(r, [...whole(q, '7').slice(0, 3), { model: q.model, usage: USAGE }, '[DONE]']),
  'role-only': (_n, q, r) =>
    stream(r, [chunk(q, { role: 'assistant', content: null }), ...whole(q, '7').slice(1)]),
  reasoning: (_n, q, r) =>
    stream(r, [chunk(q, { reasoning_content: 'four and three' }), ...whole(q, '7').slice(1)]),
  'reasoning-only': (_n, q, r) =>
    stream(r, [chunk(q, { reasoning: 'four and' }), chunk(q, {}, { finish_reason: 'length' }), '[DONE]']),
  length: (_n, q, r) => stream(r, [chunk(q, {}, { finish_reason: 'length' }), '[DONE]']),
  'cut-before': (_n, q, r) => stream(r, whole(q).slice(0, 1), { cut: true }),
  'cut-after': (_n, q, r) => stream(r, whole(q, '7 is', ' the').slice(0, 3), { cut: true }),
  'cut-when-complete': (_n, q, r) => stream(r, whole(q, '7').slice(0, 3), { cut: true }),
  'ends-before': (_n, q, r) => stream(r, whole(q).slice(0, 1)),
  'ends-after': (_n, q, r) => stream(r, whole(q, '7 is').slice(0, 2)),
  'ends-in-a-line': (_n, q, r) => stream(r, whole(q, '7').slice(0, 3), { edit: (text) => text.slice(0, -1) }),
  'error-first': (_n, _q, r) =>
    stream(r, [{ error: { code: 503, message: 'overloaded', type: 'Overloaded' } }]),
  'error-after': (_n, q, r) =>
    stream(r, [...whole(q, '7').slice(0, 2), { error: { code: 429, message: 'preempted' } }, '[DONE]']),
  'two-choices': (_n, q, r) =>
    stream(r, [chunk(q, { content: '7' }), chunk(q, { content: '8' }, { index: 1 })]),
  two: (_n, q, r) => {
    const one = chunk(q, { content: '7' });
    stream(r, [{ ...one, choices: [...one.choices, ...one.choices] }]);
  },
  // F-73: the first answer is from the model that was asked, all others are not.
  'other-model': (_n, q, r) =>
    stream(r, [chunk(q, { content: '7' }), chunk({ model: 'another' }, { content: '8' })]),
  'other-settings': (_n, q, r) => stream(r, echoing(q, 0)),
  'same-settings': (_n, q, r) => stream(r, echoing(q, q.temperature)),
  swaps: (_n, q, r) => stream(r, whole(requests === 1 ? q : { model: 'another' }, '7')),
  aborted: (_n, q, r) => stream(r, [chunk(q, { content: '7' }, { finish_reason: 'abort' }), '[DONE]']),
  'goes-on': (_n, q, r) =>
    stream(r, [chunk(q, { content: '7' }, { finish_reason: 'stop' }), chunk(q, { content: '8' }), '[DONE]']),
  'not-streamed': (_n, q, r) => json(r, 200, good(q, '7')),
  'not-utf-8': (_n, q, r) => {
    const [before, after] = whole(q, '@').map(toEvent).join('').split('@');
    stream(r, Buffer.concat([Buffer.from(before), Buffer.of(0xc3, 0x28), Buffer.from(after)]));
  },
  'huge-line': (_n, _q, r) => stream(r, [`{"x":"${'y'.repeat(2_000_000)}"}`]),
  deep: (_n, _q, r) => stream(r, ['['.repeat(100_000) + ']'.repeat(100_000)]),
  'no-json': (_n, _q, r) => stream(r, ['so be it']),
  pings: (_n, _q, r) => stream(r, Buffer.from(': ping\n\n: ping\n\n')),
  surrogate: (_n, q, r) =>
    stream(r, whole(q, '7 HIGH', 'LOW'), {
      edit: (text) => text.replace('HIGH', '\\ud83d').replace('LOW', '\\ude00'),
    }),
  stalls: (_n, q, r) => {
    r.writeHead(200, { 'content-type': 'text/event-stream' });
    r.write(toEvent(chunk(q, { content: '7' })));
  },
  // Loops, and comes to an end all the same when nobody stops it.
  'loops-right': (_n, q, r) => stream(r, whole(q, ...LOOP, '\\boxed{7}')),
  'loops-wrong': (_n, q, r) => stream(r, whole(q, ...LOOP, '\\boxed{8}')),
  'loops-and-breaks': (_n, q, r) => stream(r, whole(q, ...LOOP).slice(0, -3), { cut: true }),
  // Says the same three words for ever.
  looping: (_n, q, r) => {
    r.writeHead(200, { 'content-type': 'text/event-stream' });
    const more = () => {
      if (r.destroyed) return;
      r.write(toEvent(chunk(q, { content: 'so it is ' })));
      setTimeout(more, 2);
    };
    more();
  },
};

const LOOP = Array.from({ length: 8 }, () => 'so it is ');

/** Two tokens with their log-probabilities. */
function canary(asked, { drift = 0, word = 'one' }) {
  if (word === null) return good(asked, 'one two');
  const content = [word, ' two'].map((token, i) => ({
    token,
    logprob: -0.5 - i - drift,
    bytes: [...Buffer.from(token)],
    top_logprobs: [],
  }));
  return { ...frame(asked), choices: [{ ...choice(`${word} two`), logprobs: { content } }] };
}

/** Changes what a later request meets. */
function set(text) {
  writeFileSync(`${values.log}.state`, JSON.stringify({ ...state(), ...JSON.parse(text) }));
}

function choice(text, finish_reason = 'stop', content = text) {
  return { index: 0, message: { role: 'assistant', content }, text, finish_reason };
}

function frame({ model }) {
  const { name, fingerprint } = state();
  return {
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: name ?? model,
    system_fingerprint: fingerprint,
    usage: { prompt_tokens: 3, completion_tokens: 2 },
  };
}

function good(asked, text, finish, content) {
  return { ...frame(asked), choices: [choice(text, finish, content === undefined ? text : content)] };
}

function json(response, status, value) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

/** 300 MB, unless the other side cuts. */
function flood(response) {
  const block = Buffer.alloc(1 << 20, 0x20);
  let left = 300;
  response.writeHead(200);
  const more = () => {
    while (left-- > 0) {
      if (!response.write(block)) {
        response.once('drain', more);
        return;
      }
    }
    response.end();
  };
  response.on('error', () => undefined);
  more();
}

// Only read so that a test can see that the weights given are those on disk.
if (values.weights !== '' && existsSync(join(values.weights, 'config.json')))
  readFileSync(join(values.weights, 'config.json'));
