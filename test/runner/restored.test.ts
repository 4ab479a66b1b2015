import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { command as run } from '../../src/commands/run.js';
import { command as status } from '../../src/commands/status.js';
import { anchorPath } from '../../src/ledger/anchor.js';
import { openBook } from '../../src/ledger/book.js';
import { writeCheckpoint } from '../../src/ledger/checkpoints.js';
import { readOutsideState } from '../../src/ledger/outside-state.js';
import type { RestoreRequest } from '../../src/ledger/restore.js';
import { buildReport } from '../../src/report/build.js';
import { bookInput } from '../../src/report/input.js';
import { generateKey } from '../../src/signing/keys.js';
import { COMMAND_PLAN } from './command-plan.js';
import { type PlanSetting, type Trial, temporaryFolder, trial } from './fixture.js';

const now = () => new Date().toISOString();
const right = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`t${i}`, `right ${i}`]));

/** A folder beside it that holds what the ledger is now. */
function copyOf(plan: Trial): string {
  const copy = join(temporaryFolder(), 'copy');
  cpSync(plan.ledger, copy, { recursive: true });
  return copy;
}

/** Puts the database of a copy back; everything else stays as it is. */
function putBack(plan: Trial, copy: string): void {
  for (const name of ['ledger.sqlite', 'ledger.sqlite-wal', 'ledger.sqlite-shm']) {
    rmSync(join(plan.ledger, name), { force: true });
    if (existsSync(join(copy, name))) cpSync(join(copy, name), join(plan.ledger, name));
  }
}

/** A plan of which three slots are in the copy and three more were lost with what came after it. */
async function shortened(
  setting: Partial<PlanSetting> = {},
): Promise<{ plan: Trial; before: number; after: number }> {
  const plan = await trial({ prompts: right(8), ...setting });
  await plan.run({ limit: 3 });
  const before = (await plan.entries()).length;
  const copy = copyOf(plan);
  await plan.run({ limit: 3 });
  const after = (await plan.entries()).length;
  putBack(plan, copy);
  return { plan, before, after };
}

async function request(file: string, reason = 'the disk died'): Promise<RestoreRequest> {
  return { file, outside: await readOutsideState(file), reason };
}

/** A note over what the ledger holds now. */
async function note(plan: Trial): Promise<string> {
  const book = await openBook(plan.root, plan.stored, 'write', now);
  try {
    const { file } = await writeCheckpoint(book, { key: generateKey('example.org/k'), tokens: [] });
    const kept = join(temporaryFolder(), 'kept.note');
    cpSync(file ?? '', kept);
    return kept;
  } finally {
    book.close();
  }
}

const context = (root: string) => ({
  root,
  json: false,
  terminal: false,
  progress: () => undefined,
  signal: new AbortController().signal,
  force: new AbortController().signal,
  now,
});

test('an older copy is refused with exit 4 by everything that opens it, and says how to go on', async () => {
  const { plan, before, after } = await shortened();
  const refusal = {
    code: 'LEDGER_DAMAGED',
    exitCode: 4,
    message: expect.stringMatching(`has ${before} entries, but had ${after} at .*: its end is missing`),
    hint: expect.stringMatching(/run --restored FILE --reason TEXT/),
  };
  await expect(plan.run()).rejects.toMatchObject(refusal);
  await expect(status.run([], {}, context(plan.root))).rejects.toMatchObject(refusal);
  const found = (await audit(plan.root, undefined)).findings.map(({ code }) => code);
  expect(found).toContain('LEDGER_SHORTENED');
});

test('run --restored goes on with it as another incarnation; status, report and audit say what was lost', async () => {
  const { plan, before, after } = await shortened();
  const requests = plan.requests().length;
  await plan.run({ restore: await request(anchorPath(plan.ledger)) });
  expect(plan.lines.join('\n')).toContain(`incarnation 2: ${after - before} of ${after} entries`);
  const [first, second] = await plan.of('ledger.opened');
  expect(second).toMatchObject({
    seq: before,
    ledger: first?.ledger,
    incarnation: 2,
    restored: { size: after, root: null, note: null, reason: 'the disk died' },
  });
  // Five slots were not settled in the copy: two were new, three are second draws.
  expect(plan.requests().length - requests).toBe(5);
  expect((await plan.of('slot.settled')).length).toBe(8);

  const audited = await audit(plan.root, undefined);
  expect(audited.findings).toEqual([]);
  expect(audited.remarks.join('\n')).toContain(
    `incarnation 2 begins with entry ${before}: an older copy was put back (the disk died); of ${after} entries that were known outside, the last ${after - before} are lost`,
  );
  const book = await openBook(plan.root, plan.stored, 'read');
  const report = buildReport(bookInput(book));
  book.close();
  expect(report.notes.join('\n')).toContain(
    `An older copy of the ledger was put back (the disk died): of ${after} entries that were known, the last ${after - before} are lost. Incarnation 2`,
  );
  expect(report.deviations).toContainEqual({
    what: 'ledger entries lost when an older copy was put back',
    count: after - before,
  });
  const shown = await status.run([], {}, context(plan.root));
  expect(shown.text.replace(/\s+/g, ' ')).toMatch(
    new RegExp(`restored +incarnation 2 from entry ${before} at .*${after - before} of ${after}`),
  );
  expect(shown.json).toMatchObject({
    ledger: { incarnation: 2, restorations: [{ known: after, seq: before }] },
  });
  // The head follows the new incarnation: nothing needs to be said again, and the former state is refused.
  const size = (await plan.entries()).length;
  expect(JSON.parse(readFileSync(anchorPath(plan.ledger), 'utf8'))).toMatchObject({ size });
  await plan.run();
  expect(await plan.of('ledger.opened')).toHaveLength(2);
  const origin = (await readOutsideState(await note(plan))).identity;
  expect(origin).toEqual({ ledger: first?.ledger, incarnation: 2 });
  expect(await plan.findings()).toEqual([]);
});

test('a checkpoint note is quoted as it is; repeating the command does no more', async () => {
  const plan = await trial({ prompts: right(6) });
  await plan.run({ limit: 2 });
  const copy = copyOf(plan);
  await plan.run({ limit: 2 });
  const file = await note(plan);
  rmSync(anchorPath(plan.ledger));
  putBack(plan, copy);
  const restore = await request(file);
  await plan.run({ restore, limit: 1 });
  const opened = (await plan.of('ledger.opened')).at(-1);
  expect(opened).toMatchObject({
    incarnation: 2,
    restored: { size: restore.outside.size, leaf: null, note: readFileSync(file, 'utf8') },
  });
  await plan.run({ restore });
  expect(await plan.of('ledger.opened')).toHaveLength(2);
  expect((await plan.of('slot.settled')).length).toBe(6);
  expect(await plan.findings()).toEqual([]);
});

test('killed between the opening and the head: the same command completes it, another is refused', async () => {
  const { plan } = await shortened();
  const anchor = readFileSync(anchorPath(plan.ledger));
  const head = join(temporaryFolder(), 'known.head');
  writeFileSync(head, anchor);
  await plan.run({ restore: await request(head), limit: 1 });
  // As if the head had not been replaced yet.
  writeFileSync(anchorPath(plan.ledger), anchor);
  await expect(plan.run()).rejects.toMatchObject({ code: 'LEDGER_DAMAGED' });
  await plan.run({ restore: await request(head) });
  expect(await plan.of('ledger.opened')).toHaveLength(2);
  expect(await plan.findings()).toEqual([]);
});

test('it is refused where nothing was lost, for another ledger, and where more was known', async () => {
  const { plan, before, after } = await shortened();
  const bytes = () => readFileSync(join(plan.ledger, 'ledger.sqlite'));
  const untouched = bytes();
  const other = await trial({ prompts: { a: 'right a' } });
  await other.run();
  const refused = async (file: string, message: RegExp, code = 'RESTORE_REFUSED') => {
    const anchor = readFileSync(anchorPath(plan.ledger));
    const failed = plan.run({ restore: await request(file) });
    await expect(failed).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    expect(bytes().equals(untouched)).toBe(true);
    expect(readFileSync(anchorPath(plan.ledger)).equals(anchor)).toBe(true);
  };
  await refused(await note(other), /is of the ledger [0-9a-f]{32}, this one is/);
  const lower = join(temporaryFolder(), 'lower.head');
  writeFileSync(lower, JSON.stringify({ size: after - 1, leaf: 'a'.repeat(64), time: now() }));
  await refused(lower, new RegExp(`says ${after - 1} entries, and there were ${after} at`));
  // A head that the copy reaches.
  rmSync(anchorPath(plan.ledger));
  const entries = await plan.entries();
  expect(entries).toHaveLength(before);
  const met = join(temporaryFolder(), 'met.head');
  writeFileSync(met, JSON.stringify({ size: 5, leaf: entries[5]?.prev, time: now() }));
  writeFileSync(anchorPath(plan.ledger), JSON.stringify({ size: 1, leaf: entries[1]?.prev, time: now() }));
  await refused(met, /nothing was lost: the ledger has all of the 5 entries/);
  const rewritten = join(temporaryFolder(), 'rewritten.head');
  writeFileSync(rewritten, JSON.stringify({ size: 5, leaf: 'c'.repeat(64), time: now() }));
  await refused(rewritten, /holds other entries than .* says: it was rewritten/, 'LEDGER_DAMAGED');
  const fresh = await trial({ prompts: { a: 'right a' } });
  await expect(fresh.run({ restore: await request(met) })).rejects.toMatchObject({
    code: 'LEDGER_NOT_FOUND',
  });
  expect(readdirSync(join(fresh.root, 'ledger'))).toEqual([]);
});

test('what work/ holds of lost attempts is moved aside and never adopted', async () => {
  const prompts = Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`t${i}`, `good one ${i}`]));
  const { plan } = await shortened({ ...COMMAND_PLAN, prompts });
  const started = new Set((await lostAttempts(plan)).map(({ attempt }) => attempt));
  const there = readdirSync(join(plan.ledger, 'work'));
  const lost = there.filter((name) => !started.has(name));
  expect(lost).toHaveLength(2);
  await plan.run({ restore: await request(anchorPath(plan.ledger)) });
  expect(readdirSync(join(plan.ledger, 'work/lost.2')).sort()).toEqual(lost.sort());
  expect(readdirSync(join(plan.ledger, 'work')).length).toBe(6);
  const audited = await audit(plan.root, undefined);
  expect(audited.findings).toEqual([]);
  expect(audited.remarks.join('\n')).toContain('work/lost.2 holds what was left by entries that are lost');

  /** Attempts of the copy, whose head is not looked at. */
  async function lostAttempts(plan: Trial) {
    const anchor = readFileSync(anchorPath(plan.ledger));
    rmSync(anchorPath(plan.ledger));
    try {
      return await plan.of('attempt.started');
    } finally {
      writeFileSync(anchorPath(plan.ledger), anchor);
    }
  }
});

test('the flags belong together, and name a file that says a state', async () => {
  const root = temporaryFolder();
  const flags = (options: Record<string, string>) => run.run([], options, context(root));
  await expect(flags({ restored: 'x.head' })).rejects.toMatchObject({ code: 'USAGE', exitCode: 2 });
  await expect(flags({ reason: 'why' })).rejects.toMatchObject({ code: 'USAGE' });
  await expect(flags({ restored: 'x', reason: 'y'.repeat(4001) })).rejects.toMatchObject({ code: 'USAGE' });
  await expect(flags({ restored: 'x.head', reason: 'why' })).rejects.toMatchObject({
    code: 'FILE_NOT_FOUND',
  });
  mkdirSync(join(root, 'd'));
  for (const [text, code] of [
    ['{"size":0}', 'LEDGER_DAMAGED'],
    ['no note', 'NOTE_INVALID'],
    ['example.org/log\n5\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n', 'NOTE_INVALID'],
  ] as const) {
    writeFileSync(join(root, 'x.head'), text);
    await expect(flags({ restored: 'x.head', reason: 'why' })).rejects.toMatchObject({ code, exitCode: 4 });
  }
});
