import { expect, test } from 'vitest';
import { openBook } from '../../src/ledger/book.js';
import { buildReport } from '../../src/report/build.js';
import { bookInput } from '../../src/report/input.js';
import { renderReport } from '../../src/report/render.js';
import { trial } from './fixture.js';
import { settled, story } from './story.js';

test('a generation that loops is ended by the declared rule, graded as it is, and shown in the report', async () => {
  const plan = await trial({
    prompts: { a: 'looping', b: 'right' },
    stream: true,
    limits: 'request_s: 60, queue_wait_s: 3, response_bytes: 1000000',
    loopStop: '{ unit: words, length: 3, repeats: 5, window: 100 }',
  });
  await plan.run({ workers: 2 });
  expect(await story(plan, 'a')).toEqual(settled(0));
  expect(await story(plan, 'b')).toEqual(settled(1));
  const started = (await plan.of('attempt.started')).find(({ key }) => key.task === 'a');
  const stage = (await plan.of('stage.finished')).find(({ attempt }) => attempt === started?.attempt);
  expect(stage).toMatchObject({ finish_reason: 'loop_stop', usage: null });
  const book = await openBook(plan.root, plan.stored, 'read');
  const candidate = stage?.result.kind === 'candidate' ? stage.result.candidate : 'sha256:';
  // The fifth time that three words stand there, they are complete
  expect(book.store.getObject(candidate).toString()).toBe('so it is '.repeat(5));
  const kept = book.store.getObject(stage?.objects.response ?? 'sha256:').toString();
  expect(kept.split('\n\n').filter((event) => event !== '')).toHaveLength(5);
  expect(kept).toMatch(/\n\n$/);
  const input = bookInput(book);
  // law 8
  expect(buildReport(input).truncation).toBeNull();
  const report = buildReport({ ...input, unblinded: { partial: false } });
  expect(report.truncation).toEqual([{ arm: 'M', known: 2, truncated: 0, unknown: 0, looped: 1 }]);
  expect(renderReport(report, 'text')).toMatch(/at limit.*looped.*\n.*\n.*50\.0/);
  book.close();
  expect(await plan.findings()).toEqual([]);
});
