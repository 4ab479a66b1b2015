import { mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { runStage } from '../../src/runner/adapters/stage-process.js';
import { CgroupFolder, type StageCgroup } from '../../src/runner/cgroup.js';
import { COMMAND_PLAN, COMMAND_RUNNER } from './command-plan.js';
import { put, type Trial, temporaryFolder, trial } from './fixture.js';
import { settled, story } from './story.js';

const MEMORY = 160 * 2 ** 20;
/** The group of cgroup v1's memory controller in which this process runs. */
const OWN = ownMemoryGroup();
const folder = OWN === null ? null : join(OWN, `boundbook-test-${process.pid}`);
const usable = folder !== null && isUsable(folder);
const NEEDED = 'needs a memory control group of cgroup v1 that this user may write';

afterAll(() => {
  if (usable && folder !== null) rmdirSync(folder);
});

function ownMemoryGroup(): string | null {
  try {
    const path = /^[0-9]+:memory:(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
    return path === undefined ? null : join('/sys/fs/cgroup/memory', path);
  } catch {
    return null;
  }
}

function isUsable(path: string): boolean {
  try {
    mkdirSync(path);
    CgroupFolder.open({ path });
    return true;
  } catch {
    return false;
  }
}

function watched(prompts: Record<string, string>, cgroup: string, rules = ''): Promise<Trial> {
  const runner = `${COMMAND_RUNNER.replaceAll('wall_s: 5', 'wall_s: 60')}\n  cgroup: ${cgroup}`;
  const attempts = `{ replacements: 1, regrades: 1, breaker: 50, rules: [${rules}] }`;
  return trial({ ...COMMAND_PLAN, prompts, runner, attempts });
}

async function oomKillOf(plan: Trial, task: string): Promise<unknown> {
  const started = (await plan.of('attempt.started')).find(({ key }) => key.task === task);
  const stage = (await plan.of('stage.finished')).find(({ attempt }) => attempt === started?.attempt);
  return stage?.result.kind === 'failure' ? stage.result.signals.oom_kill : 'no failure';
}

describe.skipIf(!usable)(`memory of a stage (${NEEDED})`, () => {
  const memory = `{ path: ${folder}, memory_bytes: ${MEMORY} }`;
  const budget =
    '{ id: budget, when: { stage: generate, oom_kill: true }, attribute: model, sufficient: true }';

  test('that its own group ran out is told from any other end by SIGKILL or 137 (P13, P14)', async () => {
    const prompts = {
      eats: 'eats',
      killed: 'killed',
      number: 'exit-137',
      good: 'good one',
      left: 'twice-forked one',
    };
    const plan = await watched(prompts, memory, budget);
    await plan.run({ workers: 2 });
    const killed = 'generate failure running killed_by_signal SIGKILL';
    // The plan says that memory is a budget of the model.
    expect(await story(plan, 'eats')).toEqual([
      'started first',
      killed,
      'model by budget',
      'finished failure',
      'settled 0 on model_failure',
    ]);
    expect((await story(plan, 'killed')).slice(1, 3)).toEqual([killed, 'undetermined by null']);
    expect((await story(plan, 'number')).slice(1, 3)).toEqual([
      'generate failure running exit_status 137',
      'undetermined by null',
    ]);
    expect(await story(plan, 'good')).toEqual(settled(1));
    expect(await story(plan, 'left')).toEqual(settled(1));
    const seen = await Promise.all(['eats', 'killed', 'number'].map((task) => oomKillOf(plan, task)));
    expect(seen).toEqual([true, false, false]);
    expect(await plan.findings()).toEqual([]);
  });

  test('groups are gone with their stages, and this process is where it was', () => {
    const left = readdirSync(folder ?? '', { withFileTypes: true }).filter((item) => item.isDirectory());
    expect(left).toEqual([]);
    expect(ownMemoryGroup()).toBe(OWN);
  });

  test('what a session left in a group is ended with it', async () => {
    const groups = CgroupFolder.open({ path: folder ?? '' });
    const group = groups.make('left');
    const { spawn } = await import('node:child_process');
    const child = group.give(() => spawn(process.execPath, ['-e', 'setInterval(() => 0, 1000)']));
    expect(group.members().map(({ pid }) => pid)).toEqual([child.pid]);
    await groups.clear('left');
    expect(
      child.signalCode ??
        (await new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))),
    ).toBe('SIGKILL');
    await groups.clear('left');
  });
});

test.each([
  ['that is not there', () => '/no/such/group', 'there is no such folder (ENOENT)'],
  ['that is none', () => temporaryFolder(), 'it is no folder of cgroup v2 or of the memory controller of v1'],
  [
    'that only looks like one',
    () => join(put(temporaryFolder(), 'cgroup.controllers', 'memory\n'), '..'),
    'its mount is not found in /proc/self/mountinfo',
  ],
])('a control group %s refuses the run before anything starts', async (_what, path, message) => {
  const plan = await watched({ a: 'good one' }, `{ path: ${path()} }`);
  await expect(plan.run()).rejects.toMatchObject({
    code: 'CGROUP_UNUSABLE',
    exitCode: 3,
    message: expect.stringContaining(message),
  });
  expect(readdirSync(join(plan.root, 'ledger'))).toEqual([]);
});

describe('a stage in a group (a stand-in for one)', () => {
  function stage(kills: readonly number[]) {
    const calls: string[] = [];
    const counts = [...kills];
    const cgroup: StageCgroup = {
      give: (begin) => {
        calls.push('give');
        return begin();
      },
      members: () => [],
      oomKills: () => counts.shift() ?? 0,
      remove: async () => {
        calls.push('remove');
      },
    };
    const folder = temporaryFolder();
    const run = runStage(
      {
        argv: [process.execPath, '-e', 'process.exit(137)'],
        cwd: folder,
        env: [],
        mark: 'test',
        wallMs: 60_000,
        graceMs: 100,
        outputBytes: 100,
        spoolFolder: folder,
        cgroup,
        watchdog: null,
      },
      new AbortController().signal,
    );
    return { run, calls };
  }

  test.each([
    ['an event of its own', [3, 4], true],
    ['events before it only', [3, 3], false],
  ])('with %s', async (_what, kills, expected) => {
    const { run, calls } = stage(kills);
    expect(await run).toMatchObject({ exit_status: 137, oomKill: expected });
    expect(calls).toEqual(['give', 'remove']);
  });
});
