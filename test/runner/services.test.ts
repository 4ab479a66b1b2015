import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { freePort, portOwner } from '../../src/runner/ports.js';
import { markedProcesses } from '../../src/runner/process-tree.js';
import { type PlanSetting, type Trial, temporaryFolder, trial } from './fixture.js';
import { tasks } from './service-helpers.js';
import { replaced, settled, story } from './story.js';

/** Nothing that a session of this plan started is alive. */
async function expectNothingLeft(plan: Trial): Promise<void> {
  for (const { session } of await plan.of('gate.passed')) {
    expect(markedProcesses(`${session}.`)).toEqual([]);
  }
}

/** How the services of a plan ended. */
async function ends(plan: Trial): Promise<string[]> {
  const stopped = await plan.of('service.stopped');
  return stopped.map((one) => `${one.service} ${one.reason} ${one.exit_status ?? one.signal}`);
}

async function refusal(setting: PlanSetting): Promise<{ plan: Trial; error: unknown }> {
  const plan = await trial(setting);
  const error = await plan.run().catch((thrown: unknown) => thrown);
  return { plan, error };
}

test('a server that dies is started again after its files were hashed; its attempts are replaced once', async () => {
  const plan = await trial({ prompts: { ...tasks(30), x: 'die' }, models: ['B', 'M'] });
  const summary = await plan.run({ workers: 3 });
  expect(summary.reason).toBe('finished');
  const settledSlots = await plan.of('slot.settled');
  expect(settledSlots).toHaveLength(62);
  expect(await story(plan, 'x')).toEqual(
    replaced('headers connection_lost -/- dead', 'dead', settled(1).slice(1)),
  );
  expect(await ends(plan)).toEqual(['B@42#0 died 9', 'B@42#1 done SIGTERM', 'M@42#0 done SIGTERM']);
  expect((await plan.of('service.started')).map(({ service, start }) => [service, start])).toEqual([
    ['B@42#0', 0],
    ['B@42#1', 1],
    ['M@42#0', 0],
  ]);
  // Requests that were on their way when it died were not seen by it.
  const attempts = (await plan.of('attempt.started')).length;
  expect(plan.requests().length).toBeLessThanOrEqual(attempts);
  expect(plan.requests().length).toBeGreaterThanOrEqual(attempts - 2);
  expect(await plan.findings()).toEqual([]);
  await expectNothingLeft(plan);
});

test('a server that keeps dying ends the session after the declared restarts', async () => {
  const rm = ['--manner', 'dies-after', '--after', '3'];
  const plan = await trial({ prompts: tasks(20), service: rm, restarts: 0 });
  const error = await plan.run().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'SERVICE_FAILED', exitCode: 3 });
  expect((await plan.of('run.paused')).map(({ reason }) => reason)).toEqual(['service_failed']);
  // The next session goes on where this one ended: the stub dies once only.
  expect((await plan.run()).reason).toBe('finished');
  expect((await plan.of('slot.settled')).length + (await plan.of('slot.unresolved')).length).toBe(20);
  await expectNothingLeft(plan);
});

test('a server that is never ready is refused within its time', async () => {
  const { plan, error } = await refusal({
    prompts: tasks(2),
    service: ['--manner', 'never-ready'],
    readyS: 1,
  });
  expect(error).toMatchObject({ code: 'SERVICE_FAILED', message: expect.stringContaining('within 1 s') });
  expect(await plan.of('attempt.started')).toEqual([]);
  expect(await ends(plan)).toEqual(['M@42#0 unresponsive SIGTERM']);
  await expectNothingLeft(plan);
});

test('a server that ends at once is refused with what it wrote', async () => {
  const { plan, error } = await refusal({ prompts: tasks(2), service: ['--manner', 'exit-at-once'] });
  expect(error).toMatchObject({
    code: 'SERVICE_FAILED',
    message: expect.stringContaining('exit status 7'),
    hint: expect.stringContaining('no such model'),
  });
  expect(await ends(plan)).toEqual(['M@42#0 died 7']);
  const folder = readdirSync(join(plan.ledger, 'work')).find((name) => name.startsWith('services-')) ?? '';
  expect(readFileSync(join(plan.ledger, 'work', folder, 'service-1.stderr'), 'utf8')).toBe('no such model\n');
});

test('a server that serves another model than the bound one is refused (F-73)', async () => {
  const { plan, error } = await refusal({ prompts: tasks(2), service: ['--manner', 'wrong-model'] });
  expect(error).toMatchObject({
    code: 'SERVICE_FAILED',
    message: expect.stringContaining('somebody-else'),
  });
  expect(plan.requests()).toEqual([]);
});

test('a port that a stranger answers on is refused, and nothing is asked there', async () => {
  const { plan, error } = await refusal({ prompts: tasks(2), service: ['--manner', 'elsewhere'] });
  expect(error).toMatchObject({ code: 'PORT_NOT_OWNED', exitCode: 3 });
  expect(plan.requests()).toEqual([]);
  expect((await plan.of('run.paused')).map(({ reason }) => reason)).toEqual(['service_failed']);
  const port = (error as { evidence: { cause: { port: number } } }).evidence.cause.port;
  await fetch(`http://127.0.0.1:${port}/stop-stranger`).catch(() => undefined);
});

test.each(['127.0.0.1', '0.0.0.0', '::'])(
  'a stranger that takes the port between its choice and the start, on %s, gets no request at all',
  async (squat) => {
    const seen = join(temporaryFolder(), 'seen');
    const service = ['--manner', 'squatted', '--squat', squat, '--seen', seen];
    const { plan, error } = await refusal({ prompts: tasks(2), service, restarts: 0 });
    expect(error).toMatchObject({ code: 'PORT_NOT_OWNED', exitCode: 3 });
    expect(existsSync(seen)).toBe(false);
    expect(await plan.of('attempt.started')).toEqual([]);
    const port = (error as { evidence: { cause: { port: number } } }).evidence.cause.port;
    await fetch(`http://127.0.0.1:${port}/stop-stranger`).catch(() => undefined);
    // It was the stranger that listened there, and it notes what it is asked.
    expect(readFileSync(seen, 'utf8')).toBe('GET /stop-stranger\n');
  },
);

test('a server whose child listens is one family, and ends with it', async () => {
  const plan = await trial({ prompts: tasks(4), service: ['--manner', 'child'] });
  expect((await plan.run()).reason).toBe('finished');
  await expectNothingLeft(plan);
});

test('a server that ignores SIGTERM gets SIGKILL after the grace time', async () => {
  const plan = await trial({ prompts: tasks(4), service: ['--manner', 'stubborn'] });
  expect((await plan.run()).reason).toBe('finished');
  expect(await ends(plan)).toEqual(['M@42#0 done SIGKILL']);
  await expectNothingLeft(plan);
});

test('equal infrastructure failures in a row open the breaker: nothing more is started', async () => {
  const attempts = `{ replacements: 1, regrades: 1, breaker: 4, rules: [
    { id: server, when: { http_status: 5xx }, attribute: infrastructure, sufficient: true } ] }`;
  const plan = await trial({ prompts: tasks(30, '500'), attempts });
  const error = await plan.run({ workers: 1 }).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'BREAKER_OPEN', exitCode: 5 });
  expect(await plan.of('attempt.started')).toHaveLength(4);
  expect(await plan.of('run.paused')).toMatchObject([
    { reason: 'breaker', detail: expect.stringContaining('"http_status"') },
  ]);
  expect(plan.requests()).toHaveLength(4);
});

test('a fault in building the session leaves no process behind', async () => {
  const plan = await trial({ prompts: tasks(4), service: ['--weights', '{tokenizer}'] });
  const progress = (line: string) => {
    if (line.startsWith('service')) throw new Error('the terminal has gone');
  };
  const error = await plan.run({ progress }).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'INTERNAL' });
  await expectNothingLeft(plan);
  expect((await plan.of('run.paused')).map(({ reason }) => reason)).toEqual(['fault']);
});

test('who listens on a port is told by the kernel', async () => {
  const port = await freePort('127.0.0.1');
  expect(portOwner(port, process.pid)).toBe('nobody');
  const server = await listen(port);
  // This process listens: it belongs to the family of its own parent, and not to that of a process that never was.
  expect(portOwner((server.address() as AddressInfo).port, process.pid)).toBe('family');
  expect(portOwner(port, 2 ** 22)).toBe('stranger');
  server.close();
  expect(existsSync('/proc/net/tcp')).toBe(true);
});

function listen(port: number): Promise<Server> {
  return new Promise((resolve) => {
    const server = createServer().listen(port, '127.0.0.1', () => resolve(server));
  });
}
