import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { auditBundle } from '../../src/audit/audit.js';
import { exportBundle } from '../../src/audit/bundle/export.js';
import { command as unblind } from '../../src/commands/unblind.js';
import { openBook } from '../../src/ledger/book.js';
import { buildReport } from '../../src/report/build.js';
import { bookInput } from '../../src/report/input.js';
import { renderReport } from '../../src/report/render.js';
import { listProcesses } from '../../src/runner/process-tree.js';
import { invoke } from '../amend/support.js';
import { put, type Trial } from '../runner/fixture.js';
import { hasPython, python, VERIFIER } from '../verify/python.js';
import { again, CORRECTED, calls, graderText, logOf, ran, refused } from './command-plan.js';

async function reportOf(plan: Trial) {
  const book = await openBook(plan.root, plan.stored, 'read');
  try {
    return buildReport(bookInput(book));
  } finally {
    book.close();
  }
}

/** What both verifiers find in a bundle with its report; the exit status of the second one. */
async function verdicts(plan: Trial, out: string) {
  const made = await exportBundle(plan.root, undefined, { out, beforeUnblinding: true });
  const { findings } = await auditBundle(made.folder);
  return { audit: findings, second: hasPython ? python([VERIFIER, made.folder]).status : 0 };
}

describe('a corrected grade command', () => {
  const prompts = [
    'good one one',
    'good zero zero',
    'good half half',
    'good zero one',
    'good one half',
    'hangs-with one one',
  ];
  let plan: Trial;
  beforeAll(async () => {
    process.env.BOUNDBOOK_TEST_VARIABLE = 'not asked for';
    plan = await ran(prompts);
  });

  it('changes two of six outputs beside what they settled on', async () => {
    const before = await plan.of('slot.settled');
    const { json, text } = await again(plan, { concurrency: '3' });
    expect(json).toMatchObject({ outputs: null, changed: null, failed: null });
    expect(text).toMatch(/masked until unblind/);
    expect(await plan.of('slot.settled')).toEqual(before);
    expect(await plan.of('regrading.closed')).toMatchObject([
      { changed: 2, same: 4, truncated: 0, failed: 0 },
    ]);
    const recorded = await plan.of('regrading.recorded');
    expect(recorded.every(({ stage }) => stage?.finish_reason === 'exit 0')).toBe(true);
    expect(await plan.findings()).toEqual([]);
  });

  it('names its files, hashed, and the process', async () => {
    const [opened] = await plan.of('regrading.opened');
    expect(opened?.command).toMatchObject({
      process: { pid: process.pid },
      sources: { fixed: { kind: 'tree', files: 1, size: CORRECTED.length } },
    });
    expect(opened?.command?.schema).toBeUndefined();
  });

  it('is run in an empty folder, told nothing of arm or model, with an allowed environment only', () => {
    const all = calls(plan);
    expect(new Set(all.map(({ cwd }) => cwd)).size).toBe(6);
    for (const { request, files, env, cwd } of all) {
      expect(files).toEqual([]);
      expect(env).toEqual(['BOUNDBOOK_MARK', 'HOME', 'PATH']);
      expect(cwd).toMatch(
        new RegExp(`^${plan.ledger}/work/regrading-[0-9a-f]{32}/[0-9a-f]{32}/grade-[0-9a-f]{16}/output$`),
      );
      expect(Object.keys(request).sort()).toEqual(
        ['attempt', 'boundbook', 'candidate', 'expected_tests', 'reward', 'stage', 'task'].sort(),
      );
    }
    expect(readdirSync(join(plan.ledger, 'work')).filter((name) => name.startsWith('regrading-'))).toEqual(
      [],
    );
  });

  it('is refused when it says nothing new, and taken when its files are others', async () => {
    const before = (await plan.entries()).length;
    expect(await refused(plan)).toMatchObject({ code: 'REGRADE_REFUSED' });
    expect((await plan.entries()).length).toBe(before);
    put(plan.root, 'fixed/notes.txt', 'another file makes another grader');
    expect(await refused(plan)).toBeNull();
    expect(await plan.of('regrading.closed')).toHaveLength(2);
  });

  it('lists what it changed, when outcomes are open', async () => {
    const blinded = await reportOf(plan);
    expect(blinded.regradings?.[0]).toMatchObject({ changed: null, failed: null, same: null });
    await invoke(unblind, plan.root, [], {});
    const report = await reportOf(plan);
    const [first] = report.regradings ?? [];
    const changed = [...(first?.changed ?? [])].sort((a, b) => a.before - b.before);
    expect(changed).toMatchObject([
      { task: 'good_zero_one', before: 0, after: 1 },
      { task: 'good_one_half', before: 1, after: 0.5 },
    ]);
    expect(first).toMatchObject({ same: 4, truncated: [], failed: [] });
    expect(renderReport(report, 'text')).toMatch(/2 grades changed, 1 of them upwards; 4 stayed/);
    expect(await plan.findings()).toEqual([]);
  });
});

it('records what gives no valid report as failed, with its cause, and never as a value', async () => {
  const plan = await ran([
    'good one hangs',
    'good one silent',
    'good one above',
    'good one other-task',
    'good one crash',
    'good one flood',
  ]);
  put(plan.root, 'fixed.yaml', graderText(logOf(plan), { wall: 3 }));
  await again(plan, { concurrency: '6' });
  expect(await plan.of('regrading.closed')).toMatchObject([{ same: 1, changed: 0, truncated: 0, failed: 5 }]);
  const causes = new Map<string, string>();
  const book = await openBook(plan.root, plan.stored, 'read');
  for (const { slot, result, stage } of await plan.of('regrading.recorded')) {
    const task = book.fold.slots.key(slot)?.task ?? '';
    causes.set(task, result.kind === 'failed' ? result.signals.cause : result.kind);
    const kept = Object.keys(stage?.objects ?? {});
    expect(kept.includes('rejected_report'), task).toBe(
      ['good_one_above', 'good_one_other-task'].includes(task),
    );
    if (task === 'good_one_flood') expect(kept.sort()).toEqual(['capture', 'stdout']);
  }
  book.close();
  expect(Object.fromEntries(causes)).toEqual({
    good_one_hangs: 'time_limit',
    good_one_silent: 'report_missing',
    good_one_above: 'report_invalid',
    'good_one_other-task': 'report_invalid',
    good_one_crash: 'exit_status',
    good_one_flood: 'graded',
  });
  expect(await plan.findings()).toEqual([]);
  expect(await verdicts(plan, 'blinded')).toEqual({ audit: [], second: 0 });
  // What failed may be asked again with the same grader.
  expect(await refused(plan, { concurrency: '6' })).toBeNull();
  await invoke(unblind, plan.root, [], {});
  const report = await reportOf(plan);
  expect(report.regradings?.[0]?.failed?.map(({ cause }) => cause).sort()).toEqual([
    'exit_status',
    'report_invalid',
    'report_invalid',
    'report_missing',
    'time_limit',
  ]);
  expect(renderReport(report, 'text')).toMatch(/Without a valid report:[\s\S]*time_limit/);
  expect(await verdicts(plan, 'open')).toEqual({ audit: [], second: 0 });
});

it('leaves nothing running that the command started', async () => {
  const plan = await ran(['good one orphan']);
  await again(plan);
  const orphans = readFileSync(`${logOf(plan)}.orphans`, 'utf8')
    .trim()
    .split('\n');
  expect(orphans).toHaveLength(1);
  const living = listProcesses().map(({ pid }) => String(pid));
  expect(orphans.filter((pid) => living.includes(pid))).toEqual([]);
});

describe('a grader file', () => {
  let plan: Trial;
  beforeAll(async () => {
    plan = await ran(['good one one']);
  });

  it.each([
    ['kind: report\nreward: { min: 0, max: 1 }\n', 'GRADER_INVALID', /grade/],
    [graderText('x', { argv: '[node, "{weights}"]' }), 'GRADER_INVALID', /\{weights\} is not known here/],
    [graderText('x').replace('max: 1', 'max: 0'), 'GRADER_INVALID', /reward range/],
    [graderText('x').replace('{ fixed: fixed }', '{}'), 'GRADER_INVALID', /sources/],
    [graderText('x', { step: ', stop: [docker, kill]' }), 'GRADER_INVALID', /container/],
    [graderText('x', { more: 'answer: a\n' }), 'GRADER_INVALID', /answer/],
    [graderText('x').replace('fixed: fixed', 'fixed: nowhere'), 'BINDING_REFUSED', /nowhere/],
    [graderText('x', { more: 'report_schema: none.json\n' }), 'FILE_NOT_FOUND', /none.json/],
    [graderText('x', { more: 'expected_tests: prompt\n' }), 'TASKS_INVALID', /expected tests/],
    ['kind: boxed\nanswer: answer\ncompare: integer\n', 'REGRADE_REFUSED', /of the kind report/],
    ['kind: reward\nkey: a\nreward: { min: 0, max: 1 }\n', 'GRADER_INVALID', /Harbor/],
  ])('is refused: %j', async (text, code, words) => {
    put(plan.root, 'bad.yaml', text);
    const before = (await plan.entries()).length;
    const error = await refused(plan, { grader: 'bad.yaml' });
    expect(error).toMatchObject({ code });
    expect((error as Error).message).toMatch(words);
    expect((await plan.entries()).length).toBe(before);
    expect(readdirSync(join(plan.ledger, 'work')).filter((name) => name.startsWith('regrading-'))).toEqual(
      [],
    );
  });

  it.each(['0', '1001', 'x', '1.5'])('--concurrency %s is refused', async (concurrency) => {
    expect(await refused(plan, { concurrency })).toMatchObject({ code: 'USAGE' });
  });

  it('holds its reports to a schema of its own, which the ledger keeps', async () => {
    put(plan.root, 'strict.json', '{"type":"object","required":["reward","why"]}');
    put(plan.root, 'fixed.yaml', graderText(logOf(plan), { more: 'report_schema: strict.json\n' }));
    await again(plan);
    expect(await plan.of('regrading.closed')).toMatchObject([{ failed: 1 }]);
    const [opened] = await plan.of('regrading.opened');
    const book = await openBook(plan.root, plan.stored, 'read');
    expect(book.store.getObject(opened?.command?.schema ?? 'sha256:').toString()).toMatch(/why/);
    book.close();
    expect(await plan.findings()).toEqual([]);
  });
});
