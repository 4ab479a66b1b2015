import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { audit } from '../../../src/audit/audit.js';
import { command } from '../../../src/commands/audit.js';
import { openBook } from '../../../src/ledger/book.js';
import { buildReport } from '../../../src/report/build.js';
import { bookInput } from '../../../src/report/input.js';
import { renderReport } from '../../../src/report/render.js';
import { commandContext } from '../../commands/context.js';
import { type Trial, trial } from '../../runner/fixture.js';
import { rejectionOf } from '../../signing/support.js';
import { TestRepository } from './support.js';

let plan: Trial;
let report: { name: string; bytes: Buffer };
beforeAll(async () => {
  plan = await trial({ prompts: { a: 'right a' } });
  await plan.run();
  const book = await openBook(plan.root, plan.stored, 'read');
  report = { name: 'report.json', bytes: Buffer.from(renderReport(buildReport(bookInput(book)), 'json')) };
  book.close();
  writeFileSync(join(plan.root, 'report.json'), report.bytes);
});

function repository(...steps: readonly Readonly<Record<string, Uint8Array>>[]): TestRepository {
  const made = new TestRepository();
  for (const step of steps) made.commit(step);
  return made;
}

const manifest = () => readFileSync(plan.stored.path);

test('the manifest of a workspace, then its report; by the verb as well', async () => {
  const { folder } = repository({ 'm.json': manifest() }, { 'r.json': report.bytes });
  const result = await audit(plan.root, undefined, { report, repository: { folder, results: null } });
  expect(result.findings).toEqual([]);
  expect(result.order.at(-1)).toMatch(
    /holds the manifest \(m\.json\) and comes before commit .*, which holds the report report\.json/,
  );
  const { text, exitCode } = await command.run(
    [],
    { report: 'report.json', repository: folder },
    commandContext(plan.root),
  );
  expect(exitCode).toBeUndefined();
  expect(text).toContain('1 step, hash by hash');
});

test('without a report: the head beside the ledger', async () => {
  const head = readFileSync(`${plan.ledger}.head`);
  const { folder } = repository({ 'm.json': manifest() }, { 'trial.head': head });
  const result = await audit(plan.root, undefined, { repository: { folder, results: null } });
  expect(result.order.at(-1)).toMatch(/which holds trial\.r1\.[0-9a-f]{12}\.head: 1 step/);
});

test('the whole ledger committed before the manifest is a finding', async () => {
  const made = new TestRepository();
  cpSync(join(plan.root, 'ledger'), join(made.folder, 'ledger'), { recursive: true });
  const ledger = made.commit({}, 'results');
  cpSync(join(plan.root, 'manifests'), join(made.folder, 'manifests'), { recursive: true });
  made.commit({ 'r.json': report.bytes }, 'manifest');
  for (const options of [{ repository: made.folder }, { repository: made.folder, report: 'report.json' }]) {
    const { exitCode, json } = await command.run([], options, commandContext(plan.root));
    expect(exitCode).toBe(4);
    expect(json).toMatchObject({ findings: [{ code: 'COMMIT_ORDER' }] });
    expect(JSON.stringify(json)).toContain(`commit ${ledger} holds trial.`);
  }
});

test('the other way round it is a finding, exit 4', async () => {
  const { folder } = repository({ 'r.json': report.bytes }, { 'm.json': manifest() });
  const { exitCode, json } = await command.run(
    [],
    { report: 'report.json', repository: folder },
    commandContext(plan.root),
  );
  expect(exitCode).toBe(4);
  expect(json).toMatchObject({ findings: [{ code: 'COMMIT_ORDER', clause: 'P1' }] });
  // A commit that somebody names does not hide it when it is the wrong one.
  const named = { report: 'report.json', repository: folder, results: 'main~1' };
  expect((await command.run([], named, commandContext(plan.root))).exitCode).toBe(4);
});

test('usage', async () => {
  const context = commandContext(plan.root);
  expect((await rejectionOf(command.run([], { results: 'HEAD' }, context))).code).toBe('USAGE');
  const missing = await rejectionOf(command.run([], { repository: 'no-such-folder' }, context));
  expect(missing).toMatchObject({ code: 'REPOSITORY_INVALID', exitCode: 2 });
  expect(existsSync(join(plan.root, 'no-such-folder'))).toBe(false);
  for (const options of [
    { tsaChain: 'x.pem' },
    { tsaCa: 'report.json' },
    { key: ['planner'] },
    { key: [''] },
  ]) {
    const { code } = await rejectionOf(command.run([], options, context));
    expect(['USAGE', 'KEY_INVALID']).toContain(code);
  }
});
