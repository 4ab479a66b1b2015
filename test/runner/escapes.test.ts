import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { command as check } from '../../src/commands/check.js';
import { readStat } from '../../src/runner/process-identity.js';
import { processesIn } from '../../src/runner/process-places.js';
import { ProcessTrail } from '../../src/runner/process-trail.js';
import { listProcesses } from '../../src/runner/process-tree.js';
import { commandContext } from '../commands/context.js';
import { COMMAND_PLAN } from './command-plan.js';
import { temporaryFolder, trial } from './fixture.js';
import { outputOf } from './rooms.js';
import { settled, story } from './story.js';

/** Offspring that leaves its session, its parents and its environment (F-115). */

const isLiving = (pid: number): boolean => !/^[ZX]$/.test(readStat(pid)?.state ?? 'X');

test('is ended with its stage, by its folder, by what it holds open or by its session, and forges no report', async () => {
  const prompts = {
    here: 'escapes-here slow-zero',
    elsewhere: 'escapes-elsewhere one',
    file: 'escapes-with-a-file one',
  };
  const plan = await trial({ ...COMMAND_PLAN, prompts });
  expect((await plan.run({ workers: 3 })).reason).toBe('finished');
  expect(await story(plan, 'here')).toEqual(settled(0));
  for (const task of ['elsewhere', 'file']) expect(await story(plan, task), task).toEqual(settled(1));
  for (const { attempt, key } of await plan.of('attempt.started')) {
    const output = outputOf(join(plan.ledger, 'work', attempt), 'generate');
    const pid = Number(readFileSync(join(output, 'escaped.pid'), 'utf8'));
    expect(pid, key.task).toBeGreaterThan(1);
    expect(isLiving(pid), key.task).toBe(false);
  }
  const audited = await audit(plan.root, plan.stored.file);
  expect(audited.findings).toEqual([]);
  expect(audited.notChecked.filter((line) => line.includes('without a control group'))).toHaveLength(1);
});

test('who is in a folder is found by working folder and open files, since a time, and this process never', async () => {
  const folder = temporaryFolder();
  const sleeper = (cwd: string, script: string) => {
    const child = spawn('sh', ['-c', script], { cwd, detached: true, stdio: 'ignore', env: {} });
    onTestFinished(() => void child.kill('SIGKILL'));
    return child.pid ?? 0;
  };
  const inside = sleeper(folder, 'exec /bin/sleep 30');
  const holds = sleeper('/', `exec /bin/sleep 30 3>${folder}/held`);
  const outside = sleeper('/', 'exec /bin/sleep 30');
  const found = () => processesIn(folder).map(({ pid }) => pid);
  while (found().length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(found().sort()).toEqual([inside, holds].sort());
  const later = String(BigInt(readStat(holds)?.started ?? '0') + 1000n);
  expect(processesIn(folder, later)).toEqual([]);
  expect(processesIn(`${folder}/held`).map(({ pid }) => pid)).toEqual([holds]);
  expect(processesIn(process.cwd()).map(({ pid }) => pid)).not.toContain(process.pid);
  expect(found()).not.toContain(outside);
});

test('a trail keeps what it saw: numbers, sessions, and of strangers their children only', () => {
  const one = (pid: number, parent: number, session: number, started = '5') => ({
    pid,
    parent,
    session,
    group: session,
    started,
    state: 'S',
    hasTerminal: false,
  });
  const trail = new ProcessTrail({ pid: 10, started: '5' });
  const pids = (all: readonly ReturnType<typeof one>[], strangers: readonly ReturnType<typeof one>[] = []) =>
    trail
      .look(all, [], strangers)
      .map(({ pid }) => pid)
      .sort((a, b) => a - b);
  expect(pids([one(10, 1, 10), one(11, 10, 11), one(12, 11, 11), one(20, 1, 20)])).toEqual([10, 11, 12]);
  // Its parents are gone; another one of its session, which was never seen before, belongs to it.
  expect(pids([one(12, 1, 11), one(13, 1, 11), one(20, 1, 20)])).toEqual([12, 13]);
  // The same number is another process; with the last of a session its number is free.
  expect(pids([one(12, 1, 12, '9'), one(20, 1, 20)])).toEqual([]);
  expect(pids([one(14, 1, 11)])).toEqual([]);
  const strange = one(30, 1, 20);
  expect(pids([strange, one(31, 30, 20), one(20, 1, 20)], [strange])).toEqual([30, 31]);
  expect(pids([one(31, 1, 20), one(20, 1, 20)])).toEqual([]);
  expect(listProcesses().find(({ pid }) => pid === process.pid)).toMatchObject({
    started: readStat(process.pid)?.started,
  });
});

test('check remarks on commands that run neither in a control group nor in a container', async () => {
  const remarks = async (runner: string) => {
    const plan = await trial({ ...COMMAND_PLAN, runner, prompts: { a: 'good one' } });
    const { json } = await check.run(['protocol/trial.yaml'], {}, commandContext(plan.root));
    const { remarks } = json as unknown as { remarks: { about: string; message: string }[] };
    return remarks.filter(({ about }) => about === 'processes').map(({ message }) => message);
  };
  const { runner } = COMMAND_PLAN;
  const stop = '    stop: [node, runner/container.mjs, stop, "{container}"]\n';
  const generate = runner.replace('    env: [', `${stop}    env: [`);
  const both = generate.replace(
    '    output_bytes: 1000\n  grace_s',
    `    output_bytes: 1000\n${stop}  grace_s`,
  );
  const cgroup = `${runner}\n  cgroup: { path: /sys/fs/cgroup/boundbook }`;
  const [message] = await remarks(runner);
  expect(message).toMatch(/^generate and grade run without a control group/);
  expect((await remarks(generate))[0]).toMatch(/^grade run without/);
  expect(await remarks(both)).toEqual([]);
  expect(await remarks(cgroup)).toEqual([]);
});
