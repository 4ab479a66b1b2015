import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import type { DraftOf } from '../../src/ledger/entries/entry.js';
import { toObject } from '../../src/ledger/objects.js';
import { writeStageRecord } from '../../src/runner/adapters/stage-record.js';
import { readStat } from '../../src/runner/process-identity.js';
import { markedProcesses } from '../../src/runner/process-tree.js';
import { compiledSources } from '../ledger/compiled.js';
import { COMMAND_PLAN } from './command-plan.js';
import { type PlanSetting, productAt, type Trial, temporaryFolder, trial } from './fixture.js';
import { outputOf } from './rooms.js';
import { story } from './story.js';

let compiled: ReturnType<typeof compiledSources>;
beforeAll(() => {
  compiled = compiledSources();
});
afterAll(() => compiled.remove());

/** A plan that was frozen with the very program that the child processes run. */
function childTrial(setting: PlanSetting): Promise<Trial> {
  return trial(setting, productAt(compiled.folder));
}

interface Child {
  readonly process: ChildProcess;
  readonly stderr: () => string;
  readonly ended: Promise<{ code: number | null; stdout: string; stderr: string }>;
}

/** `boundbook run` in a process of its own. */
function start(plan: Trial, ...flags: string[]): Child {
  const args = [join(compiled.folder, 'cli.js'), 'run', '--json', ...flags];
  const child = spawn(process.execPath, args, { cwd: plan.root, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (text: Buffer) => {
    stdout += text.toString();
  });
  child.stderr.on('data', (text: Buffer) => {
    stderr += text.toString();
  });
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
  return { process: child, stderr: () => stderr, ended };
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 20_000; !(await condition()); ) {
    if (Date.now() > end) throw new Error('it never came to that');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Every slot is closed, each by one settlement or finding. */
async function expectClosed(plan: Trial, slots: number): Promise<void> {
  const closed = [...(await plan.of('slot.settled')), ...(await plan.of('slot.unresolved'))];
  expect(closed).toHaveLength(slots);
  expect(new Set(closed.map(({ slot }) => slot)).size).toBe(slots);
}

const later = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`t${i}`, `later ${i}`]));

test('two runs at once share one ledger: every slot is started once, by one of them (F-109)', async () => {
  const plan = await childTrial({ prompts: later(40), reps: 2 });
  const both = [start(plan, '--workers', '4'), start(plan, '--workers', '4')];
  const ends = await Promise.all(both.map(({ ended }) => ended));
  expect(ends.map(({ code, stderr }) => [code, stderr.includes('[')])).toEqual([
    [0, false],
    [0, false],
  ]);
  await expectClosed(plan, 80);
  const started = await plan.of('attempt.started');
  expect(started).toHaveLength(80);
  expect(new Set(started.map(({ session }) => session)).size).toBe(2);
  expect(plan.requests()).toHaveLength(80);
  expect(await plan.findings()).toEqual([]);
});

test('kill -9 in mid-run: the service ends too, and the next run takes over what was in flight', async () => {
  const plan = await childTrial({ prompts: later(24) });
  const first = start(plan, '--workers', '4');
  await until(() => plan.requests().length >= 10);
  first.process.kill('SIGKILL');
  expect((await first.ended).code).toBeNull();
  const session = (await plan.of('gate.passed'))[0]?.session ?? '';
  await until(() => markedProcesses(`${session}.`).length === 0);
  const open = (await plan.of('attempt.started')).length - (await plan.of('attempt.finished')).length;
  expect(open).toBeGreaterThan(0);

  const second = await start(plan, '--workers', '4').ended;
  expect(second.code).toBe(0);
  const recovered = await plan.of('attempt.recovered');
  expect(recovered).toHaveLength(open);
  expect(recovered[0]).toMatchObject({ found: 'nothing', evidence: { reason: 'process_gone' } });
  const replacements = (await plan.of('attempt.started')).filter(({ kind }) => kind === 'replacement');
  expect(replacements.map(({ of }) => of).sort()).toEqual(recovered.map(({ attempt }) => attempt).sort());
  await expectClosed(plan, 24);
  // What the server saw is explained: a request for each attempt, but those that were cut before they were sent.
  expect(plan.requests().length).toBeLessThanOrEqual((await plan.of('attempt.started')).length);
  expect(await plan.findings()).toEqual([]);
});

test('a run that comes to its end takes over what another one left that died meanwhile', async () => {
  const plan = await childTrial({
    prompts: { a: 'slow a', ...later(12) },
    limits: 'request_s: 60, queue_wait_s: 1, response_bytes: 1000000',
  });
  const first = start(plan, '--workers', '1', '--only', 'task=a');
  await until(() => plan.requests().length === 1);
  const second = start(plan, '--workers', '1');
  await until(() => plan.requests().length >= 4);
  first.process.kill('SIGKILL');
  expect((await first.ended).code).toBeNull();
  // Its turn comes again when the rest of the plan is done; the answer is as slow as the first time.
  await until(() => second.stderr().includes('1 attempts of a process that is gone were taken over'));
  expect((await plan.of('attempt.recovered')).map(({ evidence }) => evidence.reason)).toEqual([
    'process_gone',
  ]);
  await until(async () => (await story(plan, 'a')).includes('started replacement'));
  second.process.kill('SIGINT');
  second.process.kill('SIGINT');
  expect((await second.ended).code).toBe(5);
  expect(await plan.findings()).toEqual([]);
});

test('Ctrl-C: in-flight attempts end, the service stops, exit 5; the next run goes on', async () => {
  const plan = await childTrial({ prompts: later(24) });
  const first = start(plan, '--workers', '4');
  await until(() => plan.requests().length >= 8);
  first.process.kill('SIGINT');
  const end = await first.ended;
  expect(end.code).toBe(5);
  const { error } = JSON.parse(end.stdout) as { error: { code: string; evidence: { summary: object } } };
  expect(error.code).toBe('STOPPED');
  expect(error.evidence.summary).toMatchObject({ reason: 'signal' });
  expect(await plan.of('run.paused')).toMatchObject([{ reason: 'signal', detail: 'SIGINT' }]);
  // 300 ms each, and two seconds as their own limit: none was cut.
  expect(await plan.of('attempt.finished')).toHaveLength((await plan.of('attempt.started')).length);
  expect((await plan.of('service.stopped')).map(({ reason }) => reason)).toEqual(['run_ended']);
  const second = await start(plan).ended;
  expect(second.code).toBe(0);
  await expectClosed(plan, 24);
  expect(await plan.of('attempt.recovered')).toEqual([]);
  expect(plan.requests()).toHaveLength(24);
  expect(await plan.findings()).toEqual([]);
});

const SLOW = {
  prompts: { a: 'slow a', b: 'right b' },
  limits: 'request_s: 60, queue_wait_s: 1, response_bytes: 1000000',
};

/** A run with the slow attempt in flight, stopped by two signals. */
async function abandonedRun(plan: Trial, requests: number): Promise<{ code: number | null; stderr: string }> {
  const child = start(plan, '--workers', '2');
  await until(() => plan.requests().length === requests);
  // The quick attempt beside it has been closed, so that one attempt is in flight and no more.
  await until(async () => (await plan.of('slot.settled')).length === 1);
  child.process.kill('SIGTERM');
  await until(() => child.stderr().includes('stopping'));
  const begin = Date.now();
  child.process.kill('SIGINT');
  const end = await child.ended;
  expect(Date.now() - begin).toBeLessThan(8000);
  return end;
}

test('a second signal abandons what is in flight at once, and the book says whose act it was', async () => {
  const plan = await childTrial(SLOW);
  const first = await abandonedRun(plan, 2);
  expect(first.code).toBe(5);
  const told = first.stderr.split('\n').filter((line) => /stopping|abandoning|left$/.test(line));
  expect(told).toEqual([
    'stopping: waiting up to 60 s for 1 attempt in flight (again to abandon now)',
    'abandoning 1 attempt in flight',
  ]);
  expect(first.stderr).toContain('0 recovered now, abandoned 1');
  expect(first.stderr).toMatch(/^next {8}boundbook run goes on; an abandoned attempt/m);
  const given = ['started first', 'recovered nothing abandoned', 'finished failure'];
  expect(await story(plan, 'a')).toEqual(given);
  const [paused] = await plan.of('run.paused');
  expect(paused).toMatchObject({
    reason: 'signal',
    detail: 'SIGTERM; 1 attempt abandoned by the operator, who asked twice',
  });
  const [cut] = await plan.of('attempt.recovered');
  expect(cut?.session).toBe(paused?.session);
  expect(cut?.seq).toBeLessThan(paused?.seq ?? 0);
  expect(await plan.findings()).toEqual([]);

  // DESIGN §9: one replacement, and not one more.
  expect((await abandonedRun(plan, 3)).code).toBe(5);
  expect(await story(plan, 'a')).toEqual([
    ...given,
    'started replacement',
    'recovered nothing abandoned',
    'finished failure',
    'unresolved limit_reached',
  ]);
  // A reader of the audit and of the report learns whose act it was.
  const { remarks } = await audit(plan.root, plan.stored.file);
  expect(remarks.join('\n')).toContain('2 attempts were given up by their own session');
  expect(await plan.findings()).toEqual([]);
});

test('after one signal an attempt in flight may end by its own limit, whatever the grace of the service', async () => {
  // The answer takes 300 ms, its server may be given 100 ms to end.
  const plan = await childTrial({ prompts: later(4), stopGraceS: 0.1 });
  const child = start(plan, '--workers', '1');
  await until(() => plan.requests().length === 1);
  child.process.kill('SIGINT');
  const end = await child.ended;
  expect(end.code).toBe(5);
  expect(end.stderr).toMatch(/^next {8}boundbook run goes on$/m);
  const table = end.stderr.split('\n').filter((line) => /^(?:\w+)? {3,}\S/.test(line));
  expect(table.length).toBeGreaterThanOrEqual(8);
  expect(table.filter((line) => line.length > 80)).toEqual([]);
  expect(await plan.of('attempt.recovered')).toEqual([]);
  expect(await plan.of('attempt.finished')).toHaveLength((await plan.of('attempt.started')).length);
});

test('with --limit, slots that another run has taken do not count', async () => {
  const plan = await childTrial({ prompts: later(40), reps: 2 });
  const both = [start(plan, '--limit', '30'), start(plan, '--limit', '30')];
  expect((await Promise.all(both.map(({ ended }) => ended))).map(({ code }) => code)).toEqual([0, 0]);
  const started = await plan.of('attempt.started');
  const sessions = [...new Set(started.map(({ session }) => session))];
  const counts = sessions.map((id) => started.filter(({ session }) => session === id).length);
  expect(counts).toEqual([30, 30]);
});

describe('commands', () => {
  test('kill -9 while a candidate is graded: the candidate is graded by the next run, not made again', async () => {
    const plan = await childTrial({ ...COMMAND_PLAN, prompts: { a: 'good hangs', b: 'hangs one' } });
    const first = start(plan, '--workers', '2');
    await until(() => grading(plan) === 1);
    first.process.kill('SIGKILL');
    await first.ended;
    expect(await story(plan, 'a')).toEqual(['started first', 'generate candidate']);
    expect((await start(plan).ended).code).toBe(0);
    expect((await story(plan, 'a')).slice(2, 4)).toEqual([
      'recovered candidate process_gone',
      'grade failure running time_limit SIGTERM',
    ]);
    expect((await story(plan, 'b')).slice(1, 4)).toEqual([
      'recovered nothing process_gone',
      'finished failure',
      'started replacement',
    ]);
    expect(await plan.findings()).toEqual([]);
  });

  test('kill -9 after a candidate removed its room: it is not taken for nothing, and not tried again', async () => {
    const plan = await childTrial({ ...COMMAND_PLAN, prompts: { a: 'removes-room-and-hangs one' } });
    const first = start(plan);
    const homes = () => readdirSync(join(plan.ledger, 'work')).map((name) => join(plan.ledger, 'work', name));
    await until(() => {
      const [home] = existsSync(join(plan.ledger, 'work')) ? homes() : [];
      return home !== undefined && readdirSync(home).join() === 'generate.began';
    });
    first.process.kill('SIGKILL');
    await first.ended;
    expect((await start(plan).ended).code).toBe(0);
    expect(await story(plan, 'a')).toEqual([
      'started first',
      'recovered end process_gone',
      'generate failure collect room_damaged -',
      'undetermined by null',
      'finished failure',
      'unresolved undetermined',
    ]);
    expect(await plan.findings()).toEqual([]);
  });

  test('kill -9 while something like a container runs: the next run ends it by its name', async () => {
    const containers = temporaryFolder();
    const runner = COMMAND_PLAN.runner
      .replace(
        '    env: [',
        `    stop: [node, runner/container.mjs, stop, "{container}", ${containers}]\n    env: [`,
      )
      .replace('"{output}"]', `"{output}", "{container}", ${containers}]`)
      .replace('wall_s: 5', 'wall_s: 60')
      .replace('grace_s: 0.3', 'grace_s: 10');
    const plan = await childTrial({ ...COMMAND_PLAN, runner, prompts: { a: 'contains-once one' } });
    const first = start(plan);
    const names = () => readdirSync(containers).filter((name) => !name.endsWith('.tmp'));
    await until(() => names().length === 1);
    first.process.kill('SIGKILL');
    await first.ended;
    const [name = ''] = names();
    const pid = Number(readFileSync(join(containers, name), 'utf8'));
    const session = (await plan.of('gate.passed'))[0]?.session ?? '';
    // The watchdog ends what it knows of; a container is not among it.
    await until(() => markedProcesses(`${session}.`).length === 0);
    expect(readStat(pid)).toMatchObject({ state: expect.not.stringMatching(/[ZX]/) });
    expect((await start(plan).ended).code).toBe(0);
    expect(names()).toEqual([`${name}.stopped`]);
    expect(readStat(pid)?.state ?? 'X').toMatch(/[ZX]/);
    expect((await story(plan, 'a')).slice(1, 5)).toEqual([
      'recovered nothing process_gone',
      'finished failure',
      'started replacement',
      'generate candidate',
    ]);
    expect(await plan.findings()).toEqual([]);
  });

  test('an end of a stage that was durable and not yet in the ledger is adopted (law 3)', async () => {
    const plan = await childTrial({ ...COMMAND_PLAN, prompts: { a: 'hangs one', b: 'good hangs' } });
    const first = start(plan, '--workers', '2');
    await until(() => grading(plan) === 1);
    first.process.kill('SIGKILL');
    await first.ended;
    const attempts = await plan.of('attempt.started');
    for (const { attempt, slot, key } of attempts) {
      const folder = join(plan.ledger, 'work', attempt);
      if (key.task === 'a') await writeStageRecord(folder, candidateRecord(attempt, slot));
      else await writeStageRecord(folder, await reportRecord(plan, attempt, slot));
    }
    expect((await start(plan).ended).code).toBe(0);
    expect(await story(plan, 'a')).toEqual([
      'started first',
      'recovered end process_gone',
      'generate candidate',
      'grade report',
      'finished report',
      'settled 1 on report',
    ]);
    expect(await story(plan, 'b')).toEqual([
      'started first',
      'generate candidate',
      'recovered end process_gone',
      'grade report',
      'finished report',
      'settled 0 on report',
    ]);
    expect(await plan.findings()).toEqual([]);
  });

  test('a valid report is adopted although nobody saw its process end; any other file is not (law 3)', async () => {
    const prompts = { a: 'good hangs-with', b: 'good hangs', c: 'good hangs' };
    const plan = await childTrial({ ...COMMAND_PLAN, prompts });
    const first = start(plan, '--workers', '3');
    await until(() => grading(plan) === 3 && reports(plan).length === 1);
    first.process.kill('SIGKILL');
    await first.ended;
    // What a grader leaves that is killed while it writes, and what is about another candidate.
    for (const { attempt, key } of await plan.of('attempt.started')) {
      if (key.task === 'a') continue;
      const report = { task: key.task, candidate: `sha256:${'0'.repeat(64)}`, tests: {}, reward: 1 };
      const text = JSON.stringify(report).slice(0, key.task === 'b' ? 50 : undefined);
      writeFileSync(join(outputOf(join(plan.ledger, 'work', attempt), 'grade'), 'report.json'), text);
    }
    expect((await start(plan).ended).code).toBe(0);
    expect(await story(plan, 'a')).toEqual([
      'started first',
      'generate candidate',
      'recovered end process_gone',
      'grade report',
      'finished report',
      'settled 1 on report',
    ]);
    for (const task of ['b', 'c']) {
      expect((await story(plan, task)).slice(2, 4)).toEqual([
        'recovered candidate process_gone',
        'grade failure running time_limit SIGTERM',
      ]);
    }
    expect(await plan.findings()).toEqual([]);
  });

  function reports(plan: Trial): readonly string[] {
    const found = spawnSync('find', [join(plan.ledger, 'work'), '-name', 'report.json'], {
      encoding: 'utf8',
    });
    return found.stdout.split('\n').filter((line) => line !== '');
  }

  /** Number of attempts whose grading has begun. */
  function grading(plan: Trial): number {
    const folder = join(plan.ledger, 'work');
    if (!existsSync(folder)) return 0;
    const found = spawnSync('find', [folder, '-name', 'grade.began'], { encoding: 'utf8' });
    return found.stdout.split('\n').filter((line) => line !== '').length;
  }

  const rest = {
    objects: {},
    usage: null,
    finish_reason: 'exit 0',
    seconds: 1,
    queue_seconds: 0,
  } as const;

  function candidateRecord(attempt: string, slot: string) {
    const candidate = toObject(Buffer.from('7 as it was'));
    const draft: DraftOf<'stage.finished'> = {
      type: 'stage.finished',
      attempt,
      slot,
      stage: 'generate',
      result: { kind: 'candidate', candidate: candidate.digest },
      ...rest,
    };
    return { draft, objects: [candidate] };
  }

  async function reportRecord(plan: Trial, attempt: string, slot: string) {
    const stages = await plan.of('stage.finished');
    const result = stages.find((entry) => entry.attempt === attempt)?.result;
    if (result?.kind !== 'candidate') throw new Error('no candidate in the ledger');
    const { candidate } = result;
    const report = toObject(JSON.stringify({ task: 'b', candidate, tests: {}, reward: 0 }));
    const draft: DraftOf<'stage.finished'> = {
      type: 'stage.finished',
      attempt,
      slot,
      stage: 'grade',
      result: { kind: 'report', candidate, report: report.digest, value: 0 },
      ...rest,
    };
    return { draft, objects: [report] };
  }
});

const mayMount = process.getuid?.() === 0 && process.platform === 'linux';

test.skipIf(!mayMount)(
  'a disk that is all but full in mid-run: exit 5, no attempt is cut, the next run goes on',
  async ({ skip }) => {
    const plan = await childTrial({ prompts: later(16), reps: 20 });
    const disk = join(temporaryFolder(), 'disk');
    mkdirSync(disk);
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=5600k', 'tmpfs', disk]).status !== 0) {
      return skip('this container may not mount a tmpfs');
    }
    onTestFinished(() => void execFileSync('umount', ['-l', disk]));
    mkdirSync(join(disk, 'ledger'));
    execFileSync('mount', ['--bind', join(disk, 'ledger'), join(plan.root, 'ledger')]);
    onTestFinished(() => void execFileSync('umount', ['-l', join(plan.root, 'ledger')]));
    writeFileSync(join(disk, 'ballast'), Buffer.alloc(900_000));
    const first = await start(plan, '--workers', '16').ended;
    expect(first.code).toBe(5);
    expect(JSON.parse(first.stdout)).toMatchObject({ error: { code: 'DISK_FULL' } });
    expect(first.stdout).toContain('attempts are started with at least 4000000');
    expect(await plan.of('attempt.recovered')).toEqual([]);
    const settledBefore = await plan.of('slot.settled');
    expect(settledBefore.length).toBeGreaterThan(0);
    rmSync(join(disk, 'ballast'));
    const second = await start(plan, '--workers', '16', '--limit', '40').ended;
    expect(second.code).toBe(0);
    const after = await plan.of('slot.settled');
    expect(after.slice(0, settledBefore.length)).toEqual(settledBefore);
    expect(after.length).toBeGreaterThan(settledBefore.length);
  },
);
