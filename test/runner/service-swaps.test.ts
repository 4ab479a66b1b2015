import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { openBook } from '../../src/ledger/book.js';
import { readStatus } from '../../src/ledger/status.js';
import { buildReport } from '../../src/report/build.js';
import { bookInput } from '../../src/report/input.js';
import { RULES, type Trial, trial } from './fixture.js';
import { tasks } from './service-helpers.js';
import { story, undetermined } from './story.js';

const CANARY = 'canary: { prompts: ["canary"], max_tokens: 2, logprobs: 0, logprob_tolerance: 0.05 }';

const thrown = (run: Promise<unknown>) => run.catch((error: unknown) => error);

async function caveats(plan: Trial): Promise<readonly string[]> {
  const book = await openBook(plan.root, plan.stored, 'read');
  try {
    return buildReport(bookInput(book)).caveats;
  } finally {
    book.close();
  }
}

test.concurrent.each([
  [false, 'body body_malformed 200/- alive'],
  [true, 'body model_differs 200/- alive'],
])(
  'an answer under another name stops the run at once and tells what is in doubt (streamed: %s, F-73)',
  async (stream, signals) => {
    const plan = await trial({ prompts: { ...tasks(5), x: 'other-model' }, stream, serviceKeys: CANARY });
    const error = await thrown(plan.run({ workers: 1 }));
    const [paused] = await plan.of('run.paused');
    const [check] = await plan.of('canary.recorded');
    const started = await plan.of('attempt.started');
    const count = started.length === 1 ? '1 attempt' : `${started.length} attempts`;
    const doubt = `${count} started since entry ${check?.seq}, its last good check, may have met another model`;
    expect(paused).toMatchObject({
      reason: 'service_changed',
      detail: `an answer of M@42#0 is from "another": ${doubt}, other weights or settings`,
    });
    expect(error).toMatchObject({ code: 'SERVICE_CHANGED', exitCode: 3, message: paused?.detail });
    expect(plan.lines.join('\n').replace(/\s+/g, ' ')).toContain(
      `warning an answer of M@42#0 is from "another"`,
    );
    // Nothing was started after it, and what it began ends as it is.
    expect(started.at(-1)?.key.task).toBe('x');
    expect(plan.requests()).toHaveLength(started.length);
    expect(await story(plan, 'x')).toEqual(undetermined(signals));
    const told = `A service of M@42 (arm M) was found to be another one while it was in use, which ended the session (entry ${paused?.seq}): ${doubt}.`;
    expect(await caveats(plan)).toContain(told);
    const result = await audit(plan.root, plan.stored.file);
    expect(result.findings).toEqual([]);
    expect(JSON.stringify(result)).toContain(
      `entry ${paused?.seq}: a service of M@42 was found to be another one while it was in use: ${started.length} attempts`,
    );
    const { ledger } = await readStatus(plan.root, plan.stored.file, '2026-01-01');
    expect(ledger?.deviations).toMatchObject([{ reason: 'service_changed', detail: paused?.detail }]);
    // Taken up again, the service is started anew and asked its canary.
    expect((await plan.run()).reason).toBe('finished');
    expect((await plan.of('canary.recorded')).at(-2)).toMatchObject({ at: 'start', verdict: 'same' });
    expect(await plan.of('slot.settled')).toHaveLength(5);
    expect(await plan.findings()).toEqual([]);
  },
);

test.concurrent('attempts in flight end as they are; an attempt that a rule replaces waits for the next session', async () => {
  const differs =
    '{ id: swapped, when: { cause: model_differs }, attribute: infrastructure, sufficient: true }, ';
  const plan = await trial({
    prompts: { a: 'later a', b: 'later b', c: 'later c', x: 'swaps' },
    stream: true,
    attempts: `{ replacements: 1, regrades: 1, breaker: 50, rules: ${RULES.replace('[', `[ ${differs}`)} }`,
  });
  writeFileSync(`${plan.log}.state`, JSON.stringify({ name: 'another' }));
  await thrown(plan.run({ workers: 4 }));
  expect(await plan.of('slot.settled')).toHaveLength(3);
  const first = ['started first', 'generate failure body model_differs 200/- alive'];
  const waiting = [...first, 'infrastructure by swapped', 'finished failure'];
  expect(await story(plan, 'x')).toEqual(waiting);
  writeFileSync(`${plan.log}.state`, '{}');
  expect((await plan.run()).reason).toBe('finished');
  expect((await story(plan, 'x')).slice(0, 5)).toEqual([...waiting, 'started replacement']);
  expect(await plan.findings()).toEqual([]);
});

test.concurrent.each([
  ['{"models":["another"]}', 'serves "another" at its end, no more M@42: 5 attempts'],
  ['{"drift":0.2}', 'answered the canary otherwise at its end than the reference: 5 attempts'],
  ['{"name":"another"}', 'answered the canary at its end as "another": 5 attempts'],
])(
  'a run that did all it was asked to does not end well when its service is %s in the end',
  async (state, detail) => {
    const plan = await trial({ prompts: { ...tasks(6), x: 'right' }, serviceKeys: CANARY });
    const before = thrown(plan.run({ workers: 1, limit: 5 }));
    while (plan.requests().length < 4) await new Promise((resolve) => setTimeout(resolve, 5));
    writeFileSync(`${plan.log}.state`, state);
    const error = await before;
    expect(error).toMatchObject({ code: 'SERVICE_CHANGED', exitCode: 3 });
    const [paused] = await plan.of('run.paused');
    expect(paused).toMatchObject({ reason: 'service_changed' });
    if (!state.includes('name')) expect(paused?.detail).toContain(detail);
    expect(await plan.findings()).toEqual([]);
  },
);
