import { describe, expect, it } from 'vitest';
import { armCosts } from '../../src/ledger/arm-costs.js';
import { NO_EFFORT, NO_PARTS } from '../../src/ledger/costs.js';
import type { DraftOf, EntryDraft } from '../../src/ledger/entries/entry.js';
import { LedgerFold } from '../../src/ledger/fold.js';
import { readSacct } from '../../src/ledger/slurm.js';
import { protocolSchema } from '../../src/protocol/schema/protocol.js';
import {
  CONTEXT,
  foldOf,
  gateDraft,
  openedDraft,
  PROTOCOL_VALUE,
  pausedDraft,
  SESSION,
  SlotScript,
  slotAt,
} from './support.js';

const OBJECT = `sha256:${'a'.repeat(64)}` as const;
const SECOND = '6'.repeat(32);

function service(model: string, seconds: number, gpus: number, session = SESSION): EntryDraft[] {
  const named = { session, service: `${model}#0`, model };
  return [
    { type: 'service.started', ...named, pid: 7, port: 8000, start: 0, effective: null, seconds: 1 },
    { type: 'service.stopped', ...named, reason: 'done', exit_status: 0, signal: null, seconds, gpus },
  ];
}

function gateIn(job: string, session = SESSION): DraftOf<'gate.passed'> {
  const gate = gateDraft(session);
  return { ...gate, host: { ...gate.host, slurm_job: job } };
}

const account = (job: string, seconds: number, gpus: number): EntryDraft => ({
  type: 'account.recorded',
  source: 'slurm',
  job,
  seconds,
  gpus,
  object: OBJECT,
});

/** Folds drafts that bear their own times, in seconds after the first. */
function foldAt(timed: readonly (readonly [second: number, draft: EntryDraft])[]) {
  const fold = new LedgerFold(CONTEXT);
  const violations = timed.flatMap(([second, draft], seq) =>
    fold.apply({
      ...draft,
      seq,
      prev: null,
      time: new Date(Date.UTC(2026, 8, 28) + second * 1000).toISOString(),
    }),
  );
  return { fold, violations };
}

describe('costs by arm (P21)', () => {
  it('gives an arm all that was held for its models, and every arm its own stages', () => {
    const { fold, violations } = foldOf([
      ...service('O@1', 100, 2),
      ...service('O@2', 60, 2),
      ...service('base', 40, 2),
      ...new SlotScript(slotAt(0, 'main')).whole(1).drafts,
    ]);
    expect(violations).toEqual([]);
    const { arms, service_seconds, gpu_seconds, used } = fold.costs();
    expect([service_seconds, gpu_seconds]).toEqual([200, 320 + 80]);
    const { arm } = slotAt(0, 'main');
    expect(arms.map((cost) => [cost.arm, cost.service_seconds, cost.gpu_seconds, cost.divided])).toEqual([
      ['O', 160, 320, false],
      ['base', 40, 80, false],
    ]);
    expect(arms.map((cost) => cost.used)).toEqual(arms.map((cost) => (cost.arm === arm ? used : NO_EFFORT)));
    expect(used.stages).toBe(2);
  });

  it('divides what arms of one model held together by their stage seconds', () => {
    const busy = (seconds: number) => ({ ...NO_PARTS, used: { ...NO_EFFORT, seconds } });
    const failed = (seconds: number) => ({ ...NO_PARTS, failed: { ...NO_EFFORT, seconds } });
    const held = { service_seconds: 100, gpu_seconds: 400 };
    const costs = armCosts(
      [
        ['a', busy(30)],
        ['b', failed(10)],
        ['c', NO_PARTS],
      ],
      [
        { arms: ['a', 'b'], held },
        { arms: ['c'], held },
      ],
    );
    expect(costs.map((cost) => [cost.arm, cost.service_seconds, cost.gpu_seconds, cost.divided])).toEqual([
      ['a', 75, 300, true],
      ['b', 25, 100, true],
      ['c', 100, 400, false],
    ]);
    const idle = armCosts(
      [
        ['a', NO_PARTS],
        ['b', NO_PARTS],
      ],
      [{ arms: ['a', 'b'], held }],
    );
    expect(idle.map(({ gpu_seconds }) => gpu_seconds)).toEqual([200, 200]);
  });

  it('divides the devices of a runner without services among all arms', () => {
    const command = { argv: ['x'], wall_s: 1, output_bytes: 1 };
    const runner = {
      adapter: 'command',
      generate: command,
      grade: command,
      grace_s: 1,
      candidate: 'answer',
      gpus: 3,
      sources: {},
    };
    const protocol = protocolSchema.parse({ ...PROTOCOL_VALUE, runner });
    const work = new SlotScript(slotAt(0, 'main')).whole(1).drafts;
    const { fold } = foldOf([...work, pausedDraft('finished')], { context: { ...CONTEXT, protocol } });
    const { arm } = slotAt(0, 'main');
    expect(fold.costs().arms.map((cost) => [cost.arm, cost.gpu_seconds, cost.divided])).toEqual(
      ['O', 'base'].map((name) => [name, name === arm ? 18 : 0, true]),
    );
  });
});

describe('accounts of Slurm', () => {
  it('take the place of what was declared, once for a job, in the proportions of its services', () => {
    const { fold, violations } = foldOf(
      [
        openedDraft(),
        gateIn('812'),
        ...service('O@1', 30, 2),
        pausedDraft('finished'),
        gateIn('812', SECOND),
        ...service('base', 10, 2, SECOND),
        pausedDraft('finished', SECOND),
        account('812', 50, 4),
        account('812', 100, 4),
      ],
      { bare: true },
    );
    expect(violations).toEqual([]);
    expect(fold.costs()).toMatchObject({ gpu_seconds: 400, accounted_gpu_seconds: 400, service_seconds: 40 });
    expect(fold.costs().arms.map(({ arm, gpu_seconds }) => [arm, gpu_seconds])).toEqual([
      ['O', 300],
      ['base', 100],
    ]);
  });

  it('leave sessions outside of the job as declared', () => {
    const { fold } = foldOf(
      [
        openedDraft(),
        gateIn('812'),
        ...service('O@1', 30, 2),
        pausedDraft('finished'),
        gateDraft(SECOND),
        ...service('base', 10, 2, SECOND),
        pausedDraft('finished', SECOND),
        account('812', 100, 4),
      ],
      { bare: true },
    );
    expect(fold.costs()).toMatchObject({ gpu_seconds: 420, accounted_gpu_seconds: 400 });
  });

  it('are refused for a job that no session ran in', () => {
    const { violations } = foldOf([account('812', 50, 4)]);
    expect(violations).toMatchObject([{ clause: 'P21', message: 'no session ran in the Slurm job 812' }]);
  });

  it.each([
    ['typed devices', '7|60|gres/gpu:a100=2,gres/gpu:h100=1', [{ job: '7', seconds: 60, gpus: 3 }]],
    ['the sum before typed ones', '7|60|gres/gpu:a100=2,gres/gpu=2', [{ job: '7', seconds: 60, gpus: 2 }]],
    ['a job without devices', '7|60|cpu=1', [{ job: '7', seconds: 60, gpus: 0 }]],
    ['a job that got nothing', '7|0|', [{ job: '7', seconds: 0, gpus: 0 }]],
    ['steps', '7.batch|60|cpu=1\n7|61|cpu=1\n7.0|5|cpu=1', [{ job: '7', seconds: 61, gpus: 0 }]],
    ['only steps', '7.batch|60|cpu=1', null],
    ['a job twice', '7|60|cpu=1\n7|61|cpu=1', null],
    ['elapsed time as a clock shows it', '7|01:00:00|cpu=1', null],
    ['an array as users see it', '7_1|60|cpu=1', null],
    ['a count that is none', '7|60|gres/gpu=two', null],
    ['a column too few', '7|60', null],
    ['a column too many', '7|60|cpu=1|', null],
    ['an empty line', '7|60|cpu=1\n\n', null],
  ])('read %s', (_, lines, expected) => {
    expect(readSacct(Buffer.from(`JobIDRaw|ElapsedRaw|AllocTRES\n${lines}\n`))).toEqual(expected);
  });

  it.each(['', 'JobID|ElapsedRaw|AllocTRES\n7|60|cpu=1\n', '7|60|cpu=1\n'])(
    'need their header: %j',
    (text) => {
      expect(readSacct(Buffer.from(text))).toBeNull();
    },
  );
});

describe('off-time (B8)', () => {
  const gate = { ...gateDraft(), heartbeat_s: 60 };
  const alive: EntryDraft = { type: 'session.alive', session: SESSION };
  const [started] = service('O@1', 0, 0) as [EntryDraft];

  it('is a gap of more than three heartbeats, and counts for nobody', () => {
    const { fold, violations } = foldAt([
      [0, openedDraft()],
      [0, gate],
      [10, started],
      [70, alive],
      [130, alive],
      // The host slept for two hours.
      [7330, alive],
      [7390, alive],
    ]);
    expect(violations).toEqual([]);
    // 1 s from spawn to ready
    expect(fold.costs()).toMatchObject({
      session_seconds: 190,
      service_seconds: 1 + 180,
      gpu_seconds: 2 * 181,
    });
  });

  it('is not what came before a service', () => {
    const { fold } = foldAt([
      [0, openedDraft()],
      [0, gate],
      [1000, started],
      [1050, alive],
    ]);
    expect(fold.costs()).toMatchObject({ session_seconds: 50, service_seconds: 51 });
  });

  it('is unknown where no heartbeat was promised', () => {
    const { fold } = foldAt([
      [0, openedDraft()],
      [0, gateDraft()],
      [7200, alive],
    ]);
    expect(fold.costs().session_seconds).toBe(7200);
  });

  it('has no sign of life after the end of a session', () => {
    const { violations } = foldOf([pausedDraft('finished'), alive]);
    expect(violations).toMatchObject([{ clause: 'law 1' }]);
  });
});
