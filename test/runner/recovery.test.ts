import { expect, test } from 'vitest';
import { failureSignals } from '../../src/attempts/signals.js';
import { attemptId } from '../../src/attempts/slot-state.js';
import { openBook } from '../../src/ledger/book.js';
import type { DraftOf } from '../../src/ledger/entries/entry.js';
import type { Adapter } from '../../src/runner/adapters/adapter.js';
import { Journal } from '../../src/runner/journal.js';
import { jobOf } from '../../src/runner/plan-queue.js';
import type { ProcessIdentity } from '../../src/runner/process-identity.js';
import { recoverAttempts } from '../../src/runner/recovery.js';
import { expandSlots } from '../../src/slots/plan.js';
import { COMMAND_PLAN } from './command-plan.js';
import { trial } from './fixture.js';
import { story } from './story.js';

const [FIRST, SECOND] = ['1'.repeat(32), '2'.repeat(32)];

/** A plan whose first session died with an attempt that had failed durably; the second session finds it. */
async function recovered(before: ProcessIdentity, own: ProcessIdentity) {
  const rules = `[
    { id: shut-down, when: { cause: killed_by_signal, host_event: boot_changed }, attribute: infrastructure, sufficient: true } ]`;
  const attempts = `{ replacements: 1, regrades: 1, breaker: 50, rules: ${rules} }`;
  const plan = await trial({ ...COMMAND_PLAN, attempts, prompts: { a: 'good one' } });
  await plan.run({ limit: 0 });
  const book = await openBook(plan.root, plan.stored, 'write', () => new Date().toISOString());
  const { protocol, taskIds } = book.context;
  const [slot] = [...expandSlots(protocol, taskIds)];
  const job = slot === undefined ? null : jobOf(protocol, book.tasks.tasks, slot);
  if (job === null) throw new Error('no slot');
  const { queue, arm, trainingSeed, evaluationSeed, task, rep } = job.work.slot;
  const journal = new Journal(book.store, book.fold);
  const attempt = attemptId(job.rules.slot, 1);
  const passed = (session: string, process: ProcessIdentity): DraftOf<'gate.passed'> => ({
    type: 'gate.passed',
    session,
    manifest: plan.stored.digest,
    files: 1,
    bytes: 1,
    process,
    host: { node: 'host', platform: 'linux', arch: 'x64' },
    selection: {},
  });
  await journal.append([passed(FIRST, before)]);
  await journal.record(job.rules, [
    {
      type: 'attempt.started',
      session: FIRST,
      attempt,
      slot: job.rules.slot,
      key: { queue, arm, training_seed: trainingSeed, evaluation_seed: evaluationSeed, task, rep },
      kind: 'first',
      of: null,
      sampling_seed: job.rules.samplingSeed,
      candidate: null,
      request: null,
    },
  ]);
  await journal.append([passed(SECOND, own)]);
  const signals = failureSignals({
    stage: 'generate',
    phase: 'running',
    cause: 'killed_by_signal',
    signal: 'SIGTERM',
  });
  const calls: string[] = [];
  const adapter = {
    endLeftovers: async (left: { attempt: string }) => {
      calls.push(`end ${left.attempt}`);
    },
    recover: async () => {
      calls.push('recover');
      const draft: DraftOf<'stage.finished'> = {
        type: 'stage.finished',
        attempt,
        slot: job.rules.slot,
        stage: 'generate',
        result: { kind: 'failure', signals },
        objects: {},
        usage: null,
        finish_reason: 'SIGTERM',
        seconds: 1,
        queue_seconds: 0,
      };
      return { draft, objects: [] };
    },
  } as unknown as Adapter;
  const tasks = book.tasks.tasks;
  const setting = { journal, adapter, protocol, tasks, session: SECOND, own, active: new Set<string>() };
  await recoverAttempts(setting);
  book.close();
  expect(calls).toEqual([`end ${attempt}`, 'recover']);
  return plan;
}

const BEFORE = { boot_id: 'boot-1', pid: 2 ** 22, started: '1' };

test('a failure that was durable before the host started anew carries that event, and rules may ask for it', async () => {
  const plan = await recovered(BEFORE, { ...BEFORE, boot_id: 'boot-2' });
  expect(await story(plan, 'a')).toEqual([
    'started first',
    'recovered end boot_changed',
    'generate failure running killed_by_signal SIGTERM',
    'infrastructure by shut-down',
    'finished failure',
  ]);
  const [stage] = await plan.of('stage.finished');
  expect(stage?.result).toMatchObject({ signals: { host_event: 'boot_changed' } });
});

test('a process that died alone is no event of the host', async () => {
  const plan = await recovered(BEFORE, { ...BEFORE, pid: 7 });
  expect((await story(plan, 'a')).slice(1, 4)).toEqual([
    'recovered end process_gone',
    'generate failure running killed_by_signal SIGTERM',
    'undetermined by null',
  ]);
  const [stage] = await plan.of('stage.finished');
  expect(stage?.result.kind === 'failure' && 'host_event' in stage.result.signals).toBe(false);
});
