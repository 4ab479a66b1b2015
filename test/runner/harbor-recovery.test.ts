import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { digestOf } from '../../src/core/digest.js';
import { ObjectFolder } from '../../src/ledger/objects.js';
import type { HarborRunner } from '../../src/protocol/schema/harbor-runner.js';
import { resolveTaskSets } from '../../src/protocol/tasks.js';
import { HarborAdapter } from '../../src/runner/adapters/harbor.js';
import { trialName } from '../../src/runner/adapters/harbor-config.js';
import { jobOf } from '../../src/runner/plan-queue.js';
import { type Trial, trial } from './fixture.js';
import { harborPlan } from './harbor-plan.js';

/** The adapter as a session makes it, over the ledger of a plan that was run. */
function adapterOf({ stored, root, ledger }: Trial): HarborAdapter {
  return new HarborAdapter({
    runner: stored.manifest.protocol.runner as HarborRunner,
    manifest: stored.digest,
    sources: new Map([['harbor', join(root, 'harbor')]]),
    sourceFolder: (name) => join(root, name),
    modelPaths: () => ({ weights: 'weights', tokenizer: null }),
    workFolder: join(ledger, 'work'),
    objects: new ObjectFolder(ledger),
    markPrefix: 'test',
    watchdog: null,
  });
}

test('of a lost attempt that very trial counts when it wrote its result to the end, and nothing else does', async () => {
  const plan = await trial(harborPlan(['pass', 'hidden', 'agent-crash']));
  const { run, of, ledger, stored, root } = plan;
  await run();
  const { protocol } = stored.manifest;
  const { tasks } = resolveTaskSets(
    protocol,
    new Map([['tasks/all', readFileSync(join(root, 'tasks/all.jsonl'))]]),
  );
  const adapter = adapterOf(plan);
  const started = await of('attempt.started');
  const lost = (task: string) => {
    const entry = started.find(({ key }) => key.task === task);
    if (entry === undefined) throw new Error(task);
    const { queue, arm, training_seed, evaluation_seed, rep } = entry.key;
    const slot = {
      id: entry.slot,
      queue,
      arm,
      trainingSeed: training_seed,
      evaluationSeed: evaluation_seed,
      task,
      rep,
    };
    const job = jobOf(protocol, tasks, slot);
    if (job === null) throw new Error(task);
    const home = join(ledger, 'work', entry.attempt);
    const result = join(home, 'trial', trialName(stored.digest, entry.attempt, null), 'result.json');
    // The marks that a session leaves: this one was killed before it could.
    for (const stage of ['generate', 'grade']) rmSync(join(home, `${stage}.ended`), { force: true });
    return { attempt: entry.attempt, work: job.work, result, takenOver: null };
  };

  const pass = lost('pass');
  const candidate = digestOf('patch of pass\n');
  const generated = await adapter.recover('generate', { ...pass, candidate: null });
  expect(generated?.draft.result).toEqual({ kind: 'candidate', candidate });
  const graded = await adapter.recover('grade', { ...pass, candidate });
  expect(graded?.draft.result).toMatchObject({ kind: 'report', candidate, value: 1 });
  // A candidate that this trial did not make has lost its verdict: infrastructure, and the same patch once more.
  const other = await adapter.recover('grade', { ...pass, candidate: digestOf('another') });
  expect(other?.draft.result).toMatchObject({
    kind: 'failure',
    signals: { phase: 'between', cause: 'process_gone' },
  });

  // What a lost trial failed in is what it failed in: a crash of the runner is no second try.
  const crashed = await adapter.recover('generate', { ...lost('agent-crash'), candidate: null });
  expect(crashed?.draft.result).toMatchObject({
    signals: { phase: 'agent_execution', exception: 'RuntimeError' },
  });
  const hidden = await adapter.recover('grade', {
    ...lost('hidden'),
    candidate: digestOf('patch of hidden\n'),
  });
  expect(hidden?.draft.result).toMatchObject({ signals: { phase: 'verifier', cause: 'trial_exception' } });

  const whole = readFileSync(pass.result, 'utf8');
  for (const text of [whole.slice(0, -5), whole.replaceAll(pass.attempt, lost('hidden').attempt), '']) {
    writeFileSync(pass.result, text);
    expect(await adapter.recover('generate', { ...pass, candidate: null })).toBeNull();
    expect(await adapter.recover('grade', { ...pass, candidate })).toBeNull();
  }
}, 30_000);

test('leftovers of a lost attempt are ended by the name of its last trial, and a stop that fails does no harm', async () => {
  const plan = await trial(harborPlan(['pass'], { stop: 'noted' }));
  await plan.run();
  const stopped = () => readFileSync(join(plan.root, 'stopped.log'), 'utf8').trimEnd().split('\n');
  const [{ attempt } = { attempt: '' }] = await plan.of('attempt.started');
  const name = trialName(plan.stored.digest, attempt, null);
  expect(stopped()).toEqual([name]);
  const adapter = adapterOf(plan);
  await adapter.endLeftovers({ attempt, takenOver: null });
  await adapter.endLeftovers({ attempt, takenOver: 'fedcba9876543210fedcba9876543210' });
  expect(stopped()).toEqual([name, name, `${name}-fedcba98`]);
  rmSync(join(plan.root, 'harbor/stop.mjs'));
  await adapter.endLeftovers({ attempt, takenOver: null });
  expect(stopped()).toHaveLength(3);
  // Without a stop command there is nothing to run.
  const silent = await trial(harborPlan(['pass']));
  await silent.run({ limit: 0 });
  await adapterOf(silent).endLeftovers({ attempt, takenOver: null });
  expect(existsSync(join(silent.root, 'stopped.log'))).toBe(false);
}, 30_000);
