import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { command as regrade } from '../../src/commands/regrade.js';
import { canonicalBytes } from '../../src/core/canonical-json.js';
import { openBook } from '../../src/ledger/book.js';
import type { DraftOf } from '../../src/ledger/entries/entry.js';
import { toObject } from '../../src/ledger/objects.js';
import { regradableSlots } from '../../src/ledger/regradings.js';
import { listProcesses } from '../../src/runner/process-tree.js';
import { slotsDigest } from '../../src/slots/selector.js';
import { invoke } from '../amend/support.js';
import { put, type Trial, trial } from '../runner/fixture.js';
import { CORRECTED, calls, graderText, logOf, ran, refused } from './command-plan.js';

const CLI = join(import.meta.dirname, '../../dist/cli.js');

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 20_000;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error('it does not happen');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The verb in this process, with both signals in hand. */
function begin(plan: Trial, options: Record<string, unknown> = {}) {
  const [stop, force] = [new AbortController(), new AbortController()];
  const said: string[] = [];
  const done = regrade
    .run(
      [],
      { grader: 'fixed.yaml', reason: 'again', ...options },
      {
        root: plan.root,
        json: false,
        terminal: false,
        progress: (line) => said.push(line),
        signal: stop.signal,
        force: force.signal,
        now: () => new Date().toISOString(),
      },
    )
    .then(
      () => null,
      (error: unknown) => error,
    );
  return { stop, force, said, done };
}

const go = (plan: Trial): void => {
  put(plan.root, 'regraded.log.go', '');
};
const isLiving = (pid: number): boolean => listProcesses().some((one) => one.pid === pid);
const work = (plan: Trial): readonly string[] =>
  readdirSync(join(plan.ledger, 'work')).filter((name) => name.startsWith('regrading-'));

it.concurrent('Ctrl-C lets what is under way end and leaves the rest, which goes on later', async () => {
  const plan = await ran(['good one waits', 'good zero waits', 'good half waits']);
  const { stop, said, done } = begin(plan, { concurrency: '1' });
  await until(() => calls(plan).length === 1);
  stop.abort('SIGINT');
  await until(() => said.length > 0);
  expect(said[0]).toMatch(/waiting up to 20.2 s for 1 under way/);
  go(plan);
  expect(await done).toMatchObject({ code: 'STOPPED', message: 'stopped by SIGINT before the end' });
  expect(await plan.of('regrading.recorded')).toHaveLength(1);
  expect(await plan.findings()).toEqual([]);
  put(plan.root, 'other.yaml', graderText(logOf(plan), { wall: 19 }));
  expect(await refused(plan, { grader: 'other.yaml' })).toMatchObject({ code: 'REGRADE_REFUSED' });
  expect(await refused(plan)).toBeNull();
  expect(await plan.of('regrading.opened')).toHaveLength(1);
  expect(await plan.of('regrading.resumed')).toMatchObject([{ process: { pid: process.pid } }]);
  expect(await plan.of('regrading.closed')).toMatchObject([{ changed: 2, same: 1, failed: 0 }]);
  expect(calls(plan)).toHaveLength(3);
  expect(await plan.findings()).toEqual([]);
});

it.concurrent('a second Ctrl-C cuts what is under way, and records nothing of it', async () => {
  const plan = await ran(['good one hangs']);
  const { stop, force, done } = begin(plan);
  await until(() => calls(plan).length === 1);
  stop.abort('SIGINT');
  force.abort();
  expect(await done).toMatchObject({ code: 'STOPPED' });
  expect(calls(plan).filter(({ pid }) => isLiving(pid))).toEqual([]);
  expect(await plan.of('regrading.recorded')).toEqual([]);
  expect(work(plan)).toEqual([]);
});

it.concurrent('a kill -9, of its watchdog too: what it left is ended first, and the rest is graded', async () => {
  const plan = await ran(['good one waits', 'good zero waits', 'good half zero']);
  const argv = [CLI, 'regrade', '--grader', 'fixed.yaml', '--reason', 'again', '--concurrency', '2'];
  const child = spawn(process.execPath, argv, { cwd: plan.root, stdio: 'ignore' });
  await until(async () => calls(plan).length >= 2 && (await plan.of('regrading.opened')).length === 1);
  const commands = calls(plan).map(({ pid }) => pid);
  const guards = listProcesses().filter(({ parent, pid }) => parent === child.pid && !commands.includes(pid));
  expect(await refused(plan)).toMatchObject({
    code: 'REGRADE_REFUSED',
    message: expect.stringContaining(`is at work in the process ${child.pid}`),
  });
  for (const { pid } of guards) process.kill(pid, 'SIGKILL');
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
  const left = calls(plan).filter(({ pid }) => isLiving(pid));
  expect(left.length).toBeGreaterThan(0);
  const recorded = (await plan.of('regrading.recorded')).length;
  expect(await plan.findings()).toEqual([]);
  const { done } = begin(plan, { concurrency: '2' });
  await until(async () => (await plan.of('regrading.resumed')).length === 1);
  expect(left.filter(({ pid }) => isLiving(pid))).toEqual([]);
  go(plan);
  expect(await done).toBeNull();
  expect(recorded).toBeLessThan(3);
  expect(await plan.of('regrading.recorded')).toHaveLength(3);
  expect(await plan.of('regrading.closed')).toMatchObject([{ changed: 2, same: 1, failed: 0 }]);
  expect(work(plan)).toEqual([]);
  expect(await plan.findings()).toEqual([]);
});

it.concurrent('files that are touched while it grades end it; restored, it goes on', async () => {
  const plan = await ran(['good one waits']);
  const { done } = begin(plan);
  await until(() => calls(plan).length === 1);
  appendFileSync(join(plan.root, 'fixed/corrected-grade.mjs'), '\n// touched\n');
  go(plan);
  expect(await done).toMatchObject({ code: 'REGRADE_REFUSED', message: expect.stringContaining('changed') });
  expect(await plan.of('regrading.closed')).toEqual([]);
  expect(await refused(plan)).toMatchObject({
    code: 'REGRADE_REFUSED',
    message: expect.stringContaining('are not those'),
  });
  put(plan.root, 'fixed/corrected-grade.mjs', CORRECTED);
  expect(await refused(plan)).toBeNull();
  expect(await plan.of('regrading.closed')).toHaveLength(1);
});

it.concurrent('a regrading is of the slots that were settled when it was opened', async () => {
  const plan = await trial({ prompts: { a: 'right a', b: 'boxed b', c: 'right c' } });
  await plan.run({ limit: 1 });
  put(plan.root, 'boxed.yaml', 'kind: boxed\nanswer: answer\ncompare: integer\n');
  const book = await openBook(plan.root, plan.stored.file, 'write', () => new Date().toISOString());
  const grader = toObject(canonicalBytes({ kind: 'boxed', answer: 'answer', compare: 'integer' }));
  const slots = slotsDigest(regradableSlots(book.fold.slots, ['default'], book.context.protocol));
  const opened: DraftOf<'regrading.opened'> = {
    type: 'regrading.opened',
    regrading: 'a'.repeat(32),
    grader: grader.digest,
    conditions: ['default'],
    reason: 'again',
    slots,
  };
  book.store.append([opened], [grader]);
  book.close();
  await plan.run();
  const options = { grader: 'boxed.yaml', reason: 'again' };
  await invoke(regrade, plan.root, [], options);
  expect(await plan.of('regrading.recorded')).toHaveLength(1);
  await invoke(regrade, plan.root, [], options);
  const [, second] = await plan.of('regrading.opened');
  expect(second?.slots.count).toBe(3);
  expect(await plan.findings()).toEqual([]);
});
