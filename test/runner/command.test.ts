import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openBook } from '../../src/ledger/book.js';
import type { Entry } from '../../src/ledger/entries/entry.js';
import { COMMAND_PLAN, COMMAND_RUNNER } from './command-plan.js';
import { type PlanSetting, type Trial, temporaryFolder, trial } from './fixture.js';
import { outputOf } from './rooms.js';
import { settled, story, undetermined } from './story.js';

function setting(prompts: Record<string, string>, more: Partial<PlanSetting> = {}): PlanSetting {
  return { prompts, ...COMMAND_PLAN, ...more };
}

const ungraded = (signals: string) => [
  'started first',
  'generate candidate',
  `grade failure ${signals}`,
  'undetermined by null',
  'finished failure',
  'unresolved undetermined',
];

/** Modes of the two commands, and the whole story of the slot. */
const CASES: Readonly<Record<string, readonly string[]>> = {
  'good one': settled(1),
  'good zero': settled(0),
  'good half': settled(0.5),
  // P14: a candidate goes on to grading, however its process ended
  'fails-with one': settled(1),
  'hangs-with one': settled(1),
  'flood one': settled(1),
  'orphan one': settled(1),
  fails: undetermined('running exit_status 3'),
  none: undetermined('collect candidate_missing 0'),
  link: undetermined('collect candidate_missing 0'),
  second: undetermined('collect candidate_missing 0'),
  folder: undetermined('collect candidate_missing 0'),
  killed: undetermined('running killed_by_signal SIGKILL'),
  hangs: undetermined('running time_limit SIGTERM'),
  // F-113
  stubborn: undetermined('running time_limit SIGKILL'),
  // F-81, F-85, F-95, F-123
  'good negative': ungraded('collect report_invalid 0'),
  'good above': ungraded('collect report_invalid 0'),
  'good text': ungraded('collect report_invalid 0'),
  'good nan': ungraded('collect report_invalid 0'),
  'good missing': ungraded('collect report_invalid 0'),
  'good other-task': ungraded('collect report_invalid 0'),
  'good other-candidate': ungraded('collect report_invalid 0'),
  'good twice': ungraded('collect report_invalid 0'),
  'good zeros': ungraded('collect report_invalid 0'),
  'good torn': ungraded('collect report_invalid 0'),
  'good crash': ungraded('running exit_status 1'),
  'good hangs': ungraded('running time_limit SIGTERM'),
  'good one-and-exit-1': settled(1),
  // P12: at most one regrade of the same candidate. F-83: a report that the candidate planted is never read.
  'plants silent': [
    'started first',
    'generate candidate',
    'grade failure collect report_missing 0',
    'infrastructure by grader-silent',
    'finished failure',
    'started regrade',
    'grade failure collect report_missing 0',
    'infrastructure by grader-silent',
    'finished failure',
    'unresolved limit_reached',
  ],
};

let plan: Trial;
const logs = temporaryFolder();

test('every way in which commands end leads to exactly its entries', async () => {
  process.env.BOUNDBOOK_TEST_VARIABLE = 'passed on';
  process.env.BOUNDBOOK_TEST_SECRET = 'not passed on';
  const prompts = Object.fromEntries(Object.keys(CASES).map((mode) => [mode.replaceAll(' ', '-'), mode]));
  plan = await trial(setting(prompts, { fields: { log: join(logs, 'calls') } }));
  const summary = await plan.run({ workers: 6 });
  expect(summary.reason).toBe('finished');
  for (const [mode, expected] of Object.entries(CASES)) {
    expect(await story(plan, mode.replaceAll(' ', '-')), mode).toEqual(expected);
  }
});

test('the audit, which replays every attempt by itself, finds nothing against it', async () => {
  expect(await plan.findings()).toEqual([]);
});

function calls(name: string): Record<string, unknown>[] {
  const lines = readFileSync(join(logs, name), 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

function attemptOf(entries: readonly Entry[], task: string): string {
  const found = entries.find((entry) => entry.type === 'attempt.started' && entry.key.task === task);
  return found?.type === 'attempt.started' ? found.attempt : '';
}

test('commands run in a folder of their attempt, with the verified weights and an allowed environment only', () => {
  const [first] = calls('calls');
  expect(first?.cwd).toMatch(new RegExp(`^${plan.ledger}/work/[0-9a-f]{32}/generate-[0-9a-f]{16}/output$`));
  expect(first?.weights).toBe(join(plan.root, 'models/M-42'));
  expect(first?.env).toEqual(['BOUNDBOOK_MARK', 'BOUNDBOOK_TEST_VARIABLE', 'HOME', 'PATH']);
});

test('the grader learns nothing of arm, model or seed', () => {
  for (const request of calls('calls.grade')) {
    expect(Object.keys(request).sort()).toEqual([
      'attempt',
      'boundbook',
      'candidate',
      'expected_tests',
      'reward',
      'stage',
      'task',
    ]);
  }
});

test('output beyond the cap is read and dropped', async () => {
  const entries = await plan.entries();
  const attempt = attemptOf(entries, 'flood-one');
  const stage = entries.find((entry) => entry.type === 'stage.finished' && entry.attempt === attempt);
  const book = await openBook(plan.root, plan.stored, 'read');
  const digest = stage?.type === 'stage.finished' ? stage.objects.stdout : undefined;
  expect(book.store.getObject(digest ?? 'sha256:').length).toBe(100_000);
  book.close();
});

test('a process that left its group is gone, and never writes again (F-115)', async () => {
  const home = join(plan.ledger, 'work', attemptOf(await plan.entries(), 'orphan-one'));
  const output = outputOf(home, 'generate');
  const pid = readFileSync(join(output, 'orphan.pid'), 'utf8');
  expect(existsSync(`/proc/${pid}`)).toBe(false);
  expect(existsSync(join(output, 'late'))).toBe(false);
});

test('a rejected report is kept as evidence', async () => {
  const entries = await plan.entries();
  const attempt = attemptOf(entries, 'good-negative');
  const stage = entries.find(
    (entry) => entry.type === 'stage.finished' && entry.attempt === attempt && entry.stage === 'grade',
  );
  const digest = stage?.type === 'stage.finished' ? stage.objects.rejected_report : undefined;
  const book = await openBook(plan.root, plan.stored, 'read');
  expect(JSON.parse(book.store.getObject(digest ?? 'sha256:').toString())).toMatchObject({ reward: -0.5 });
  book.close();
});

test('a program that does not exist is a failure of the spawn', async () => {
  const missing = COMMAND_RUNNER.replace('[node, runner/command-generate.mjs', '[no-such-program');
  const other = await trial(setting({ a: 'good' }, { runner: missing }));
  await other.run();
  expect(await story(other, 'a')).toEqual(undetermined('spawn spawn_failed -'));
});

test('expected tests and a report schema are held against the report', async () => {
  const grader = '{ kind: report, reward: { min: 0, max: 1 }, expected_tests: tests }';
  const prompts = { a: 'good one', b: 'good untested', c: 'good one-too-many', d: 'good tested' };
  const other = await trial(setting(prompts, { grader, fields: { tests: ['one', 'two'] } }));
  await other.run();
  // P11: a report that leaves out a test, or covers one more, is about something else.
  for (const task of ['a', 'b', 'c']) {
    expect(await story(other, task), task).toEqual(ungraded('collect report_invalid 0'));
  }
  expect(await story(other, 'd')).toEqual(settled(1));
});

test('a grading that is cut costs nothing: the candidate is graded by the next run', async () => {
  const other = await trial(setting({ a: 'good hangs' }));
  const [first, second] = [new AbortController(), new AbortController()];
  const running = other.run({ signal: first.signal, force: second.signal }).catch((error: unknown) => error);
  const seen = () => story(other, 'a').catch(() => []);
  while ((await seen()).length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
  first.abort('SIGINT');
  second.abort('SIGINT');
  expect(await running).toMatchObject({ code: 'STOPPED', exitCode: 5 });
  const cut = ['started first', 'generate candidate', 'recovered candidate abandoned'];
  expect(await story(other, 'a')).toEqual(cut);
  await other.run();
  expect((await story(other, 'a')).slice(0, 5)).toEqual([
    ...cut,
    'recovered candidate same_process',
    'grade failure running time_limit SIGTERM',
  ]);
  expect(await other.findings()).toEqual([]);
});
