import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Entry } from '../../src/ledger/entries/entry.js';
import { markedProcesses } from '../../src/runner/process-tree.js';
import { compiledSources } from '../ledger/compiled.js';
import { type PlanSetting, productAt, type Trial, trial } from '../runner/fixture.js';

/** Several programs on one ledger, as processes of their own. */

vi.setConfig({ testTimeout: 300_000 });

let compiled: ReturnType<typeof compiledSources>;
beforeAll(() => {
  compiled = compiledSources();
});
afterAll(() => compiled.remove());

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function start(
  plan: Trial,
  verb: string,
  ...flags: string[]
): { readonly process: ChildProcess; readonly ended: Promise<Ended> } {
  const child = spawn(process.execPath, [join(compiled.folder, 'cli.js'), verb, ...flags], {
    cwd: plan.root,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (text: Buffer) => {
    stdout += text.toString();
  });
  child.stderr.on('data', (text: Buffer) => {
    stderr += text.toString();
  });
  const ended = new Promise<Ended>((resolve) =>
    child.on('close', (code) => resolve({ code, stdout, stderr })),
  );
  return { process: child, ended };
}

async function until(condition: () => boolean): Promise<void> {
  for (const end = Date.now() + 120_000; !condition(); ) {
    if (Date.now() > end) throw new Error('it never came to that');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** What no user may ever see of it. */
function expectQuiet({ stdout, stderr }: Ended): void {
  expect(stdout + stderr).not.toMatch(/SQLITE|database is locked|LEDGER_BUSY|INTERNAL|^\s+at /m);
}

function tasks(count: number): PlanSetting['prompts'] {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`t${i}`, `right ${i}`]));
}

const of = <T extends Entry['type']>(entries: readonly Entry[], type: T) =>
  entries.filter((entry): entry is Extract<Entry, { type: T }> => entry.type === type);

/** What holds for any ledger: no slot is in the hands of two attempts, and each planned slot is closed once. */
function expectOneAtATime(entries: readonly Entry[], planned: number): void {
  const held = new Map<string, string>();
  for (const entry of entries) {
    if (entry.type === 'attempt.started') {
      expect(held.get(entry.slot), `slot ${entry.slot} is claimed twice`).toBeUndefined();
      held.set(entry.slot, entry.attempt);
    }
    if (entry.type === 'attempt.finished') {
      expect(held.get(entry.slot)).toBe(entry.attempt);
      held.delete(entry.slot);
    }
  }
  expect(held.size).toBe(0);
  const closed = [...of(entries, 'slot.settled'), ...of(entries, 'slot.unresolved')].map(({ slot }) => slot);
  expect(closed).toHaveLength(planned);
  expect(new Set(closed).size).toBe(planned);
}

test('4 × 8 workers on one ledger, one of them killed: every slot closed once, nothing lost, nobody sees a lock', async () => {
  const plan = await trial({ prompts: tasks(120), reps: 3 }, productAt(compiled.folder));
  const runs = Array.from({ length: 4 }, () => start(plan, 'run', '--json', '--workers', '8'));
  await until(() => plan.requests().length >= 60);
  const [victim, ...others] = runs;
  victim?.process.kill('SIGKILL');
  expect((await victim?.ended)?.code).toBeNull();
  const ends = await Promise.all(others.map(({ ended }) => ended));
  for (const end of ends) expectQuiet(end);
  expect(ends.map(({ code }) => code)).toEqual([0, 0, 0]);
  // Whoever comes later takes over what the dead one held.
  const last = await start(plan, 'run', '--json', '--workers', '8').ended;
  expectQuiet(last);
  expect(last.code).toBe(0);

  const entries = await plan.entries();
  expectOneAtATime(entries, 360);
  expect(of(entries, 'gate.passed')).toHaveLength(5);
  const started = of(entries, 'attempt.started');
  // Intent before act (law 2): what the server saw, the ledger has, seed by seed and not once more.
  const claims = tally(started.map(({ sampling_seed }) => sampling_seed));
  const seen = tally(plan.requests().map(({ seed }) => seed));
  for (const [seed, count] of seen) expect(claims.get(seed) ?? 0).toBeGreaterThanOrEqual(count);
  const recovered = of(entries, 'attempt.recovered');
  for (const { evidence } of recovered) expect(evidence.reason).toBe('process_gone');
  const lost = recovered.filter(({ found }) => found === 'nothing').map(({ attempt }) => attempt);
  const replaced = started.filter(({ kind }) => kind === 'replacement').map(({ of: first }) => first);
  expect(replaced.sort()).toEqual(lost.sort());
  expect(started).toHaveLength(360 + lost.length);
  expect(await plan.findings()).toEqual([]);
  for (const { session } of of(entries, 'gate.passed')) expect(markedProcesses(`${session}.`)).toEqual([]);
});

function tally<T>(values: readonly T[]): ReadonlyMap<T, number> {
  const counts = new Map<T, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

test('runs, status, checkpoint and export at the same instant, where no ledger is yet', async () => {
  for (let round = 0; round < 2; round++) {
    const plan = await trial({ prompts: tasks(12) }, productAt(compiled.folder));
    const runs = Array.from({ length: 3 }, () => start(plan, 'run', '--json', '--workers', '4'));
    const beside = [
      start(plan, 'status'),
      start(plan, 'checkpoint'),
      start(plan, 'export', '--out', 'early', '--before-unblinding', 'a test'),
      start(plan, 'audit'),
    ];
    const ends = await Promise.all(runs.map(({ ended }) => ended));
    const others = await Promise.all(beside.map(({ ended }) => ended));
    for (const end of [...ends, ...others]) expectQuiet(end);
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0]);
    // Before the first entry there is nothing to look at, which is said; afterwards all of them do their work.
    for (const { code, stderr } of others) {
      if (code !== 0) expect([code, stderr]).toEqual([2, expect.stringContaining('[LEDGER_NOT_FOUND]')]);
    }
    const entries = await plan.entries();
    expectOneAtATime(entries, 12);
    expect(of(entries, 'ledger.opened')).toHaveLength(1);
    expect(plan.requests()).toHaveLength(12);
    expect(await plan.findings()).toEqual([]);
    const left = readdirSync(join(plan.root, 'ledger'), { recursive: true, encoding: 'utf8' });
    expect(left.filter((name) => /\.tmp$|\.lock$/.test(name))).toEqual([]);
  }
});

test('while runs append, every verb that looks or writes beside them gets its turn', async () => {
  const plan = await trial({ prompts: tasks(120), reps: 2 }, productAt(compiled.folder));
  const runs = Array.from({ length: 2 }, () => start(plan, 'run', '--json', '--workers', '8'));
  await until(() => plan.requests().length >= 10);
  const beside = [
    start(plan, 'status'),
    start(plan, 'checkpoint'),
    start(plan, 'checkpoint'),
    start(plan, 'audit'),
    start(plan, 'export', '--out', 'first', '--before-unblinding', 'a test'),
    start(plan, 'export', '--out', 'second', '--before-unblinding', 'a test'),
  ];
  const others = await Promise.all(beside.map(({ ended }) => ended));
  const ends = await Promise.all(runs.map(({ ended }) => ended));
  for (const end of [...ends, ...others]) expectQuiet(end);
  expect(others.map(({ code, stderr }) => [code, stderr.includes('[')])).toEqual(
    beside.map(() => [0, false]),
  );
  expect(ends.map(({ code }) => code)).toEqual([0, 0]);
  for (const name of ['first', 'second'])
    expect((await start(plan, 'audit', `./${name}`).ended).code).toBe(0);
  expectOneAtATime(await plan.entries(), 240);
  expect(await plan.findings()).toEqual([]);
});
