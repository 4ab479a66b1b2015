import { afterEach, beforeEach, expect, test } from 'vitest';
import { command as note } from '../../src/commands/note.js';
import { command as status } from '../../src/commands/status.js';
import { invoke } from '../amend/support.js';
import { put, type Trial, trial } from './fixture.js';

const before = process.env.SLURM_JOB_ID;
beforeEach(() => {
  process.env.SLURM_JOB_ID = '4711';
});
afterEach(() => {
  if (before === undefined) delete process.env.SLURM_JOB_ID;
  else process.env.SLURM_JOB_ID = before;
});

const SACCT = 'JobIDRaw|ElapsedRaw|AllocTRES\n4711|7200|cpu=8,gres/gpu=4,node=1\n4712|5|cpu=1\n';

async function alone(): Promise<Trial> {
  const plan = await trial({ prompts: { a: 'patient a' } });
  await plan.run({ heartbeatSeconds: 1 });
  return plan;
}

test('a silent session gives signs of life, and its Slurm account is taken up, once', async () => {
  const plan = await alone();
  const [gate] = await plan.of('gate.passed');
  expect(gate).toMatchObject({ heartbeat_s: 1, host: { slurm_job: '4711' } });
  const alive = await plan.of('session.alive');
  expect(alive.length).toBeGreaterThanOrEqual(1);
  expect(new Set(alive.map(({ session }) => session))).toEqual(new Set([gate?.session]));

  put(plan.root, 'sacct.txt', SACCT);
  const first = await invoke(note, plan.root, [], { slurmAccount: 'sacct.txt' });
  expect(first.json).toMatchObject({
    entries: [{ type: 'account.recorded', job: '4711', seconds: 7200, gpus: 4 }],
  });
  expect(first.text).toMatch(/Slurm job 4711, 7200 s with 4 GPUs/);
  expect((await invoke(note, plan.root, [], { slurmAccount: 'sacct.txt' })).json).toMatchObject({
    entries: [],
  });
  expect((await invoke(status, plan.root, [], {})).text).toMatch(/8\.000 GPU hours allocated/);
  expect(await plan.findings()).toEqual([]);
});

test('an account of other jobs, in another form, or beside a deviation is refused', async () => {
  const plan = await alone();
  const refused = async (content: string, options = {}) => {
    put(plan.root, 'sacct.txt', content);
    return invoke(note, plan.root, [], { slurmAccount: 'sacct.txt', ...options }).then(
      () => null,
      (error: unknown) => error,
    );
  };
  expect(await refused(SACCT.replace('4711', '4710'))).toMatchObject({
    code: 'ACCOUNT_INVALID',
    hint: 'Sessions ran in 4711.',
  });
  expect(await refused('JobID|Elapsed\n4711|02:00:00\n')).toMatchObject({
    code: 'ACCOUNT_INVALID',
    hint: expect.stringContaining('--format=JobIDRaw,ElapsedRaw,AllocTRES') as string,
  });
  expect(await refused(SACCT, { text: 'x' })).toMatchObject({ code: 'USAGE' });
  expect(await plan.of('account.recorded')).toEqual([]);
});
