import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { command as exportVerb } from '../../src/commands/export.js';
import { command as unblind } from '../../src/commands/unblind.js';
import { openBook } from '../../src/ledger/book.js';
import { bindManifest } from '../../src/manifest/bind.js';
import { freezeProtocol } from '../../src/manifest/freeze.js';
import { loadManifest } from '../../src/manifest/select.js';
import { readWorkspace } from '../../src/manifest/workspace.js';
import type { SelectField } from '../../src/slots/selector.js';
import { type PlanSetting, put, type Trial, trial } from '../runner/fixture.js';
import { amend, entriesOf, invoke, reportOf } from './support.js';

const SETTING: PlanSetting = { prompts: { a: 'right a', b: 'wrong b' }, seeds: [42, 7, 5], reps: 2 };
const FEWER = { seeds: [42, 7] };

async function partly(setting: PlanSetting = SETTING, only = ['42']): Promise<Trial> {
  const plan = await trial(setting);
  const filter: [SelectField, ReadonlySet<string>] = ['training_seed', new Set(only)];
  const selection = { shard: null, only: new Map([filter]) };
  await plan.run({ selection });
  return plan;
}

describe('amend', () => {
  it('of a plan that never ran: a further manifest, no exposure, and freeze points to it', async () => {
    const plan = await trial(SETTING);
    const before = readFileSync(plan.stored.path);
    const { stored, superseded, exposure, entry, carry } = await amend(plan, SETTING, FEWER);
    expect(stored.manifest).toMatchObject({
      name: 'trial',
      revision: 2,
      sequence: 2,
      previous: plan.stored.digest,
      parent: null,
      supersedes: plan.stored.digest,
      reason: 'fewer training seeds',
      exposure: { slots_run: 0, settled: 0, unblinded: false, bounds: {}, declared: null },
      execution_ready: true,
      task_use: [{ binding: 'tasks/all', plans: 1 }],
    });
    expect(exposure).toEqual(stored.manifest.exposure);
    expect({ superseded: superseded.digest, entry, carry }).toEqual({
      superseded: plan.stored.digest,
      entry: null,
      carry: null,
    });
    expect(readFileSync(plan.stored.path)).toEqual(before);
    expect((await loadManifest(plan.root, 'trial')).digest).toBe(stored.digest);
    await expect(
      freezeProtocol('protocol/trial.yaml', {
        root: plan.root,
        now: () => new Date().toISOString(),
        product: plan.product,
      }),
    ).rejects.toMatchObject({ code: 'MANIFEST_EXISTS' });
  });

  it('of a plan that ran: exposure from the ledger, which is sealed; run and bind refuse it', async () => {
    const plan = await partly();
    const manifest = readFileSync(plan.stored.path);
    const before = await plan.entries();
    const { stored, exposure, entry, carry } = await amend(plan, SETTING, FEWER);
    expect(exposure).toEqual({ slots_run: 4, settled: 4, unblinded: false, bounds: {}, declared: null });
    expect(entry).toMatchObject({
      type: 'amended',
      seq: before.length,
      successor: stored.digest,
      revision: 2,
      reason: 'fewer training seeds',
    });
    expect(carry).toMatchObject({ again: 0, dropped: 0, unfinished: [], revived: [] });
    expect(carry?.carried).toHaveLength(4);
    expect(readFileSync(plan.stored.path)).toEqual(manifest);
    const after = await plan.entries();
    expect(after.slice(0, -1)).toEqual(before);
    expect(after.at(-1)).toEqual(entry);
    // Its outcomes are those that the new revision carries.
    await expect(invoke(unblind, plan.root, [plan.stored.file], { partial: true })).rejects.toMatchObject({
      code: 'UNBLIND_TOO_EARLY',
      exitCode: 2,
    });
    await expect(plan.run({ manifest: plan.stored.file })).rejects.toMatchObject({
      code: 'PLAN_SUPERSEDED',
      exitCode: 3,
      evidence: { newest: stored.digest },
    });
    const surroundings = { root: plan.root, now: () => new Date().toISOString(), product: plan.product };
    await expect(bindManifest(plan.stored.file, surroundings)).rejects.toMatchObject({
      code: 'BINDING_REFUSED',
    });
    expect(await plan.entries()).toHaveLength(after.length);
    expect((await audit(plan.root, plan.stored.file)).findings).toEqual([]);
  });

  it('shows the bounds of a plan whose outcomes were open, in its exposure', async () => {
    const setting = {
      ...SETTING,
      models: ['M', 'B'],
      contrasts: '[{ id: M-B, minuend: M, subtrahend: B, queue: main, role: primary }]',
    };
    const plan = await partly(setting);
    await invoke(unblind, plan.root, [], { partial: true });
    const { exposure } = await amend(plan, setting, FEWER);
    // Of three seeds' 4 slots each, one seed is settled: half of its answers are right.
    expect(exposure).toEqual({
      slots_run: 8,
      settled: 8,
      unblinded: true,
      bounds: {
        'contrast:M-B': { lower: -2 / 3, upper: 2 / 3 },
        'score:main:B': { lower: 1 / 6, upper: 5 / 6 },
        'score:main:M': { lower: 1 / 6, upper: 5 / 6 },
      },
      declared: null,
    });
  });

  it('takes outcomes for open when a bundle left the blinded ledger, and says so', async () => {
    const plan = await partly();
    await invoke(exportVerb, plan.root, [], { out: 'early', beforeUnblinding: 'for the escrow' });
    const noted = (await plan.of('deviation.noted'))[0]?.seq;
    const { exposure, stored } = await amend(plan, SETTING, {
      ...FEWER,
      declared: { declared: 'in escrow' },
    });
    expect(exposure).toEqual({
      slots_run: 4,
      settled: 4,
      unblinded: true,
      bounds: {},
      declared: `in escrow; the blinded ledger was exported with its outcomes (entry ${noted})`,
    });
    await plan.run();
    expect((await reportOf(plan.root, stored)).amendment).toBe('post hoc');
    expect((await audit(plan.root, undefined)).findings).toEqual([]);
  });

  it('counts a plan without blinding as open once a slot is closed', async () => {
    const setting = { ...SETTING, blinding: 'none' as const };
    const plan = await trial(setting);
    const empty = await amend(plan, setting, FEWER);
    expect(empty.exposure.unblinded).toBe(false);
    await plan.run({ limit: 1 });
    const later = await amend(plan, setting, { ...FEWER, revision: 3, reps: 1 });
    expect(later.exposure).toMatchObject({ slots_run: 1, unblinded: true });
  });

  it('adds exposures up from revision to revision', async () => {
    const plan = await partly();
    await amend(plan, SETTING, {
      ...FEWER,
      declared: { slots_run: 6, unblinded: true, declared: 'saw a log' },
    });
    await plan.run({ limit: 1 });
    const { exposure } = await amend(plan, SETTING, { ...FEWER, revision: 3, reps: 1 });
    expect(exposure).toEqual({ slots_run: 7, settled: 5, unblinded: true, bounds: {}, declared: null });
  });

  it('takes more exposure than the ledger shows, never less', async () => {
    const plan = await partly();
    await expect(
      amend(plan, SETTING, { ...FEWER, declared: { slots_run: 3, settled: 0 } }),
    ).rejects.toMatchObject({
      code: 'AMEND_REFUSED',
      faults: [
        { where: 'slots_run', message: 'declared 3, the ledger shows 4' },
        { where: 'settled', message: 'declared 0, the ledger shows 4' },
      ],
    });
    const { exposure } = await amend(plan, SETTING, {
      ...FEWER,
      declared: { settled: 4, declared: 'heard of one' },
    });
    expect(exposure).toMatchObject({ slots_run: 4, settled: 4, declared: 'heard of one' });
  });

  it('keeps what is bound and not on this host, and evidence of what is still pending', async () => {
    const plan = await trial(SETTING);
    const { rmSync } = await import('node:fs');
    rmSync(join(plan.root, 'models/M-42'), { recursive: true });
    const { stored } = await amend(plan, SETTING, FEWER);
    expect(stored.manifest.execution_ready).toBe(true);
    const weights = (bindings: typeof stored.manifest.bindings) =>
      bindings.filter(({ name }) => name.startsWith('weights/M@42'));
    expect(weights(stored.manifest.bindings)).toEqual(weights(plan.stored.manifest.bindings));
  });

  it('is bound further as the amendment that it is', async () => {
    const plan = await trial(SETTING);
    const setting = { ...SETTING, seeds: [42, 9] };
    const first = await amend(plan, setting, {});
    expect(first.stored.manifest.pending).toEqual(['binding tokenizer/M@9', 'binding weights/M@9']);
    const donor = await trial({ ...SETTING, seeds: [9] });
    for (const file of ['model.safetensors', 'config.json', 'tokenizer.json'])
      put(plan.root, `models/M-9/${file}`, readFileSync(join(donor.root, `models/M-9/${file}`)));
    const surroundings = { root: plan.root, now: () => new Date().toISOString(), product: plan.product };
    const bound = await bindManifest('trial', surroundings);
    const { supersedes, reason, exposure } = first.stored.manifest;
    expect(bound.manifest).toMatchObject({
      revision: 2,
      parent: first.stored.digest,
      supersedes,
      reason,
      exposure,
      execution_ready: true,
    });
    await plan.run({ limit: 1 });
    expect((await audit(plan.root, undefined)).findings).toEqual([]);
    await expect(bindManifest(plan.stored.file, surroundings)).rejects.toMatchObject({
      code: 'BINDING_REFUSED',
    });
  });
});

describe('amend refuses', () => {
  const refusals: readonly [string, Parameters<typeof amend>[2], RegExp][] = [
    ['no reason', { ...FEWER, reason: ' ' }, /needs a reason/],
    ['a reason without end', { ...FEWER, reason: 'x'.repeat(4001) }, /at most 4000/],
    ['the same protocol', { revision: 1 }, /this very protocol/],
    ['the same revision with another protocol', { ...FEWER, revision: 1 }, /does not follow revision 1/],
    ['a revision that changes nothing', {}, /in its revision alone/],
  ];

  it.each(refusals)('%s', async (_, change, message) => {
    const plan = await trial(SETTING);
    await expect(amend(plan, SETTING, change)).rejects.toMatchObject({
      code: 'AMEND_REFUSED',
      message: expect.stringMatching(message) as string,
    });
    expect((await readWorkspace(plan.root)).manifests).toHaveLength(1);
  });

  it('a manifest that is not the newest, and another name', async () => {
    const plan = await trial(SETTING);
    const { stored } = await amend(plan, SETTING, FEWER);
    await expect(
      amend(plan, SETTING, { seeds: [42], revision: 3, superseded: plan.stored.file }),
    ).rejects.toMatchObject({
      code: 'AMEND_REFUSED',
      message: expect.stringMatching(/not the newest/) as string,
      hint: expect.stringContaining(stored.file) as string,
    });
    const text = readFileSync(join(plan.root, 'protocol/trial.yaml'), 'utf8');
    put(plan.root, 'protocol/other.yaml', text.replace('name: trial', 'name: other'));
    const { amendPlan } = await import('../../src/ledger/amendment.js');
    const hooks = { exposureOf: () => ({}) as never, isAlive: () => false };
    const surroundings = { root: plan.root, now: () => new Date().toISOString(), product: plan.product };
    const request = { protocol: 'protocol/other.yaml', reason: 'x', declared: {} };
    await expect(amendPlan({ ...request, superseded: 'trial' }, surroundings, hooks)).rejects.toMatchObject({
      code: 'AMEND_REFUSED',
      message: expect.stringMatching(/named trial; the protocol is named other/) as string,
    });
    await expect(amendPlan({ ...request, superseded: undefined }, surroundings, hooks)).rejects.toMatchObject(
      {
        code: 'MANIFEST_NOT_FOUND',
      },
    );
  });

  it('while a session is at work, and takes one whose process is gone for ended', async () => {
    const plan = await partly();
    const book = await openBook(plan.root, plan.stored, 'write', () => new Date().toISOString());
    const gate = (await plan.of('gate.passed'))[0];
    if (gate === undefined) throw new Error('no gate');
    const { seq: _seq, prev: _prev, time: _time, ...draft } = gate;
    book.store.append([{ ...draft, session: 'e'.repeat(32) }]);
    book.close();
    await expect(amend(plan, SETTING, { ...FEWER, isAlive: () => true })).rejects.toMatchObject({
      code: 'AMEND_REFUSED',
      message: expect.stringMatching(/is at work/) as string,
    });
    expect((await readWorkspace(plan.root)).manifests).toHaveLength(1);
    await expect(amend(plan, SETTING, { ...FEWER, isAlive: () => false })).resolves.toMatchObject({
      entry: {},
    });
  });
});

describe('slots under way', () => {
  // The sessions of the cut ledger were this very process's.
  const GONE = { ...FEWER, isAlive: () => false };

  /** A slot of seed 42 whose first attempt failed and whose replacement was not started. */
  async function interrupted(seed = '42'): Promise<Trial> {
    const setting = { ...SETTING, prompts: { a: 'reset-once a', b: 'right b' } };
    const plan = await partly(setting, [seed]);
    const { Insider } = await import('../audit/insider.js');
    const insider = new Insider(plan);
    const second = insider.entries.findIndex(
      ({ type, kind }) => type === 'attempt.started' && kind === 'replacement',
    );
    insider.entries = insider.entries.slice(0, second);
    insider.rechain().sweep();
    const root = insider.root;
    return { ...plan, root, run: (options = {}) => plan.run({ root, ...options }) };
  }

  it('keep a plan that still holds them from being amended, until run --limit 0 has finished them', async () => {
    const plan = await interrupted();
    const setting = { ...SETTING, prompts: { a: 'reset-once a', b: 'right b' } };
    await expect(amend(plan, setting, GONE)).rejects.toMatchObject({
      code: 'AMEND_REFUSED',
      message: '1 slots are under way: started, and not closed',
      hint: expect.stringContaining('boundbook run --limit 0') as string,
    });
    const summary = await plan.run({ limit: 0 });
    expect(summary).toMatchObject({ reason: 'limit', json: { closed_now: 1, slots: { open: 0 } } });
    const book = await openBook(plan.root, plan.stored, 'read');
    book.close();
    expect(book.fold.attempts.replacement).toBe(1);
    await expect(amend(plan, setting, GONE)).resolves.toMatchObject({
      exposure: { slots_run: book.fold.attempts.first },
    });
  });

  it('of what the new revision gives up do not hinder', async () => {
    const plan = await interrupted('5');
    const setting = { ...SETTING, prompts: { a: 'reset-once a', b: 'right b' } };
    const { exposure, carry } = await amend(plan, setting, GONE);
    expect(carry).toMatchObject({ carried: [], unfinished: [] });
    expect(exposure.slots_run).toBe(exposure.settled + 1);
    const { findings, remarks } = await audit(plan.root, plan.stored.file);
    expect(findings).toEqual([]);
    expect(remarks.join()).toMatch(/1 slots were started and are not closed/);
  });
});

describe('a crash between manifest and entry', () => {
  it('leaves a plan that run refuses, and amend or the next run completes', async () => {
    const plan = await partly();
    const { stored } = await amend(plan, SETTING, FEWER);
    const { Insider } = await import('../audit/insider.js');
    for (const heal of ['amend', 'run'] as const) {
      const insider = new Insider(plan);
      insider.remove(({ type }) => type === 'amended');
      insider.rechain();
      const there = { ...plan, root: insider.root };
      await expect(plan.run({ root: there.root, manifest: plan.stored.file })).rejects.toMatchObject({
        code: 'PLAN_SUPERSEDED',
      });
      if (heal === 'amend') {
        const again = await amend(there, SETTING, FEWER);
        expect(again).toMatchObject({
          stored: { digest: stored.digest },
          entry: { successor: stored.digest },
        });
        await expect(amend(there, SETTING, FEWER)).rejects.toMatchObject({ code: 'AMEND_REFUSED' });
      } else await plan.run({ root: there.root, limit: 1 });
      const last = (await entriesOf(there.root, plan.stored)).at(-1);
      expect(last).toMatchObject({ type: 'amended', successor: stored.digest, revision: 2 });
    }
  });
});
