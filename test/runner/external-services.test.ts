import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { manifestText, weightsJson } from '../../src/commands/manifest-output.js';
import { openBook } from '../../src/ledger/book.js';
import { planRemarks } from '../../src/planning/remarks.js';
import { operatorsWord } from '../../src/protocol/operators-word.js';
import { OPERATORS_WORD } from '../../src/protocol/schema/services.js';
import { buildReport } from '../../src/report/build.js';
import { bookInput } from '../../src/report/input.js';
import { renderReport } from '../../src/report/render.js';
import { trial } from './fixture.js';
import { external, tasks } from './service-helpers.js';

const KEY = 'sk-0123456789-very-secret';
/** All bytes below a folder, as one text. */
function contentsOf(folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((item) => item.isFile())
    .map((item) => readFileSync(join(item.parentPath, item.name), 'latin1'))
    .join('\n');
}

test('an external service is used, no process is claimed, and every report and audit says whose word it rests on', async () => {
  const { plan } = await external({ prompts: tasks(3), models: ['B', 'M'] }, ['B@42', 'M@42']);
  const summary = await plan.run();
  expect(summary.reason).toBe('finished');
  expect(summary.json.warnings).toEqual([expect.stringContaining("rests on the operator's word")]);
  expect(await plan.of('service.started')).toEqual([]);
  expect(await plan.of('service.attached')).toMatchObject([
    { service: 'B@42#0', accepted: OPERATORS_WORD, origin: expect.stringMatching(/^http:/) },
    { service: 'M@42#0' },
  ]);
  expect(
    (await plan.of('service.stopped')).map(({ reason, exit_status, gpus }) => [reason, exit_status, gpus]),
  ).toEqual([
    ['done', null, 2],
    ['done', null, 2],
  ]);
  const result = await audit(plan.root, plan.stored.file);
  expect(result.findings).toEqual([]);
  expect(JSON.stringify(result)).toContain(`what the service runs on at all: ${OPERATORS_WORD}`);
  const book = await openBook(plan.root, plan.stored, 'read');
  const report = buildReport(bookInput(book));
  book.close();
  const said =
    "The identity of the weights rests on the operator's word: the plan accepts services that the gate did not start.";
  expect(report.caveats[0]).toBe(said);
  for (const form of [
    renderReport(report, 'text'),
    renderReport(report, 'markdown'),
    renderReport(report, 'json'),
  ]) {
    expect(form.replace(/\s+/g, ' ').replaceAll('\\', '')).toContain(said);
  }
});

test('check, freeze and status say whose word the weights rest on', async () => {
  const { stored } = await trial({
    prompts: tasks(1),
    external: { origin: 'http://127.0.0.1:8000', accepted: OPERATORS_WORD },
  });
  const { protocol } = stored.manifest;
  const said = operatorsWord(protocol);
  expect(said).toContain("rests on the operator's word");
  const collisions = { cells: 0, basis: 'counted', repeated: 0, repeatedInTask: 0 } as never;
  expect(planRemarks(protocol, collisions)).toContainEqual({ about: 'external-service', message: said });
  expect(manifestText('frozen', stored).replace(/\s+/g, ' ')).toContain(`weights ${said}`);
  expect(weightsJson(protocol)).toEqual({ weights: said });
});

test('a protocol that does not say the sentence is refused', async () => {
  const origin = 'http://127.0.0.1:8000';
  for (const accepted of ['yes', `${OPERATORS_WORD}.`, OPERATORS_WORD.toUpperCase()]) {
    await expect(trial({ prompts: tasks(1), external: { origin, accepted } })).rejects.toMatchObject({
      code: 'PROTOCOL_INVALID',
    });
  }
});

test.each([
  ['ftp://127.0.0.1'],
  ['http://user:secret@127.0.0.1:8000'],
  ['http://127.0.0.1:8000/v1'],
  ['http://127.0.0.1:8000?x'],
  ['127.0.0.1:8000'],
])('%s is no address of a service', async (origin) => {
  const external = { origin, accepted: OPERATORS_WORD };
  await expect(trial({ prompts: tasks(1), external })).rejects.toMatchObject({ code: 'PROTOCOL_INVALID' });
});

test('each model needs an address, and no other has one', async () => {
  const one = { 'M@42': 'http://127.0.0.1:8000' };
  const faults = async (origin: object) => {
    const external = { origin, accepted: OPERATORS_WORD };
    const error = await trial({ prompts: tasks(1), models: ['B', 'M'], external }).catch(
      (thrown: unknown) => thrown,
    );
    return (error as { faults: { message: string }[] }).faults.map(({ message }) => message);
  };
  expect(await faults(one)).toEqual([expect.stringContaining('no address for the model "B@42"')]);
  const more = { ...one, 'B@42': 'http://127.0.0.1:8001', 'X@1': 'http://127.0.0.1:8002' };
  expect(await faults(more)).toEqual([expect.stringContaining('no arm runs the model "X@1"')]);
});

test('a key from the environment is sent, and written nowhere', async () => {
  process.env.TRIAL_KEY = KEY;
  try {
    const canary = 'canary: { prompts: ["canary"], max_tokens: 2, logprobs: 0, logprob_tolerance: 0 }';
    const { plan, say } = await external(
      { prompts: { ...tasks(3), x: '500' }, serviceKeys: canary },
      ['M@42'],
      KEY,
    );
    const summary = await plan.run();
    expect(await plan.of('slot.settled')).toHaveLength(3);
    expect(plan.requests()).toHaveLength(5);
    expect(await plan.findings()).toEqual([]);
    const told = [plan.lines.join('\n'), summary.text, JSON.stringify(summary.json), contentsOf(plan.ledger)];
    // The stub's own file of what it wants is the only place that holds the key.
    expect(told.filter((text) => text.includes(KEY))).toEqual([]);
    const wanted = contentsOf(plan.root).split(KEY).length - 1;
    expect(wanted).toBe(1);
    say({});
  } finally {
    delete process.env.TRIAL_KEY;
  }
});

test('without its key, or with a wrong one, nothing is attempted', async () => {
  const { plan } = await external({ prompts: tasks(2), readyS: 0.5 }, ['M@42'], KEY);
  expect(await plan.run().catch((thrown: unknown) => thrown)).toMatchObject({
    code: 'SERVICE_FAILED',
    message: expect.stringContaining('TRIAL_KEY'),
  });
  process.env.TRIAL_KEY = 'another-key';
  try {
    const error = await plan.run().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'SERVICE_FAILED',
      message: expect.stringContaining('did not answer'),
    });
    expect(JSON.stringify(error)).not.toContain('another-key');
  } finally {
    delete process.env.TRIAL_KEY;
  }
  expect(await plan.of('attempt.started')).toEqual([]);
});

test('an external service that leaves health questions unanswered is waited for; in vain, the session ends', async () => {
  const serviceKeys = 'health: { every_s: 0.1, timeout_s: 0.2, failures: 2 }';
  const { plan, say } = await external({
    prompts: { ...tasks(2), x: 'hang-once' },
    serviceKeys,
    readyS: 0.5,
  });
  const error = await plan.run({ workers: 1 }).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'SERVICE_FAILED', exitCode: 3 });
  expect(await plan.of('service.stopped')).toMatchObject([
    { service: 'M@42#0', reason: 'unresponsive', exit_status: null, signal: null },
    { service: 'M@42#1', reason: 'unresponsive', exit_status: null, signal: null },
  ]);
  expect(await plan.of('service.attached')).toHaveLength(1);
  expect(existsSync(`${plan.log}.died`)).toBe(true);
  const failures = (await plan.of('stage.finished')).flatMap(({ result }) =>
    result.kind === 'failure' ? [result.signals.service_alive] : [],
  );
  expect(failures).toEqual([false]);
  expect(await plan.findings()).toEqual([]);
  say({});
});

test('an external service that lists another model is refused (F-73)', async () => {
  const { plan } = await external({ prompts: tasks(2) }, ['M@43']);
  expect(await plan.run().catch((thrown: unknown) => thrown)).toMatchObject({
    code: 'SERVICE_FAILED',
    message: expect.stringContaining('it serves "M@43"'),
  });
  expect(plan.requests()).toEqual([]);
});
