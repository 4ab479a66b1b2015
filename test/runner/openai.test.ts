import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openBook } from '../../src/ledger/book.js';
import { samplingSeed } from '../../src/slots/slot.js';
import { type Trial, trial } from './fixture.js';
import { replaced, settled, story, twice, undetermined } from './story.js';

/** Mode of the server, how many requests it sees, and the whole story of the slot. */
const CASES: Readonly<Record<string, { readonly requests: number; readonly story: readonly string[] }>> = {
  right: { requests: 1, story: settled(1) },
  wrong: { requests: 1, story: settled(0) },
  later: { requests: 1, story: settled(1) },
  // P13: the budget is spent; what there is, is graded
  length: { requests: 1, story: settled(0) },
  // F-87
  surrogate: { requests: 1, story: settled(0) },
  // F-63
  html: { requests: 1, story: undetermined('body body_not_json 200/- alive') },
  'error-200': { requests: 2, story: twice('body body_error 200/429 alive', 'embedded') },
  'error-200-text': { requests: 1, story: undetermined('body body_error 200/- alive') },
  empty: { requests: 1, story: undetermined('body body_no_choice 200/- alive') },
  null: { requests: 1, story: undetermined('body body_no_choice 200/- alive') },
  nobody: { requests: 1, story: undetermined('body body_no_choice 200/- alive') },
  nan: { requests: 1, story: undetermined('body body_malformed 200/- alive') },
  'wrong-type': { requests: 1, story: undetermined('body body_malformed 200/- alive') },
  // F-55
  two: { requests: 1, story: undetermined('body body_malformed 200/- alive') },
  aborted: { requests: 1, story: undetermined('body body_error 200/- alive') },
  // F-61
  'no-end': { requests: 1, story: undetermined('body body_malformed 200/- alive') },
  huge: { requests: 1, story: undetermined('body body_too_large 200/- alive') },
  'mid-body': { requests: 2, story: twice('body connection_lost 200/- alive', 'connection') },
  'bad-chunk': { requests: 2, story: twice('body connection_lost 200/- alive', 'connection') },
  'bad-status': { requests: 2, story: twice('headers connection_lost -/- alive', 'connection') },
  reset: { requests: 2, story: twice('headers connection_lost -/- alive', 'connection') },
  'reset-once': {
    requests: 2,
    story: replaced('headers connection_lost -/- alive', 'connection', settled(1).slice(1)),
  },
  // Waiting for a busy server is queue time inside one attempt (DESIGN §9)
  'busy-twice': { requests: 3, story: settled(1) },
  500: { requests: 2, story: twice('headers http_status 500/- alive', 'server') },
  // Not followed
  redirect: { requests: 1, story: undetermined('headers http_status 302/- alive') },
  // F-67: never asked again
  context: { requests: 1, story: undetermined('headers http_status 400/- alive') },
  slow: { requests: 1, story: undetermined('headers time_limit -/- alive') },
};

let plan: Trial;

test('every way in which a server answers ends in exactly its entries', async () => {
  const memory = process.memoryUsage().rss;
  const modes = Object.keys(CASES);
  plan = await trial({
    prompts: Object.fromEntries(modes.map((mode) => [`t-${mode}`, `${mode} ${mode}`])),
    limits: 'request_s: 6, queue_wait_s: 20, response_bytes: 1000000',
  });
  const summary = await plan.run({ workers: modes.length });
  expect(summary.reason).toBe('finished');
  for (const [mode, expected] of Object.entries(CASES)) {
    expect(await story(plan, `t-${mode}`), mode).toEqual(expected.story);
    const seen = plan.requests().filter(({ prompt }) => prompt === `${mode} ${mode}`);
    expect(seen.length, mode).toBe(expected.requests);
  }
  // F-69: nothing was sent that the ledger does not explain
  const queued = CASES['busy-twice']?.requests ?? 0;
  const attempts = await plan.of('attempt.started');
  expect(plan.requests().length).toBe(attempts.length + queued - 1);
  // 300 MB came in, one megabyte was kept
  expect(process.memoryUsage().rss - memory).toBeLessThan(250 * 2 ** 20);
});

test('the audit, which replays every attempt by itself, finds nothing against it', async () => {
  expect(await plan.findings()).toEqual([]);
});

test('a request names every sampling field, and request, response and candidate are kept byte for byte', async () => {
  const book = await openBook(plan.root, plan.stored, 'read');
  const started = await plan.of('attempt.started');
  const finished = await plan.of('stage.finished');
  const one = started.find(({ key }) => key.task === 't-surrogate');
  const seed = samplingSeed(
    { namespace: 'trial', bits: 31 },
    { queue: 'main', evaluationSeed: 0, task: 't-surrogate', rep: 0 },
  );
  expect(one?.sampling_seed).toBe(seed);
  const request = book.store.getObject(one?.request ?? 'sha256:');
  expect(JSON.parse(request.toString())).toEqual({
    model: 'M@42',
    messages: [{ role: 'user', content: 'surrogate surrogate' }],
    temperature: 1,
    top_p: 1,
    top_k: -1,
    min_p: 0,
    max_tokens: 8,
    seed,
    n: 1,
    stream: false,
    chat_template_kwargs: { enable_thinking: false },
  });
  const stage = finished.find((entry) => entry.attempt === one?.attempt && entry.stage === 'generate');
  const response = book.store.getObject(stage?.objects.response ?? 'sha256:').toString();
  expect(response).toContain('7 \\ud800');
  const candidate = stage?.result.kind === 'candidate' ? stage.result.candidate : 'sha256:';
  expect(book.store.getObject(candidate as 'sha256:').toString()).toBe('7 \ufffd');
  expect(stage?.finish_reason).toBe('stop');
  expect(stage?.usage).toEqual({ prompt_tokens: 3, completion_tokens: 2 });
  // Every planned seed was asked for, and what the server saw is what the ledger says.
  const sent = new Map(plan.requests().map(({ prompt, seed: s }) => [prompt.split(' ')[0], s]));
  for (const { key, sampling_seed } of started) expect(sent.get(key.task.slice(2))).toBe(sampling_seed);
  book.close();
});

test('waiting for a busy server is recorded: its length, and each refusal', async () => {
  const book = await openBook(plan.root, plan.stored, 'read');
  const started = await plan.of('attempt.started');
  const attempt = started.find(({ key }) => key.task === 't-busy-twice')?.attempt;
  const stage = (await plan.of('stage.finished')).find(
    (entry) => entry.attempt === attempt && entry.stage === 'generate',
  );
  // Retry-After: 1, then half a second by our own count
  expect(stage?.queue_seconds).toBeGreaterThanOrEqual(1.4);
  expect(stage?.seconds).toBeGreaterThanOrEqual(stage?.queue_seconds ?? 0);
  const queue = JSON.parse(book.store.getObject(stage?.objects.queue ?? 'sha256:').toString());
  expect(queue).toMatchObject([
    { status: 429, pause_seconds: 1 },
    { status: 503, pause_seconds: 0.5 },
  ]);
  book.close();
});

test('a server that stays busy is an infrastructure failure past the bound', async () => {
  const busy = await trial({
    prompts: { a: 'busy-always' },
    limits: 'request_s: 2, queue_wait_s: 0.6, response_bytes: 1000',
  });
  await busy.run();
  expect(await story(busy, 'a')).toEqual(twice('queue queue_limit 503/- alive', 'queue'));
});

test('an answer of 300 MB is cut at the declared cap and its head kept', async () => {
  const book = await openBook(plan.root, plan.stored, 'read');
  const started = await plan.of('attempt.started');
  const attempt = started.find(({ key }) => key.task === 't-huge')?.attempt;
  const stage = (await plan.of('stage.finished')).find((entry) => entry.attempt === attempt);
  expect(book.store.getObject(stage?.objects.response ?? 'sha256:').length).toBe(1_000_000);
  book.close();
});

test('a finished run opened again sends nothing and ends well (F-133)', async () => {
  const before = plan.requests().length;
  const summary = await plan.run();
  expect(summary.reason).toBe('finished');
  expect(plan.requests().length).toBe(before);
  const entries = await plan.entries();
  expect(entries.slice(-4).map(({ type }) => type)).toEqual([
    'gate.passed',
    'checkpoint',
    'checkpoint',
    'run.paused',
  ]);
});

test('no outcome by arm is said by a run (law 8)', async () => {
  const summary = await plan.run();
  expect(summary.text).not.toMatch(/reward|score|correct|M@42/);
  expect(Object.keys(summary.json)).not.toContain('scores');
});

test('a service is started from the verified paths, described, and stopped with its whole group', async () => {
  const services = await plan.of('service.started');
  expect(services).toHaveLength(1);
  const book = await openBook(plan.root, plan.stored, 'read');
  const effective = JSON.parse(
    book.store.getObject(services[0]?.effective ?? 'sha256:').toString(),
  ) as Record<string, unknown>;
  const weights = join(plan.root, 'models/M-42');
  expect(effective['/v1/models']).toMatchObject({ data: [{ id: 'M@42', root: weights }] });
  book.close();
  const stopped = await plan.of('service.stopped');
  expect(stopped).toMatchObject([{ service: 'M@42#0', reason: 'done', gpus: 1 }]);
  expect(() => readFileSync(`/proc/${services[0]?.pid}/stat`)).toThrow();
});
