import { beforeAll, expect, it } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { command as note } from '../../src/commands/note.js';
import { openBook } from '../../src/ledger/book.js';
import type { StoredManifest } from '../../src/manifest/workspace.js';
import { buildReport } from '../../src/report/build.js';
import { bookInput } from '../../src/report/input.js';
import { renderReport } from '../../src/report/render.js';
import { Insider } from '../audit/insider.js';
import { type PlanSetting, type Trial, trial } from '../runner/fixture.js';
import { amend, invoke } from './support.js';

const SETTING: PlanSetting = { prompts: { a: 'right a', b: 'wrong b' }, seeds: [42, 7, 5] };

let plan: Trial;
let third: StoredManifest;

/** Notes of revision 1 on slots that stay, on slots that are given up, and the first one twice. */
beforeAll(async () => {
  plan = await trial(SETTING);
  await plan.run({ limit: 2 });
  const noted = (text: string, ...slots: string[]) => invoke(note, plan.root, [], { text, slots });
  await noted('loop stopping on', 'training_seed=42,5');
  await noted('the rack lost power', 'all');
  await noted('only the last seed', 'training_seed=5');
  await noted('loop stopping on', 'training_seed=42,5');
  await amend(plan, SETTING, { seeds: [42, 7] });
  await plan.run({ limit: 1 });
  third = (await amend(plan, SETTING, { seeds: [42], revision: 3 })).stored;
  await plan.run();
});

async function report(stored: StoredManifest) {
  const book = await openBook(plan.root, stored, 'read');
  try {
    return buildReport(bookInput(book));
  } finally {
    book.close();
  }
}

it('a deviation outlives amendments: the plan in force notes it again, once, for its own slots (B9)', async () => {
  const made = await report(third);
  expect(made.noted.map(({ text, selector, slots }) => ({ text, selector, slots }))).toEqual([
    { text: 'loop stopping on', selector: { training_seed: ['42', '5'] }, slots: 2 },
    { text: 'the rack lost power', selector: {}, slots: 2 },
  ]);
  expect(renderReport(made, 'text')).toContain('loop stopping on');
  const { findings, remarks } = await audit(plan.root, third.file);
  expect(findings).toEqual([]);
  expect(remarks.join('\n')).toContain('loop stopping on');
});

it('the audit finds a deviation that an amendment washed out', async () => {
  const copy = new Insider({ ...plan, stored: third });
  copy.remove(({ type, text }) => type === 'deviation.noted' && text === 'loop stopping on');
  copy.rechain();
  const { findings } = await audit(copy.root, third.file);
  expect(findings.map(({ code }) => code)).toContain('DEVIATION_OMITTED');
});

it('nothing is noted under a plan that was superseded: it would reach no report', async () => {
  await expect(
    invoke(note, plan.root, [plan.stored.file], { text: 'late', slots: ['all'] }),
  ).rejects.toMatchObject({ code: 'PLAN_SUPERSEDED', exitCode: 3 });
});
