import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exportBundle } from '../../src/audit/bundle/export.js';
import { hexOf } from '../../src/core/digest.js';
import { hasEnded, readStat } from '../../src/runner/process-identity.js';
import { compiledSources } from '../ledger/compiled.js';
import { hasPython, python, VERIFIER } from '../verify/python.js';
import { productAt, type Trial, trial } from './fixture.js';
import { ends } from './harbor-ends.js';
import { harborPlan } from './harbor-plan.js';

let compiled: ReturnType<typeof compiledSources>;
beforeAll(() => {
  compiled = compiledSources();
});
afterAll(() => compiled.remove());

const undetermined = (signals: string) => `${signals}, undetermined, unresolved undetermined`;
const again = 'lost with nothing, replacement';
const tests = 'grade verifier trial_exception AddTestsDirError, infrastructure';

/** Where the trial of each task hangs (harbor-linger.mjs), and what becomes of its slot when the run is killed then. */
const KILLED_ONCE = {
  pass: 'settled 1',
  fail: 'settled 0',
  // Nothing of a result: the process is gone, one replacement.
  'pass~start': `${again}, settled 1`,
  'fail~torn': `${again}, settled 0`,
  // A whole result is the trial's end, whatever it says: no second try.
  'fail~end': 'lost with end, settled 0',
  'null-reward~end': `lost with end, ${undetermined('grade verifier report_invalid')}`,
  'agent-crash~end': `lost with end, ${undetermined('generate agent_execution trial_exception RuntimeError')}`,
  'AgentSetupTimeoutError~end':
    'lost with end, generate agent_setup trial_exception AgentSetupTimeoutError, infrastructure, replacement, settled 1',
  'regrade-fails~end': `lost with end, ${tests}, regrade, ${tests}, unresolved limit_reached`,
  // Harbor's own handler wrote that it was cancelled, in the agent's time.
  'pass~term': `lost with end, ${undetermined('generate agent_execution trial_exception CancelledError')}`,
  'regrade-passes~regrade': `${tests}, regrade, lost with candidate, settled 1`,
};
const KILLED_TWICE = {
  'pass~always': `${again}, lost with nothing, unresolved limit_reached`,
  'regrade-passes~regrade2': `${tests}, regrade, lost with candidate, lost with candidate, settled 1`,
};
const ENDS: Readonly<Record<string, string>> = { ...KILLED_ONCE, ...KILLED_TWICE };
const HANGING = Object.keys(ENDS).filter((task) => task.includes('~')).length;

/** `boundbook run` in a process of its own. */
function start({ root }: Trial): ChildProcess {
  const args = [join(compiled.folder, 'cli.js'), 'run', '--json', '--workers', '16'];
  return spawn(process.execPath, args, { cwd: root, stdio: 'ignore' });
}

function linesOf({ root }: Trial, file: string): readonly (readonly string[])[] {
  if (!existsSync(join(root, file))) return [];
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => line.split(' '));
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 60_000; !(await condition()); ) {
    if (Date.now() > end) throw new Error('it never came to that');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const isAlive = (pid: string) => {
  const stat = readStat(Number(pid));
  return stat !== null && !hasEnded(stat);
};

/**
 * Kills a run that has so many trials hanging.
 *
 * @param done how many slots must be closed before
 * @param watched whether its watchdog survives it
 */
async function killWhenHanging(plan: Trial, hanging: number, done: number, watched: boolean): Promise<void> {
  const run = start(plan);
  const exit = new Promise((resolve) => run.once('exit', (_code, signal) => resolve(signal)));
  await until(() => linesOf(plan, 'hangs.log').length === hanging);
  await until(async () => done === 0 || (await closed(plan)) === done);
  if (!watched) process.kill(watchdogOf(run.pid ?? 0), 'SIGKILL');
  run.kill('SIGKILL');
  expect(await exit).toBe('SIGKILL');
}

async function closed(plan: Trial): Promise<number> {
  const entries = await plan.entries();
  return entries.filter(({ type }) => type === 'slot.settled' || type === 'slot.unresolved').length;
}

function watchdogOf(runner: number): number {
  const children = readdirSync('/proc').filter(
    (name) => /^\d+$/.test(name) && readStat(Number(name))?.parent === runner,
  );
  const [watchdog] = children.filter((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('function guard'),
  );
  return Number(watchdog);
}

test('whatever a trial was at when its run was killed, its slot ends by the rules and nothing of it lives on', async () => {
  const setting = harborPlan(Object.keys(ENDS), { stop: 'containers', wall: 100 });
  const plan = await trial(setting, productAt(compiled.folder));

  await killWhenHanging(plan, HANGING, 0, true);
  const first = linesOf(plan, 'hangs.log');
  // The watchdog ends the groups; what left them, and the containers, are left to the next run.
  await until(() => !first.some(([, , process = '']) => isAlive(process)));
  expect(first.every(([, , , runaway = '', container = '']) => isAlive(runaway) && isAlive(container))).toBe(
    true,
  );

  // Gradings that were taken over come first: the regrade alone hangs again. Without its watchdog the trial lives on, too.
  await killWhenHanging(plan, HANGING + 1, 0, false);
  const [second = []] = linesOf(plan, 'hangs.log').slice(HANGING);
  expect(first.flatMap(([, , ...pids]) => pids).filter(isAlive)).toEqual([]);
  expect([second[0], ...second.slice(2).map(isAlive)]).toEqual(['regrade-passes~regrade2', true, true, true]);

  await killWhenHanging(plan, HANGING + 2, Object.keys(ENDS).length - 1, false);
  const [third = []] = linesOf(plan, 'hangs.log').slice(HANGING + 1);
  expect(second.slice(2).filter(isAlive)).toEqual([]);
  expect([third[0], ...third.slice(2).map(isAlive)]).toEqual(['pass~always', true, true, true]);

  const last = start(plan);
  expect(await new Promise((resolve) => last.once('exit', resolve))).toBe(0);
  expect(third.slice(2).filter(isAlive)).toEqual([]);
  expect(ends(await plan.entries())).toEqual(ENDS);

  // Every trial had a name of its own, and began when nothing of the one before was alive.
  const trials = linesOf(plan, 'trials.log');
  expect(new Set(trials.map(([, name]) => name)).size).toBe(trials.length);
  expect(trials.filter((words) => words.includes('haunted'))).toEqual([]);
  const regrades = trials.filter(
    ([task, , kind]) => task === 'regrade-passes~regrade2' && kind === 'regrade',
  );
  const attempt = (await plan.of('attempt.started')).find(
    ({ key, kind }) => key.task === 'regrade-passes~regrade2' && kind === 'regrade',
  )?.attempt;
  const sessions = (await plan.of('gate.passed')).map(({ session }) => session.slice(0, 8));
  const name = `bb-${hexOf(plan.stored.digest).slice(0, 12)}-${attempt}`;
  expect(regrades.map((words) => words[1])).toEqual([
    name,
    `${name}-${sessions[1]}`,
    `${name}-${sessions[2]}`,
  ]);

  expect(await plan.findings()).toEqual([]);
  if (!hasPython) return;
  const { folder } = await exportBundle(plan.root, undefined, { out: 'bundle', beforeUnblinding: true });
  const { status, stdout } = python([VERIFIER, folder]);
  expect(stdout).toContain('verified');
  expect(status).toBe(0);
}, 180_000);
