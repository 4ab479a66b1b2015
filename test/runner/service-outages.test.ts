import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { RULES, type Trial, trial } from './fixture.js';
import { external, tasks } from './service-helpers.js';

const CANARY = 'canary: { prompts: ["canary"], max_tokens: 2, logprobs: 0, logprob_tolerance: 0.05 }';
const WORKERS = 4;

/** Resolves when the server has seen so many requests. */
async function requests(plan: Trial, count: number): Promise<void> {
  while (plan.requests().length < count) await setTimeout(10);
}

/** How many attempts of each slot failed for the connection, and all of them. */
async function broken(plan: Trial): Promise<{ readonly most: number; readonly all: number }> {
  const slots = new Map((await plan.of('attempt.started')).map(({ attempt, slot }) => [attempt, slot]));
  const counts = new Map<string, number>();
  for (const { attempt, result } of await plan.of('stage.finished')) {
    if (result.kind !== 'failure') continue;
    expect(['connection_refused', 'connection_lost']).toContain(result.signals.cause);
    const slot = slots.get(attempt) ?? '';
    counts.set(slot, (counts.get(slot) ?? 0) + 1);
  }
  const values = [...counts.values()];
  return { most: Math.max(0, ...values), all: values.reduce((sum, each) => sum + each, 0) };
}

test.concurrent('an external service that goes away for a while costs what was in flight, and nothing else', async () => {
  const { plan, start, kill } = await external({ prompts: tasks(16, 'later'), serviceKeys: CANARY });
  const running = plan.run({ workers: WORKERS });
  await requests(plan, 6);
  await kill();
  await setTimeout(1000);
  start();
  expect(await running).toMatchObject({ reason: 'finished' });
  expect(await plan.of('slot.settled')).toHaveLength(16);
  const { most, all } = await broken(plan);
  expect(most).toBe(1);
  expect(all).toBeGreaterThan(0);
  expect(all).toBeLessThanOrEqual(WORKERS);
  expect((await plan.of('service.attached')).map(({ service }) => service)).toEqual(['M@42#0', 'M@42#1']);
  expect((await plan.of('service.stopped')).map(({ service, reason }) => [service, reason])).toEqual([
    ['M@42#0', 'unresponsive'],
    ['M@42#1', 'done'],
  ]);
  expect(
    (await plan.of('canary.recorded')).map(({ service, at, verdict }) => [service, at, verdict]),
  ).toEqual([
    ['M@42#0', 'start', 'reference'],
    ['M@42#1', 'start', 'same'],
    ['M@42#1', 'end', 'same'],
  ]);
  expect((await plan.of('service.described')).map(({ service, at }) => [service, at])).toEqual([
    ['M@42#1', 'start'],
    ['M@42#1', 'end'],
  ]);
  expect(plan.lines).toContainEqual(
    expect.stringMatching(
      /^the service M@42 at http:\/\/127.0.0.1:[0-9]+ .*does not answer; waiting up to 20 s$/,
    ),
  );
  expect(await plan.findings()).toEqual([]);
});

test.concurrent('one that never comes back ends the session, with the slots that are left untouched', async () => {
  const { plan, kill } = await external({ prompts: tasks(16, 'later'), readyS: 0.5 });
  const running = plan.run({ workers: WORKERS }).catch((thrown: unknown) => thrown);
  await requests(plan, 6);
  await kill();
  expect(await running).toMatchObject({
    code: 'SERVICE_FAILED',
    exitCode: 3,
    message: expect.stringContaining('/health did not answer with 2xx within 0.5 s'),
  });
  expect(await plan.of('run.paused')).toMatchObject([{ reason: 'service_failed' }]);
  const started = await plan.of('attempt.started');
  expect(started.filter(({ kind }) => kind !== 'first')).toEqual([]);
  expect(started.length).toBeLessThanOrEqual(6 + WORKERS);
  expect(await plan.of('slot.unresolved')).toEqual([]);
  const { most, all } = await broken(plan);
  expect(most).toBe(1);
  expect(all).toBeLessThanOrEqual(WORKERS);
  expect(await plan.findings()).toEqual([]);
});

test.concurrent('another server that comes in its place and answers the canary otherwise is refused', async () => {
  const { plan, say, start, kill } = await external({ prompts: tasks(16, 'later'), serviceKeys: CANARY });
  const running = plan.run({ workers: WORKERS }).catch((thrown: unknown) => thrown);
  await requests(plan, 6);
  await kill();
  say({ drift: 1 });
  start();
  expect(await running).toMatchObject({ code: 'SERVICE_CHANGED', exitCode: 3 });
  expect((await plan.of('canary.recorded')).map(({ verdict }) => verdict)).toEqual(['reference', 'differs']);
  expect((await plan.of('attempt.started')).filter(({ kind }) => kind !== 'first')).toEqual([]);
  expect(await plan.findings()).toEqual([]);
});

test.concurrent('a broken connection of a server that is well stops no other attempt', async () => {
  const { plan } = await external({ prompts: { ...tasks(6, 'later'), x: 'reset-once' } });
  expect(await plan.run({ workers: 7 })).toMatchObject({ reason: 'finished' });
  expect(await plan.of('slot.settled')).toHaveLength(7);
  expect(await broken(plan)).toEqual({ most: 1, all: 1 });
  expect(plan.lines.filter((line) => line.includes('waiting'))).toEqual([]);
  expect(await plan.findings()).toEqual([]);
});

test.concurrent('the operator can stop while an external service is waited for', async () => {
  const stop = new AbortController();
  const { plan, kill } = await external({ prompts: tasks(16, 'later') });
  const progress = (line: string) => {
    if (line.includes('does not answer; waiting')) stop.abort('SIGINT');
  };
  const running = plan
    .run({ workers: WORKERS, signal: stop.signal, progress })
    .catch((thrown: unknown) => thrown);
  await requests(plan, 6);
  await kill();
  expect(await running).toMatchObject({ code: 'STOPPED' });
  expect((await broken(plan)).most).toBe(1);
  expect(await plan.findings()).toEqual([]);
});

test.concurrent.each([
  ['with a health watch', 'health: { every_s: 0.1, timeout_s: 0.2, failures: 2 }', 20],
  ['without a health watch', '', 2],
])(
  'a started service that lives and lets nobody in is waited for, ended and started again, %s',
  async (_, serviceKeys, readyS) => {
    const prompts = { ...tasks(12, 'later'), x: 'deaf-once' };
    const plan = await trial({ prompts, serviceKeys, readyS });
    expect(await plan.run({ workers: WORKERS })).toMatchObject({ reason: 'finished' });
    expect(await plan.of('slot.settled')).toHaveLength(13);
    const { most, all } = await broken(plan);
    expect(most).toBe(1);
    expect(all).toBeLessThanOrEqual(WORKERS);
    expect((await plan.of('service.stopped')).map(({ reason }) => reason)).toEqual(['unresponsive', 'done']);
    expect(await plan.findings()).toEqual([]);
  },
);

test.concurrent('one that is away when its model is put to rest is not waited for, and taken up again when it is wanted', async () => {
  const attempts = `{ replacements: 0, regrades: 1, breaker: 50, rules: ${RULES} }`;
  const { plan } = await external(
    { prompts: tasks(4, 'sick'), models: ['B', 'M'], groupBy: '[]', attempts },
    ['B@42', 'M@42'],
  );
  expect(await plan.run({ workers: 1 })).toMatchObject({ reason: 'finished' });
  expect(await broken(plan)).toEqual({ most: 1, all: 8 });
  // Each attempt is followed by another start, but the last one; those that nobody waited for any longer are none.
  expect((await plan.of('service.attached')).length).toBeGreaterThanOrEqual(8);
  expect(await plan.findings()).toEqual([]);
});

test('Node warns of nothing while services are asked, start again and end', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  try {
    const serviceKeys = `max_up: 3\n    ${CANARY}`;
    const prompts = { ...tasks(12), x: 'die' };
    const plan = await trial({ prompts, models: ['A', 'B', 'M'], serviceKeys });
    await plan.run({ workers: 8, force: new AbortController().signal });
    expect(await plan.of('slot.settled')).toHaveLength(39);
    expect((await plan.of('service.started')).length).toBeGreaterThan(3);
    expect(await plan.findings()).toEqual([]);
    await setTimeout(0);
    expect(warnings).toEqual([]);
  } finally {
    process.off('warning', note);
  }
});
