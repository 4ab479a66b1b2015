import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { openBook } from '../../src/ledger/book.js';
import { OPERATORS_WORD } from '../../src/protocol/schema/services.js';
import { type PlanSetting, type Trial, trial } from './fixture.js';

const KEY = 'sk-proj/0123456789+"secret"';
const BASE64 = Buffer.from(`Bearer ${KEY}`).toString('base64');
const FORMS = [KEY, JSON.stringify(KEY).slice(1, -1), encodeURIComponent(KEY), BASE64.slice(12, -4)];
const CANARY = 'canary: { prompts: ["canary"], max_tokens: 2, logprobs: 0, logprob_tolerance: 0 }';

process.env.TALKATIVE_KEY = KEY;
const servers: { close: () => void }[] = [];
afterAll(() => {
  delete process.env.TALKATIVE_KEY;
  for (const server of servers) server.close();
});

type Act = (response: ServerResponse, said: string, asked: { model: string; stream: boolean }) => void;

const send = (response: ServerResponse, status: number, value: unknown) =>
  response.writeHead(status, { 'x-key': encodeURIComponent(KEY) }).end(JSON.stringify(value));
const chunk = (model: string, delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ model, choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const answer = (model: string, content: string) => ({
  model,
  choices: [{ index: 0, message: { content }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1 },
});

/** What is done with a prompt, by its first word. */
const ACTS: Readonly<Record<string, Act>> = {
  refused: (response, said) =>
    send(response, 401, { error: { message: `Incorrect API key provided: ${said}`, type: said } }),
  embedded: (response, said) => send(response, 200, { error: { code: 500, message: said } }),
  page: (response, said) => response.writeHead(500).end(`<b>${encodeURIComponent(said)}</b>`),
  basic: (response, said) => response.writeHead(403).end(Buffer.from(said).toString('base64')),
  named: (response, said) => send(response, 200, answer(said, '7')),
  busy: (response, said) => response.writeHead(503, { 'retry-after': said }).end(said),
  text: (response, said, { model, stream }) =>
    stream
      ? response.end(chunk(model, { content: said }) + chunk(model, {}, 'stop'))
      : send(response, 200, answer(model, said)),
  cut: (response, said) => {
    response.writeHead(500, { 'content-length': 10_000 });
    response.write(`no ${said} and ${said.slice(0, -1)}`, () => setTimeout(() => response.destroy(), 20));
  },
  slowly: (response, said, { model }) => {
    const bytes = Buffer.from(
      chunk(model, { reasoning: said }) + chunk(model, { content: `7 ${said}` }) + chunk(model, {}, 'stop'),
    );
    let at = 0;
    const more = () => {
      response.write(bytes.subarray(at, at + 5));
      at += 5;
      if (at < bytes.length) setImmediate(more);
      else response.end();
    };
    more();
  },
  // Broken off before the blank line of its last event.
  'spelled-cut': (response, said, { model }) =>
    response.end(
      Array.from(said, (content) => chunk(model, { content }))
        .join('')
        .trimEnd(),
    ),
  spelled: (response, said, { model }) =>
    response.end(
      Array.from(said, (content) => chunk(model, { content })).join('') + chunk(model, {}, 'stop'),
    ),
};

/** A server that puts the key into everything that it says. */
async function talkative(setting: PlanSetting): Promise<Trial> {
  const server = createServer((request: IncomingMessage, response) => {
    const said = request.headers.authorization ?? '';
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      if (request.url === '/health') response.writeHead(200).end(said);
      else if (request.url === '/v1/models') send(response, 200, { data: [{ id: 'M@42', owned_by: said }] });
      else if (request.method === 'GET') send(response, 200, { version: said, build_info: said });
      else {
        const asked = JSON.parse(Buffer.concat(parts).toString()) as never as {
          model: string;
          stream: boolean;
          logprobs?: true;
          messages: { content: string }[];
        };
        const [mode = ''] = (asked.messages[0]?.content ?? '').split(' ');
        if (asked.logprobs !== undefined) {
          const logprobs = { content: [{ token: said, logprob: -0.5 }] };
          const [choice] = answer(asked.model, said).choices;
          send(response, 200, { ...answer(asked.model, said), choices: [{ ...choice, logprobs }] });
        } else ACTS[mode]?.(response, said, asked);
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  servers.push(server);
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  return trial({
    limits: 'request_s: 5, queue_wait_s: 0.2, response_bytes: 100000',
    ...setting,
    external: { origin, accepted: OPERATORS_WORD, api_key_env: 'TALKATIVE_KEY' },
  });
}

/** All bytes below a folder, as one text. */
function contentsOf(folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((item) => item.isFile())
    .map((item) => readFileSync(join(item.parentPath, item.name), 'latin1'))
    .join('\n');
}

async function failures(plan: Trial) {
  const prompts = new Map(
    (await plan.of('attempt.started')).map(({ attempt, key }) => [attempt, key.task] as const),
  );
  return Object.fromEntries(
    (await plan.of('stage.finished')).flatMap(({ attempt, result }) =>
      result.kind === 'failure' ? [[prompts.get(attempt), result.signals] as const] : [],
    ),
  );
}

async function assertSilent(plan: Trial, told: readonly string[]): Promise<void> {
  const result = await audit(plan.root, plan.stored.file);
  expect(result.findings).toEqual([]);
  const all = [...told, plan.lines.join('\n'), JSON.stringify(result), contentsOf(plan.root)];
  for (const form of FORMS) expect(all.filter((text) => text.includes(form))).toEqual([]);
}

test('a server that gives its key back in errors, bodies, descriptions and canaries leaves no trace of it', async () => {
  const modes = ['refused', 'embedded', 'page', 'basic', 'named', 'busy', 'text', 'cut'];
  const prompts = Object.fromEntries(modes.map((mode) => [mode, `${mode} x`]));
  const plan = await talkative({ prompts, serviceKeys: CANARY });
  const summary = await plan.run();
  await assertSilent(plan, [summary.text, JSON.stringify(summary.json)]);
  const signals = await failures(plan);
  expect(signals).toMatchObject({
    refused: {
      http_status: 401,
      text: 'Incorrect API key provided: Bearer ⟦key⟧',
      exception: 'Bearer ⟦key⟧',
    },
    embedded: { embedded_status: 500, text: 'Bearer ⟦key⟧' },
    page: { http_status: 500, text: '<b>Bearer%20⟦key⟧</b>' },
    basic: { http_status: 403, text: expect.stringContaining('⟦key⟧') },
    named: { text: expect.stringContaining('"Bearer ⟦key⟧"') },
    busy: { cause: 'queue_limit', text: 'Bearer ⟦key⟧' },
    cut: { cause: 'connection_lost', http_status: 500 },
  });
  expect(plan.lines).toContainEqual(expect.stringContaining('version "Bearer ⟦key⟧"'));
  const book = await openBook(plan.root, plan.stored, 'read');
  const [attached] = await plan.of('service.attached');
  expect(JSON.parse(book.store.getObject(attached?.effective as never).toString())).toMatchObject({
    '/v1/models': { data: [{ id: 'M@42', owned_by: 'Bearer ⟦key⟧' }] },
    '/props': { build_info: 'Bearer ⟦key⟧' },
  });
  const [{ answers } = { answers: '' }] = await plan.of('canary.recorded');
  expect(JSON.parse(book.store.getObject(answers as never).toString())).toMatchObject({
    answers: [{ tokens: ['Bearer ⟦key⟧'] }],
  });
  book.close();
});

test('streams hold the mark, wherever they are cut into pieces, and are read as they are kept', async () => {
  const modes = ['refused', 'text', 'slowly', 'spelled', 'spelled-cut'];
  const prompts = Object.fromEntries(modes.map((mode) => [mode, `${mode} x`]));
  const plan = await talkative({ prompts, stream: true });
  const summary = await plan.run();
  await assertSilent(plan, [summary.text, JSON.stringify(summary.json)]);
  const signals = await failures(plan);
  expect(Object.keys(signals).sort()).toEqual(['refused', 'spelled', 'spelled-cut']);
  // The texts of this one make up the key: nothing of it is kept.
  expect(signals.spelled).toMatchObject({ cause: 'body_not_json', http_status: 200, first_token: false });
  expect(signals['spelled-cut']).toMatchObject({ cause: 'body_not_json', http_status: 200 });
  const candidates = (await plan.of('stage.finished')).flatMap(({ result }) =>
    result.kind === 'candidate' ? [result.candidate] : [],
  );
  const book = await openBook(plan.root, plan.stored, 'read');
  expect(candidates.map((digest) => book.store.getObject(digest).toString()).sort()).toEqual([
    '7 Bearer ⟦key⟧',
    'Bearer ⟦key⟧',
  ]);
  book.close();
});

test('a key that stands in honest answers by chance is refused', async () => {
  const plan = await talkative({ prompts: { t: 'text' } });
  process.env.TALKATIVE_KEY = 'seven77';
  try {
    await expect(plan.run()).rejects.toMatchObject({
      code: 'SERVICE_FAILED',
      message: expect.stringContaining('less than 8 characters'),
    });
  } finally {
    process.env.TALKATIVE_KEY = KEY;
  }
  expect(await plan.of('attempt.started')).toEqual([]);
});
