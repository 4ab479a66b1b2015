import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import type { RunningAttempt } from '../../src/runner/adapters/adapter.js';
import { fingerprintsIn } from '../../src/runner/adapters/fingerprint.js';
import { createPool } from '../../src/runner/adapters/http.js';
import { OpenaiAdapter } from '../../src/runner/adapters/openai.js';
import { RULES, type Trial, trial } from './fixture.js';
import { tasks } from './service-helpers.js';
import { story, twice, undetermined } from './story.js';

const failures = async (plan: Trial) =>
  (await plan.of('stage.finished')).flatMap(({ result }) =>
    result.kind === 'failure' ? [result.signals] : [],
  );

const DEAD = 'headers connection_lost -/- dead';

test.concurrent('a task that kills the server gets one replacement and stays unresolved; every death is in the book (F-75)', async () => {
  const plan = await trial({ prompts: { ...tasks(8, 'later'), x: 'poison' }, restarts: 5 });
  expect((await plan.run({ workers: 4 })).reason).toBe('finished');
  expect(await story(plan, 'x')).toEqual(twice(DEAD, 'dead'));
  const stops = (await plan.of('service.stopped')).map(({ service, reason }) => `${service} ${reason}`);
  expect(stops).toEqual(['M@42#0 died', 'M@42#1 died', 'M@42#2 done']);
  // Its neighbours in flight lose theirs, too: they are replaced once, and never settled but by a report.
  const dead = (await failures(plan)).filter(({ service_alive }) => service_alive === false);
  expect(dead.length).toBeGreaterThan(2);
  const settled = await plan.of('slot.settled');
  const unresolved = await plan.of('slot.unresolved');
  expect(settled.every(({ value, basis }) => value === 1 && basis.kind === 'report')).toBe(true);
  expect(unresolved.every(({ reason }) => reason === 'limit_reached')).toBe(true);
  expect(settled.length + unresolved.length).toBe(9);
  expect(await plan.findings()).toEqual([]);
});

test.concurrent('a plan that fears such tasks leaves every death undetermined, and the server dies once for each', async () => {
  const fear =
    '{ id: maybe-poison, when: { cause: connection_lost, service_alive: false }, attribute: infrastructure, sufficient: false }, ';
  const attempts = `{ replacements: 1, regrades: 1, breaker: 50, rules: ${RULES.replace('[', `[ ${fear}`)} }`;
  const plan = await trial({ prompts: { ...tasks(4, 'later'), x: 'poison' }, restarts: 5, attempts });
  await plan.run({ workers: 4 });
  expect(await story(plan, 'x')).toEqual(
    undetermined(DEAD).map((line) => line.replace('by null', 'by maybe-poison')),
  );
  expect((await plan.of('service.stopped')).map(({ reason }) => reason)).toEqual(['died', 'done']);
  const unresolved = await plan.of('slot.unresolved');
  expect(unresolved.every(({ reason }) => reason === 'undetermined')).toBe(true);
  expect(unresolved.length).toBeGreaterThan(1);
  expect(await plan.findings()).toEqual([]);
});

test.concurrent('a front end without its engine opens the breaker, although rules call a time limit undetermined (F-75)', async () => {
  const plan = await trial({
    prompts: tasks(12, 'silent'),
    attempts: `{ replacements: 1, regrades: 1, breaker: 3, rules: ${RULES} }`,
    limits: 'request_s: 0.2, queue_wait_s: 1, response_bytes: 1000',
  });
  const error = await plan.run({ workers: 2 }).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'BREAKER_OPEN', exitCode: 5 });
  expect(await plan.of('run.paused')).toMatchObject([
    {
      reason: 'breaker',
      detail:
        '3 attempts in a row at M@42#0 reached their time limit or were turned away, and no answer came in between',
    },
  ]);
  expect((await plan.of('attempt.started')).length).toBeLessThanOrEqual(4);
  expect(await plan.findings()).toEqual([]);
});

test.concurrent('time limits between answers are no silence', async () => {
  const prompts = {
    ...tasks(6, 'silent'),
    ...Object.fromEntries([0, 1, 2, 3, 4, 5].map((i) => [`r${i}`, `right ${i}`])),
  };
  const plan = await trial({
    prompts,
    attempts: `{ replacements: 1, regrades: 1, breaker: 6, rules: ${RULES} }`,
    limits: 'request_s: 0.3, queue_wait_s: 1, response_bytes: 1000',
  });
  expect((await plan.run({ workers: 2 })).reason).toBe('finished');
  expect(await plan.of('slot.settled')).toHaveLength(6);
  expect(await plan.of('slot.unresolved')).toHaveLength(6);
});

test.concurrent('a connection that Boundbook closed is lost with its service, and the text says who ended it', async () => {
  const server = createServer(() => undefined).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const limits = { request_s: 20, queue_wait_s: 1, response_bytes: 1000 };
  const adapter = new OpenaiAdapter({
    adapter: 'openai',
    endpoint: 'chat',
    limits,
    service: {},
    sources: {},
  } as never);
  const condition = { decoding: { temperature: 1, top_p: 1, top_k: -1, min_p: 0, max_tokens: 1 } };
  const work = { model: 'M', condition, samplingSeed: 1 };
  const running = {
    work,
    attempt: 'a',
    kind: 'first',
    request: Buffer.from('{}'),
    takenOver: null,
  } as unknown;
  const asked = async (isGivenUp: boolean, isDestroyedBefore: boolean) => {
    const pool = createPool(`http://127.0.0.1:${port}`, 1);
    adapter.endpoint = { pool, isGivenUp, isAlive: async () => true };
    if (isDestroyedBefore) await pool.destroy();
    const end = adapter.generate(running as RunningAttempt, new AbortController().signal);
    if (!isDestroyedBefore) await once(server, 'request').then(() => pool.destroy());
    return end;
  };
  for (const isDestroyedBefore of [true, false]) {
    for (const [isGivenUp, who] of [
      [true, 'Boundbook gave the service up'],
      [false, 'the service had ended'],
    ] as const) {
      expect(await asked(isGivenUp, isDestroyedBefore)).toMatchObject({
        kind: 'failure',
        signals: { cause: 'connection_lost', service_alive: false, text: expect.stringContaining(who) },
      });
    }
  }
  server.closeAllConnections();
  server.close();
});

test.concurrent.each([[false], [true]])(
  'answers of another system under one start are warned of and remarked (streamed: %s, F-59)',
  async (stream) => {
    const plan = await trial({ prompts: { ...tasks(3), x: 'set {"fingerprint":"fp_2"}' }, stream });
    writeFileSync(`${plan.log}.state`, '{"fingerprint":"fp_1"}');
    const summary = await plan.run({ workers: 1 });
    expect(summary.reason).toBe('finished');
    const order = plan.requests().map(({ prompt }) => prompt.split(' ')[0]);
    const said =
      'answers of M@42#0 are from more than one system (system_fingerprint): first "fp_1", now "fp_2"';
    expect(order[0]).not.toBe('set');
    expect(summary.json.warnings).toEqual([said]);
    const ends = await plan.of('stage.finished');
    const at = ends.filter(({ stage }) => stage === 'generate').map(({ seq }) => seq);
    const result = await audit(plan.root, plan.stored.file);
    expect(result.findings).toEqual([]);
    const remark = `answers of M@42 are from more than one system (system_fingerprint): "fp_1" from entry ${at[0]} on, "fp_2" from entry ${at[order.indexOf('set')]} on`;
    expect(result.remarks.filter((line) => line.includes('system_fingerprint'))).toEqual([remark]);
  },
);

test('a fingerprint is a member, and no text of an answer', () => {
  const text = JSON.stringify({ content: '"system_fingerprint":"x"', system_fingerprint: 'b1-"x"' });
  expect(fingerprintsIn(Buffer.from(`data: ${text}\n\ndata: ${text}\n\n`))).toEqual(['b1-\\"x\\"']);
  expect(fingerprintsIn(Buffer.from('{"system_fingerprint":null}'))).toEqual([]);
  expect(fingerprintsIn(Buffer.from('{}'))).toEqual([]);
});
