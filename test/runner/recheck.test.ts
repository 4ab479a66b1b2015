import { randomBytes } from 'node:crypto';
import { describe, expect, it, test } from 'vitest';
import { auditBundle } from '../../src/audit/audit.js';
import { exportBundle } from '../../src/audit/bundle/export.js';
import { command as run } from '../../src/commands/run.js';
import { command as show } from '../../src/commands/show.js';
import { command as unblind } from '../../src/commands/unblind.js';
import { openBook } from '../../src/ledger/book.js';
import { toObject } from '../../src/ledger/objects.js';
import { recheckSample } from '../../src/ledger/recheck-sample.js';
import { buildReport } from '../../src/report/build.js';
import { bookInput } from '../../src/report/input.js';
import { renderReport } from '../../src/report/render.js';
import { slotsDigest } from '../../src/slots/selector.js';
import { invoke } from '../amend/support.js';
import { hasPython, python, VERIFIER } from '../verify/python.js';
import { type PlanSetting, type Trial, temporaryFolder, trial } from './fixture.js';

const SETTING: PlanSetting = {
  prompts: { a: 'loops-right a', b: 'loops-wrong b', c: 'loops-and-breaks c', d: 'right d' },
  grader: '{ kind: boxed, answer: answer, compare: integer }',
  stream: true,
  restarts: 0,
  loopStop: '{ unit: words, length: 3, repeats: 5, window: 100 }',
};

async function ran(setting: Partial<PlanSetting> = {}): Promise<Trial> {
  const plan = await trial({ ...SETTING, ...setting });
  await plan.run();
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

const taskOf = async (plan: Trial, slot: string) =>
  (await plan.of('attempt.started')).find((entry) => entry.slot === slot)?.key.task;

describe('run --recheck-stopped', () => {
  test.concurrent('generates the stopped outputs again, without the rule, and masks what came of them', async () => {
    const plan = await ran();
    const before = await plan.entries();
    const summary = await plan.run({ recheck: '1' });
    const after = (await plan.entries()).slice(before.length);
    expect(after.map(({ type }) => type).filter((type) => /^(attempt|slot|stage)\./.test(type))).toEqual([]);
    expect(after.find(({ type }) => type === 'gate.passed')).toMatchObject({
      selection: { recheck_stopped: '1' },
    });
    expect(await plan.of('recheck.declared')).toMatchObject([
      { fraction: '1', stopped: { count: 3 }, sample: { count: 3 } },
    ]);
    expect(await plan.of('recheck.closed')).toMatchObject([{ recovered: 1, not_recovered: 1, failed: 1 }]);
    const sent = await plan.of('recheck.started');
    for (const { slot, request } of sent)
      expect((await plan.of('attempt.started')).find((entry) => entry.slot === slot)?.request).toBe(request);
    const found: Record<string, unknown> = {};
    for (const { slot, result, finish_reason } of await plan.of('recheck.finished'))
      found[String(await taskOf(plan, slot))] = [result, finish_reason];
    expect(found).toMatchObject({
      a: [{ kind: 'graded', value: 1, before: 0 }, 'stop'],
      b: [{ kind: 'graded', value: 0, before: 0 }, 'stop'],
      c: [{ kind: 'failure', signals: { first_token: true } }, null],
    });
    expect(await plan.findings()).toEqual([]);

    // law 8
    expect(summary.json).toMatchObject({
      recheck: { fraction: '1', closed: true, stopped: null, sample: null, recovered: null, failed: null },
    });
    expect(summary.text).toMatch(/what came of it is masked/);
    for (const entry of after.filter(({ type }) => type.startsWith('recheck.'))) {
      const shown = JSON.stringify((await invoke(show, plan.root, [String(entry.seq)], {})).json);
      expect(shown).not.toMatch(/"slot"|"count"|"recovered"|"result"|"request"/);
    }
    const [first] = sent;
    const history = JSON.stringify((await invoke(show, plan.root, [String(first?.slot)], {})).json);
    expect(history).not.toMatch(/recheck/);
    const named = (await invoke(show, plan.root, [String(first?.request)], {})).json as {
      named_by: unknown[];
    };
    expect(named.named_by).toHaveLength(1);
    const blinded = await reportOf(plan);
    expect(blinded.rechecks).toMatchObject([{ fraction: '1', closed: true, outcome: null }]);
    expect(renderReport(blinded, 'text')).toMatch(/What came of it is masked/);

    await invoke(unblind, plan.root, [], {});
    const open = await reportOf(plan);
    expect(open.rechecks).toMatchObject([
      {
        after_unblinding: false,
        outcome: {
          ...{ stopped: 3, sample: 3, recovered: 1, not_recovered: 1, failed: 1 },
          interval: { low: expect.closeTo(0.0945, 3), high: expect.closeTo(0.9055, 3), level: 0.95 },
        },
      },
    ]);
    const text = renderReport(open, 'text').replace(/\s+/g, ' ');
    expect(text).toMatch(
      /3 outputs of 3 that were stopped: 1 of 2 graded ones recovered .*\[9\.5, 90\.5\] percent/,
    );
    expect(text).toMatch(/1 failure beside them/);
    expect(open.results?.[0]?.scores?.rows[0]).toEqual((await reportOf(plan)).results?.[0]?.scores?.rows[0]);

    const visible = await invoke(show, plan.root, [String(first?.slot)], {});
    expect(visible.text).toMatch(/recheck\.started[\s\S]*recheck\.finished/);

    // Again, when outcomes are open
    const late = await plan.run({ recheck: '0.4' });
    expect(late.json).toMatchObject({ recheck: { stopped: 3, sample: 2, closed: true } });
    expect(renderReport(await reportOf(plan), 'text').replace(/\s+/g, ' ')).toMatch(
      /post hoc: declared after outcomes were open: 0\.4 of the outputs/,
    );
    expect(await plan.findings()).toEqual([]);

    // Both verifiers agree with the report, too
    const { folder } = await exportBundle(plan.root, undefined, { out: 'bundle' });
    expect((await auditBundle(folder)).findings).toEqual([]);
    if (hasPython) expect(python([VERIFIER, folder]).stdout).toMatch(/^verdict {4}clean/);
  });

  test.concurrent('a killed one is gone on with: what was under way is a failure, and is not sent again', async () => {
    const plan = await ran();
    const book = await openBook(plan.root, plan.stored.file, 'write', () => new Date().toISOString());
    const [recheck, session] = [randomBytes(16).toString('hex'), randomBytes(16).toString('hex')];
    const passed = (await plan.of('gate.passed'))[0];
    if (passed === undefined) throw new Error('no session');
    const { seq: _seq, prev: _prev, time: _time, ...gate } = passed;
    const stopped = book.fold.rechecks.stopped(book.fold.slots);
    const [slot = ''] = stopped;
    const started = (await plan.of('attempt.started')).find((entry) => entry.slot === slot);
    const request = toObject(book.store.getObject(started?.request ?? 'sha256:'));
    const sets = { stopped: slotsDigest(stopped), sample: slotsDigest(stopped) };
    book.store.append(
      [
        { ...gate, session, process: { ...gate.process, boot_id: 'before' } },
        { type: 'recheck.declared', recheck, session, fraction: '1', ...sets },
        { type: 'recheck.started', recheck, session, slot, request: request.digest },
      ],
      [],
    );
    book.close();
    await expect(plan.run({ recheck: '0.5' })).rejects.toMatchObject({ code: 'RECHECK_REFUSED' });
    const asked = plan.requests().length;
    await plan.run({ recheck: '1' });
    expect(plan.requests().length - asked).toBe(2);
    const finished = await plan.of('recheck.finished');
    expect(finished.find((entry) => entry.slot === slot)?.result).toMatchObject({
      kind: 'failure',
      signals: { cause: 'process_gone' },
    });
    expect(finished).toHaveLength(3);
    expect(await plan.of('recheck.closed')).toHaveLength(1);
    expect(await plan.findings()).toEqual([]);
  });

  test.concurrent('a session that is cut records it, and the next one goes on', async () => {
    const plan = await ran({
      prompts: { a: 'looping a', b: 'looping b' },
      limits: 'request_s: 60, queue_wait_s: 3, response_bytes: 10000000',
    });
    const [stop, force] = [new AbortController(), new AbortController()];
    const progress = setInterval(() => {
      if (plan.requests().length < 3) return;
      stop.abort();
      force.abort();
    }, 20);
    const cut = plan.run({ recheck: '1', workers: 1, signal: stop.signal, force: force.signal });
    await expect(cut).rejects.toMatchObject({ code: 'STOPPED' });
    clearInterval(progress);
    expect(await plan.of('recheck.finished')).toMatchObject([
      { result: { signals: { cause: 'process_gone' } } },
    ]);
    expect(await plan.of('recheck.closed')).toEqual([]);
    expect(await plan.findings()).toEqual([]);
  });

  test.concurrent('nothing stopped is an empty sample, for which nothing is started', async () => {
    const plan = await ran({ prompts: { d: 'right d' } });
    const services = (await plan.of('service.started')).length;
    await plan.run({ recheck: '0.1' });
    expect(await plan.of('recheck.closed')).toMatchObject([{ recovered: 0, not_recovered: 0, failed: 0 }]);
    expect(await plan.of('service.started')).toHaveLength(services);
    await invoke(unblind, plan.root, [], {});
    expect((await reportOf(plan)).rechecks).toMatchObject([{ outcome: { stopped: 0, interval: null } }]);
    expect(await plan.findings()).toEqual([]);
  });

  test.concurrent('refuses a plan with open slots, and one without a stop rule', async () => {
    const { loopStop: _rule, ...plain } = SETTING;
    const [begun, without] = await Promise.all([trial(SETTING), trial(plain)]);
    await begun.run({ limit: 1 });
    const size = (await begun.entries()).length;
    await expect(begun.run({ recheck: '1' })).rejects.toMatchObject({
      code: 'RECHECK_REFUSED',
      message: expect.stringContaining('3 slots are pending'),
    });
    expect(await begun.entries()).toHaveLength(size);
    await expect(without.run({ recheck: '1' })).rejects.toMatchObject({ code: 'RECHECK_REFUSED' });
  });

  it.each(['0', '1.5', '1e-1', 'x', '', '0.0', '1.0', '.5', '-0.1', '0.10', '0.1234567891', ' 0.1'])(
    'takes %j for no fraction',
    async (fraction) => {
      const asked = invoke(run, temporaryFolder(), [], { recheckStopped: fraction });
      await expect(asked).rejects.toMatchObject({ code: 'USAGE' });
    },
  );

  it.each([{ shard: '0/2' }, { only: ['arm=M'] }, { limit: '1' }])('goes with no part: %j', async (part) => {
    const asked = invoke(run, temporaryFolder(), [], { recheckStopped: '0.1', ...part });
    await expect(asked).rejects.toMatchObject({
      code: 'USAGE',
      message: expect.stringContaining('does not go with'),
    });
  });
});

describe('the sample of a recheck', () => {
  const slots = Array.from({ length: 70 }, (_, i) => i.toString(16).padStart(32, '0'));
  it.each([
    ['0.1', 70, 7],
    ['0.1', 71, 8],
    ['0.7', 10, 7],
    ['0.000000001', 70, 1],
    ['0.5', 0, 0],
    ['1', 70, 70],
  ])('is %s of %i, rounded up exactly: %i', (fraction, count, due) => {
    const all = [...slots, 'f'.repeat(32)].slice(0, count);
    expect(recheckSample(all, fraction, `sha256:${'a'.repeat(64)}`)).toHaveLength(due);
  });

  it('is known by digest and slots alone, and a smaller one is part of a larger one', () => {
    const of = (fraction: string, manifest = 'a') =>
      recheckSample(slots, fraction, `sha256:${manifest.repeat(64)}`);
    expect(of('0.1')).toEqual([...of('0.1')].sort());
    expect(of('0.3')).toEqual(expect.arrayContaining(of('0.1')));
    expect(of('0.1')).not.toEqual(of('0.1', 'b'));
    expect(recheckSample([...slots].reverse(), '0.1', `sha256:${'a'.repeat(64)}`)).toEqual(of('0.1'));
  });
});
