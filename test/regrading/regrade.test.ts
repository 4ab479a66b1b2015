import { beforeAll, describe, expect, it } from 'vitest';
import { command as regrade } from '../../src/commands/regrade.js';
import { command as show } from '../../src/commands/show.js';
import { command as unblind } from '../../src/commands/unblind.js';
import { openBook } from '../../src/ledger/book.js';
import { buildReport } from '../../src/report/build.js';
import { bookInput } from '../../src/report/input.js';
import { renderReport } from '../../src/report/render.js';
import { invoke } from '../amend/support.js';
import { put, type Trial, trial } from '../runner/fixture.js';

const BOXED = 'kind: boxed\nanswer: answer\ncompare: integer\n';
const REASON = 'boxed answers were taken for text';

/** `boxed` answers \boxed{7}, `right` 7, `length` was cut by the token limit, `broken` never settles. */
async function ran(): Promise<Trial> {
  const plan = await trial({ prompts: { a: 'boxed a', b: 'right b', c: 'length c', d: 'aborted d' } });
  await plan.run();
  put(plan.root, 'boxed.yaml', BOXED);
  return plan;
}

async function reportOf(plan: Trial) {
  const book = await openBook(plan.root, plan.stored, 'read');
  try {
    return buildReport(bookInput(book));
  } finally {
    book.close();
  }
}

const refused = async (plan: Trial, options: Record<string, string | string[]>): Promise<unknown> =>
  invoke(regrade, plan.root, [], { grader: 'boxed.yaml', reason: REASON, ...options }).then(
    () => null,
    (error: unknown) => error,
  );

describe('regrade --grader', () => {
  let plan: Trial;
  beforeAll(async () => {
    plan = await ran();
  });

  it('masks what it changed while outcomes are blinded', async () => {
    const { json, text } = await invoke(regrade, plan.root, [], { grader: 'boxed.yaml', reason: REASON });
    expect(json).toMatchObject({ outputs: null, changed: null, truncated: null });
    expect(text).toMatch(/all outputs/);
    expect(text).toMatch(/masked until unblind/);
    const [closed] = await plan.of('regrading.closed');
    const shown = await invoke(show, plan.root, [String(closed?.seq)], {});
    expect(JSON.stringify(shown.json)).toMatch(/"changed":"\(masked until unblinding\)"/);
    const report = await reportOf(plan);
    expect(report.regradings).toMatchObject([
      { outputs: null, changed: null, truncated: null, same: null, closed: true },
    ]);
    expect(renderReport(report, 'text')).toMatch(/What it changed is masked/);
  });

  it('keeps the old grades, and lists every change and every output too truncated', async () => {
    const before = await plan.of('slot.settled');
    await invoke(unblind, plan.root, [], { partial: true });
    const report = await reportOf(plan);
    const key = { queue: 'main', arm: 'M', training_seed: 42, evaluation_seed: 0, rep: 0 };
    expect(report.regradings).toMatchObject([
      {
        reason: REASON,
        conditions: ['default'],
        after_unblinding: false,
        same: 0,
        changed: [
          { ...key, task: 'b', before: 1, after: 0 },
          { ...key, task: 'a', before: 0, after: 1 },
        ],
        truncated: [{ ...key, task: 'c' }],
      },
    ]);
    const text = renderReport(report, 'text');
    expect(text).toMatch(
      /2 grades changed, 1 of them upwards; 0 stayed as they were; 1 output too\s+truncated/,
    );
    expect(await plan.of('slot.settled')).toEqual(before);
    expect(await plan.findings()).toEqual([]);
  });

  it.each([
    [{ grader: 'nowhere.yaml' }, 'FILE_NOT_FOUND'],
    [{ reason: ' ' }, 'USAGE'],
    [{ condition: ['other'] }, 'REGRADE_REFUSED'],
  ])('refuses %j', async (options, code) => {
    expect(await refused(plan, options)).toMatchObject({ code });
  });

  it.each([
    ['kind: boxed\nanswer: answer\n', /compare/],
    ['kind: boxed\nanswer: answer\ncompare: integer\nfold: true\n', /fold/],
    ['a: [', /holds no grader/],
    ['kind: boxed\nkind: exact\nanswer: a\n', /holds no grader/],
    ['', /holds no grader/],
  ])('refuses the file %j', async (content, words) => {
    put(plan.root, 'bad.yaml', content);
    const error = await refused(plan, { grader: 'bad.yaml' });
    expect(error).toMatchObject({ code: content === '' ? 'FILE_EMPTY' : 'GRADER_INVALID' });
    if (content !== '') expect((error as Error).message).toMatch(words);
  });

  it('refuses a reference that the grader cannot use, and writes nothing', async () => {
    put(plan.root, 'other.yaml', 'kind: exact\nanswer: question\n');
    const before = (await plan.entries()).length;
    expect(await refused(plan, { grader: 'other.yaml' })).toMatchObject({ code: 'TASKS_INVALID' });
    expect((await plan.entries()).length).toBe(before);
  });
});

it('goes on where a killed one stopped, and lets no other grader between', async () => {
  const plan = await ran();
  const book = await openBook(plan.root, plan.stored.file, 'write', () => new Date().toISOString());
  const { regradableSlots } = await import('../../src/ledger/regradings.js');
  const { slotsDigest } = await import('../../src/slots/selector.js');
  const { toObject } = await import('../../src/ledger/objects.js');
  const { canonicalBytes } = await import('../../src/core/canonical-json.js');
  const grader = toObject(canonicalBytes({ kind: 'boxed', answer: 'answer', compare: 'integer' }));
  const slots = slotsDigest(regradableSlots(book.fold.slots, ['default'], book.context.protocol));
  const opened = {
    regrading: 'a'.repeat(32),
    grader: grader.digest,
    conditions: ['default'],
    reason: REASON,
    slots,
  };
  book.store.append([{ type: 'regrading.opened', ...opened }], [grader]);
  book.close();
  put(plan.root, 'exact.yaml', 'kind: exact\nanswer: answer\n');
  expect(await refused(plan, { grader: 'exact.yaml' })).toMatchObject({ code: 'REGRADE_REFUSED' });
  await invoke(regrade, plan.root, [], { grader: 'boxed.yaml', reason: 'again' });
  expect(await plan.of('regrading.opened')).toHaveLength(1);
  expect(await plan.of('regrading.closed')).toMatchObject([
    { regrading: 'a'.repeat(32), changed: 2, truncated: 1 },
  ]);
  expect(await plan.findings()).toEqual([]);
});
