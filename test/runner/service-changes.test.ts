import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { openBook } from '../../src/ledger/book.js';
import { buildReport } from '../../src/report/build.js';
import { bookInput } from '../../src/report/input.js';
import { type PlanSetting, type Trial, trial } from './fixture.js';
import { tasks } from './service-helpers.js';

const CANARY =
  'canary: { prompts: ["canary a", "canary b"], max_tokens: 2, logprobs: 0, logprob_tolerance: 0.05 }';
const MASKED = { ...tasks(4) };

/** What the stub beside a plan says and does from now on. */
function say(plan: Trial, state: object): void {
  writeFileSync(`${plan.log}.state`, JSON.stringify(state));
}

async function caveats(plan: Trial): Promise<readonly string[]> {
  const book = await openBook(plan.root, plan.stored, 'read');
  try {
    return buildReport(bookInput(book)).caveats;
  } finally {
    book.close();
  }
}

const canaries = async (plan: Trial) =>
  (await plan.of('canary.recorded')).map(
    ({ service, at, verdict, largest_logprob_difference: largest }) =>
      `${service} ${at} ${verdict} ${largest}`,
  );

test.concurrent('a service is asked for its description at its start and end; clocks do not count', async () => {
  const plan = await trial({ prompts: MASKED });
  say(plan, {
    version: '0.11.0',
    props: { build_info: 'b1-x', default_generation_settings: { id: 0, prompt: 'a', params: { top_k: 40 } } },
    info: { dtype: 'bfloat16', uptime: 1, internal_states: [{ load: 1 }] },
  });
  const summary = await plan.run();
  expect(summary.json.warnings).toEqual([]);
  const [started] = await plan.of('service.started');
  expect(await plan.of('service.described')).toMatchObject([
    { service: 'M@42#0', at: 'end', compared_with: started?.seq, changed: [], total: 0 },
  ]);
  expect(plan.lines).toContainEqual(
    expect.stringMatching(/^service M@42 ready on 127.0.0.1:[0-9]+ \(pid [0-9]+\), version "0.11.0"$/),
  );
  expect(await plan.findings()).toEqual([]);
});

test.concurrent('a setting that changes in mid-run is recorded, warned of, remarked and a caveat of its arms', async () => {
  const prompts = { ...MASKED, x: 'set {"version":"0.11.1"}' };
  const plan = await trial({ prompts });
  say(plan, { version: '0.11.0' });
  const summary = await plan.run();
  expect(summary.reason).toBe('finished');
  const warning = 'M@42#0 describes itself otherwise at its end than at its start: /~1version/version';
  expect(summary.json.warnings).toEqual([warning]);
  expect(summary.text.replace(/\s+/g, ' ')).toContain(`warning ${warning}`);
  const [described] = await plan.of('service.described');
  expect(described).toMatchObject({ changed: ['/~1version/version'], total: 1 });
  const result = await audit(plan.root, plan.stored.file);
  expect(result.findings).toEqual([]);
  expect(JSON.stringify(result)).toContain(
    `entry ${described?.seq}: M@42#0 described itself otherwise at its end than at its start, at 1 places: /~1version/version`,
  );
  expect(await caveats(plan)).toContain(
    `Services of M@42 (arm M) described themselves otherwise than before: entry ${described?.seq} (/~1version/version).`,
  );
});

test.concurrent('a version that is newer in the next session is held against the first', async () => {
  const plan = await trial({ prompts: MASKED });
  say(plan, { version: '0.11.0', info: { port: 1, random_seed: 5 } });
  await plan.run({ limit: 2 });
  say(plan, { version: '0.12.0', info: { port: 2, random_seed: 6 } });
  const { json } = await plan.run();
  expect(json.warnings).toEqual([
    'M@42#0 describes itself otherwise than the first service of its model: /~1version/version',
  ]);
  const [first] = await plan.of('service.started');
  expect(
    (await plan.of('service.described')).map(({ at, compared_with, total }) => [
      at,
      compared_with === first?.seq,
      total,
    ]),
  ).toEqual([
    ['end', true, 0],
    ['start', true, 1],
    ['end', false, 0],
  ]);
  expect(await plan.findings()).toEqual([]);
});

test.concurrent('a bound model that is no longer listed at the end is a changed service', async () => {
  const plan = await trial({ prompts: { ...MASKED, x: 'set {"models":["another"]}' } });
  const error = await plan.run().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    code: 'SERVICE_CHANGED',
    exitCode: 3,
    message: expect.stringContaining('"another"'),
  });
  expect(await plan.of('run.paused')).toMatchObject([{ reason: 'service_changed' }]);
  expect(await plan.of('slot.settled')).toHaveLength(5);
  expect(await plan.findings()).toEqual([]);
});

test.concurrent('a canary is the reference at first, and the same at every start and end', async () => {
  const plan = await trial({ prompts: MASKED, models: ['B', 'M'], serviceKeys: CANARY });
  await plan.run({ limit: 6 });
  say(plan, { drift: 0.01 });
  await plan.run();
  expect(await canaries(plan)).toEqual([
    'B@42#0 start reference null',
    'B@42#0 end same 0',
    'M@42#0 start reference null',
    'M@42#0 end same 0',
    expect.stringMatching(/^M@42#0 start same 0\.01/),
    expect.stringMatching(/^M@42#0 end same 0\.01/),
  ]);
  const [{ answers } = { answers: '' }] = await plan.of('canary.recorded');
  const book = await openBook(plan.root, plan.stored, 'read');
  const object = JSON.parse(book.store.getObject(answers as never).toString('utf8')) as { answers: object[] };
  book.close();
  expect(object.answers).toMatchObject([
    {
      form: 'bytes',
      tokens: ['6f6e65', '2074776f'],
      logprobs: [-0.5, -1.5],
      prompt_ids: null,
      request: { temperature: 0, seed: 0 },
    },
    { request: { messages: [{ role: 'user', content: 'canary b' }] } },
  ]);
  expect(await plan.findings()).toEqual([]);
});

test.concurrent('a server that swaps its model under the same name between sessions is refused before any attempt', async () => {
  const plan = await trial({ prompts: MASKED, serviceKeys: CANARY });
  await plan.run({ limit: 2 });
  const before = plan.requests().length;
  say(plan, { word: 'uno' });
  const error = await plan.run().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'SERVICE_CHANGED', exitCode: 3 });
  expect(plan.requests()).toHaveLength(before);
  expect((await plan.of('run.paused')).map(({ reason }) => reason)).toEqual(['limit', 'service_changed']);
  expect((await plan.of('service.stopped')).map(({ reason }) => reason)).toEqual(['run_ended', 'run_ended']);
  expect(await canaries(plan)).toEqual([
    'M@42#0 start reference null',
    'M@42#0 end same 0',
    'M@42#0 start differs 0',
  ]);
  // Brought back to what it was, it goes on.
  say(plan, {});
  expect((await plan.run()).reason).toBe('finished');
  expect(await plan.findings()).toEqual([]);
});

test.concurrent('a server that swaps its weights in mid-run under the same name is caught at its end', async () => {
  const plan = await trial({ prompts: { ...MASKED, x: 'set {"drift":0.2}' }, serviceKeys: CANARY });
  const error = await plan.run({ workers: 1 }).catch((thrown: unknown) => thrown);
  const told = expect.stringContaining('answered the canary otherwise at its end');
  expect(error).toMatchObject({
    code: 'SERVICE_CHANGED',
    exitCode: 3,
    evidence: { summary: { reason: 'service_changed', warnings: [told] } },
  });
  const [start, end] = await plan.of('canary.recorded');
  expect(end).toMatchObject({ at: 'end', verdict: 'differs', compared_with: start?.seq });
  expect(end?.largest_logprob_difference).toBeCloseTo(0.2, 12);
  const said = `5 attempts started since entry ${start?.seq} may have met other weights or settings`;
  expect(await caveats(plan)).toContain(
    `A service of M@42 (arm M) answered the canary otherwise than the reference (entry ${end?.seq}): ${said}.`,
  );
  const result = await audit(plan.root, plan.stored.file);
  expect(result.findings).toEqual([]);
  expect(JSON.stringify(result)).toContain(said);
});

test.concurrent('a service that dies answers the canary again when it is started again', async () => {
  const plan = await trial({ prompts: { ...MASKED, x: 'die' }, serviceKeys: CANARY });
  await plan.run();
  expect(await canaries(plan)).toEqual([
    'M@42#0 start reference null',
    'M@42#1 start same 0',
    'M@42#1 end same 0',
  ]);
  expect(await plan.findings()).toEqual([]);
});

test.concurrent('healthy by the probe, dead in fact: a server without log-probabilities does not come up (F-75)', async () => {
  const setting: PlanSetting = { prompts: MASKED, serviceKeys: CANARY, restarts: 0 };
  const plan = await trial(setting);
  say(plan, { word: null });
  const error = await plan.run().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    code: 'SERVICE_FAILED',
    message: expect.stringContaining('does not answer its canary'),
  });
  expect(await plan.of('attempt.started')).toEqual([]);
  expect(await plan.findings()).toEqual([]);
});

test.concurrent('a service that leaves health questions unanswered is started again; its attempts are replaced', async () => {
  const health = 'health: { every_s: 0.1, timeout_s: 0.2, failures: 2 }';
  const plan = await trial({
    prompts: { ...MASKED, x: 'hang-once' },
    serviceKeys: health,
  });
  const summary = await plan.run({ workers: 1 });
  expect(summary.reason).toBe('finished');
  expect((await plan.of('service.stopped')).map(({ service, reason }) => `${service} ${reason}`)).toEqual([
    'M@42#0 unresponsive',
    'M@42#1 done',
  ]);
  const failures = (await plan.of('stage.finished')).flatMap(({ result }) =>
    result.kind === 'failure' ? [result.signals] : [],
  );
  expect(failures).toMatchObject([{ cause: 'connection_lost', service_alive: false }]);
  expect(await plan.of('slot.settled')).toHaveLength(5);
  expect(await plan.findings()).toEqual([]);
});

test.concurrent('with max_up the service of the last model is kept; nothing is started twice', async () => {
  const alternating = { prompts: tasks(3), models: ['B', 'M'], groupBy: '[]' } as const;
  const kept = await trial({ ...alternating, serviceKeys: 'max_up: 2' });
  expect((await kept.run({ workers: 1 })).reason).toBe('finished');
  expect((await kept.of('service.started')).map(({ service }) => service).sort()).toEqual([
    'B@42#0',
    'M@42#0',
  ]);
  expect((await kept.of('service.stopped')).map(({ reason }) => reason)).toEqual(['done', 'done']);
  expect(await kept.findings()).toEqual([]);
});

test.concurrent('the least recently used of the services that are up is ended first', async () => {
  const plan = await trial({ prompts: tasks(2), models: ['A', 'B', 'C'], serviceKeys: 'max_up: 2' });
  await plan.run({ workers: 2 });
  const steps = (await plan.entries()).flatMap((entry) =>
    entry.type === 'service.started' || entry.type === 'service.stopped'
      ? [`${entry.type.slice(8)} ${entry.model}`]
      : [],
  );
  expect(steps.slice(0, 4)).toEqual(['started A@42', 'started B@42', 'stopped A@42', 'started C@42']);
  expect(steps.slice(4).sort()).toEqual(['stopped B@42', 'stopped C@42']);
  expect(await plan.findings()).toEqual([]);
});

test('no log of a service is lost when several are up', async () => {
  const plan = await trial({ prompts: tasks(1), models: ['A', 'B'], serviceKeys: 'max_up: 2' });
  await plan.run();
  const folder = readdirSync(join(plan.ledger, 'work')).find((name) => name.startsWith('services-')) ?? '';
  const logs = readdirSync(join(plan.ledger, 'work', folder)).sort();
  expect(logs).toEqual(['service-1.stderr', 'service-1.stdout', 'service-2.stderr', 'service-2.stdout']);
  expect(readFileSync(join(plan.ledger, 'work', folder, 'service-2.stderr'), 'utf8')).toBe('');
});
