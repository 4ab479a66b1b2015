import { expect, test } from 'vitest';
import { failureSignals } from '../../src/attempts/signals.js';
import { digestOf } from '../../src/core/digest.js';
import { openBook } from '../../src/ledger/book.js';
import type { AttributionRule } from '../../src/protocol/schema/attempts.js';
import { NOTHING_MORE } from '../../src/runner/adapters/adapter.js';
import { readStageRecord, writeStageRecord } from '../../src/runner/adapters/stage-record.js';
import { judged } from '../../src/runner/cut-candidate.js';
import { generateRecord } from '../../src/runner/drafts.js';
import { COMMAND_PLAN } from './command-plan.js';
import { temporaryFolder, trial } from './fixture.js';
import { settled, story } from './story.js';

/** A candidate that a command left which did not end by itself with exit status 0 (P13, P14). */

const RULES = `[
  { id: killed, when: { signal: SIGKILL }, attribute: infrastructure, sufficient: true },
  { id: hint, when: { exit_status: 3 }, attribute: infrastructure, sufficient: false },
  { id: slow, when: { cause: time_limit }, attribute: model, sufficient: true } ]`;

test('is none where the rules call what cut it infrastructure: one replacement, and what lay there is kept', async () => {
  const attempts = `{ replacements: 1, regrades: 1, breaker: 50, rules: ${RULES} }`;
  const prompts = { a: 'killed-with zero', b: 'fails-with one', c: 'hangs-with one', d: 'good one' };
  const plan = await trial({
    ...COMMAND_PLAN,
    runner: COMMAND_PLAN.runner.replace('wall_s: 5', 'wall_s: 4'),
    attempts,
    prompts,
  });
  expect((await plan.run()).reason).toBe('finished');
  const killed = (kind: string) => [
    `started ${kind}`,
    'generate failure running killed_by_signal SIGKILL',
    'infrastructure by killed',
    'finished failure',
  ];
  expect(await story(plan, 'a')).toEqual([
    ...killed('first'),
    ...killed('replacement'),
    'unresolved limit_reached',
  ]);
  // Insufficient, model: it goes on to grading as ever.
  for (const task of ['b', 'c', 'd']) expect(await story(plan, task), task).toEqual(settled(1));
  expect(await plan.findings()).toEqual([]);
  const stages = await plan.of('stage.finished');
  const kept = stages.flatMap(({ objects }) => objects.unfinished_candidate ?? []);
  expect(kept).toEqual([digestOf('half an ans'), digestOf('half an ans')]);
  const book = await openBook(plan.root, plan.stored, 'read');
  expect(book.store.getObject(kept[0] ?? 'sha256:').toString()).toBe('half an ans');
  book.close();
});

test('is judged anew when the host was started before the ledger had it', async () => {
  const [attempt, slot] = ['a'.repeat(32), 'b'.repeat(32)];
  const cut = failureSignals({
    stage: 'generate',
    phase: 'running',
    cause: 'killed_by_signal',
    signal: 'SIGTERM',
  });
  const bytes = Buffer.from('half');
  const end = { kind: 'candidate', bytes, cut, ...NOTHING_MORE, seconds: 1 } as const;
  const when = { cause: 'killed_by_signal', host_event: 'boot_changed' } as const;
  const rules: AttributionRule[] = [{ id: 'shut-down', when, attribute: 'infrastructure', sufficient: true }];
  const record = generateRecord({ attempt, slot }, end);
  expect(judged(record, rules)).toBe(record);
  const folder = temporaryFolder();
  await writeStageRecord(folder, record);
  const found = await readStageRecord(folder, 'generate', attempt);
  expect(found).toEqual(record);
  const after = judged({ ...record, cut: { ...cut, host_event: 'boot_changed' } }, rules);
  expect(after.draft).toMatchObject({
    result: { kind: 'failure', signals: { signal: 'SIGTERM', host_event: 'boot_changed' } },
    objects: { unfinished_candidate: digestOf(bytes) },
  });
  expect(after.objects).toEqual(record.objects);
});
