import { expect, test } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { ClockCheck } from '../../src/audit/clock.js';
import { openOrCreateBook } from '../../src/ledger/book.js';
import { newWorkspace, SlotScript, slotAt, testClock } from '../ledger/support.js';
import { trial } from '../runner/fixture.js';

const HOUR = 3_600_000;

/** A real clock that an hour is taken from after so many readings. */
function setBack(readings: number): () => string {
  let count = 0;
  return () => new Date(Date.now() + (count++ < readings ? 2 * HOUR : HOUR)).toISOString();
}

test('a clock that jumps back in mid-run: times stand still, nothing is refused, and the audit tells of it', async () => {
  const prompts = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`t${i}`, `later ${i}`]));
  const plan = await trial({ prompts });
  await plan.run({ workers: 2, now: setBack(12) });
  const entries = await plan.entries();
  const times = entries.map(({ time }) => time);
  expect([...times].sort()).toEqual(times);
  expect(times.filter((time) => time === times.at(-1)).length).toBeGreaterThan(8);
  const result = await audit(plan.root, undefined);
  expect(result.findings).toEqual([]);
  expect(result.remarks.join('\n')).toMatch(
    /a clock was set back: \d+ attempts took longer than the times of the entries say, by up to 0\.[2-9]\d s \(entries \d+ to \d+\)/,
  );
  // The next session says so at once, and is as lawful.
  const more = await trial({ prompts: { ...prompts } });
  await more.run({ workers: 2, limit: 3, now: () => new Date(Date.now() + HOUR).toISOString() });
  await more.run({ workers: 2 });
  expect(more.lines.join('\n')).toMatch(/the clock is 3[56]\d\d s behind the ledger's last entry/);
  expect(await more.findings()).toEqual([]);
});

test('a clock that runs on evenly gives no remark', async () => {
  const plan = await trial({ prompts: { a: 'later a', b: 'slow b', c: 'right c', d: 'busy-twice d' } });
  await plan.run({ workers: 2 });
  expect((await audit(plan.root, undefined)).remarks.join()).not.toMatch(/clock/);
  expect(plan.lines.join()).not.toMatch(/clock/);
});

test('stages of one attempt are added up, and a recovery begins anew', () => {
  const check = new ClockCheck();
  const clock = testClock(500);
  const take = (script: SlotScript) => {
    for (const [seq, draft] of script.drafts.entries())
      check.take({ ...draft, seq, prev: null, time: clock() });
  };
  // One and a half seconds from start to end: 1.25 s and 0.25 s fit.
  take(new SlotScript(slotAt(0)).start().generated(5, 1.25).graded(1).finished('report'));
  expect(check.remarks()).toEqual([]);
  // 2 s do not.
  take(new SlotScript(slotAt(1)).start().generated(5, 2).graded(1).finished('report'));
  expect(check.remarks()).toEqual([
    'a clock was set back: 1 attempt took longer than the times of the entries say, by up to 0.75 s (entries 3 to 3); seconds of sessions and services are too few there',
  ]);
});

test('a ledger is not begun by a clock that lies before its plan', async () => {
  const { root, stored, files } = await newWorkspace();
  await expect(openOrCreateBook(root, stored, files, () => '2026-11-29T23:59:59.999Z')).rejects.toMatchObject(
    {
      code: 'GATE_REFUSED',
      exitCode: 3,
      message: expect.stringMatching(/the clock says 2026-11-29T23:59:59\.999Z, before tiny\.r1/),
      hint: expect.stringMatching(/clock/),
    },
  );
  (await openOrCreateBook(root, stored, files, () => '2026-11-30T00:00:00.000Z')).close();
});
