import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { command as audit } from '../../src/commands/audit.js';
import { command as exportVerb } from '../../src/commands/export.js';
import { command as report } from '../../src/commands/report.js';
import { command as show } from '../../src/commands/show.js';
import { command as status } from '../../src/commands/status.js';
import { command as unblind } from '../../src/commands/unblind.js';
import { digestOf, hexOf } from '../../src/core/digest.js';
import { ledgerFolder } from '../../src/ledger/book.js';
import { MASK } from '../../src/ledger/mask.js';
import type { StoredManifest } from '../../src/manifest/workspace.js';
import type { SelectField } from '../../src/slots/selector.js';
import { Insider } from '../audit/insider.js';
import { type PlanSetting, type Trial, trial } from '../runner/fixture.js';
import { amend, entriesOf, invoke } from './support.js';

const SETTING: PlanSetting = {
  prompts: { a: 'right a', b: 'html b' },
  seeds: [42, 7, 5],
  models: ['M', 'B'],
  contrasts: `[{ id: M-B, minuend: M, subtrahend: B, queue: main, role: primary }]
  decisions: [{ id: adopt, contrast: M-B, comparator: ">", threshold: 0, when_met: M, otherwise: B }]`,
};

/** Two amendments: seeds 42 and 7 of three were run, then two were kept, then one. */
interface Chain {
  readonly plan: Trial;
  readonly second: StoredManifest;
  readonly third: StoredManifest;
}

let chain: Chain;

beforeAll(async () => {
  const plan = await trial(SETTING);
  const filter: [SelectField, ReadonlySet<string>] = ['training_seed', new Set(['42', '7'])];
  await plan.run({ selection: { shard: null, only: new Map([filter]) } });
  const { stored: second } = await amend(plan, SETTING, { seeds: [42, 7] });
  await plan.run();
  const { stored: third } = await amend(plan, SETTING, { seeds: [42], revision: 3, reason: 'one node left' });
  await plan.run();
  chain = { plan, second, third };
});

/** No line is wider than 80 columns, but for one that is a single word, such as a digest. */
function expectNarrow(text: string): void {
  for (const line of text.split('\n').filter((each) => each.length > 80))
    expect(line, line).toMatch(/^(\S+)? +\S+$/);
}

describe('status of an amended plan', () => {
  it('names the plans before it, and what was carried from them', async () => {
    const { plan, second, third } = chain;
    const { json, text } = await invoke(status, plan.root);
    const [seal1, seal2] = await Promise.all(
      [plan.stored, second].map(async (stored) =>
        (await entriesOf(plan.root, stored)).findIndex(({ type }) => type === 'amended'),
      ),
    );
    expect(json).toMatchObject({
      manifest: { digest: third.digest },
      succession: {
        supersedes: [
          { file: second.file, digest: second.digest, revision: 2, seal: { kind: 'recorded', entry: seal2 } },
          { file: plan.stored.file, revision: 1, seal: { kind: 'recorded', entry: seal1 } },
        ],
        missing: null,
        superseded_by: null,
      },
      ledger: {
        carried: { manifest: second.digest, settled: 2, unresolved: 2, attempts: 4, again: 0, dropped: 4 },
        total: { planned: 4, settled: 2, unresolved: 2 },
        attempts: { first: 0 },
      },
    });
    const flat = text.replace(/\s+/g, ' ');
    expect(flat).toContain(`supersedes revision 2, ${second.file}; sealed by entry ${seal2}`);
    expect(flat).toContain('carried 4 slots (2 settled, 2 unresolved) with 4 attempts, from ledger');
    expect(flat).toContain('0 closed there are run again, 4 are given up');
    expectNarrow(text);
  });

  it('says of a superseded one what took its place', async () => {
    const { plan, third } = chain;
    const { json, text } = await invoke(status, plan.root, [plan.stored.file]);
    expect(json).toMatchObject({
      succession: {
        supersedes: [],
        superseded_by: { file: third.file, digest: third.digest, revision: 3, seal: { kind: 'recorded' } },
      },
      ledger: { carried: null },
    });
    expect(text.replace(/\s+/g, ' ')).toContain(`superseded by revision 3, ${third.file}; sealed by entry`);
    expectNarrow(text);
  });

  it('says when a ledger does not know of its amendment yet, and when the old plan never ran', async () => {
    const plan = await trial(SETTING);
    const { stored: second } = await amend(plan, SETTING, { seeds: [42, 7] });
    expect((await invoke(status, plan.root)).text.replace(/\s+/g, ' ')).toContain(
      `supersedes revision 1, ${plan.stored.file}; it never ran`,
    );
    await plan.run({ limit: 1 });
    const { stored: third } = await amend(plan, SETTING, { seeds: [42], revision: 3 });
    const insider = new Insider({ ...plan, stored: second, ledger: ledgerFolder(plan.root, second.file) });
    insider.remove(({ type }) => type === 'amended');
    insider.rechain();
    const unrecorded = { kind: 'unrecorded' };
    const now = await invoke(status, insider.root);
    expect(now.json).toMatchObject({
      manifest: { digest: third.digest },
      succession: { supersedes: [{ seal: unrecorded }, { seal: { kind: 'no ledger' } }] },
    });
    const before = await invoke(status, insider.root, [second.file]);
    expect(before.json).toMatchObject({ succession: { superseded_by: { seal: unrecorded } } });
    expect(before.text.replace(/\s+/g, ' ')).toContain(
      'this ledger does not say so yet: `boundbook run` or `boundbook amend` adds the entry',
    );
    expectNarrow(before.text);
  });
});

describe('show of a carried slot', () => {
  async function carriedSlot(kind: 'settled' | 'unresolved'): Promise<string> {
    const { plan, third } = chain;
    const found = (await entriesOf(plan.root, third)).find(
      (entry) => entry.type === 'slot.carried' && entry.outcome.kind === kind,
    );
    return found?.type === 'slot.carried' ? found.slot : '';
  }

  it('counts its attempts and says through which ledgers it came, outcomes masked while blinded', async () => {
    const { plan, second } = chain;
    const slot = await carriedSlot('settled');
    const { json, text } = await invoke(show, plan.root, [slot]);
    const [last, first] = (json as { carried: { file: string; closed_by: number | string }[] }).carried;
    const carrying = (await entriesOf(plan.root, second))[Number(last?.closed_by)];
    expect(carrying).toMatchObject({ type: 'slot.carried', slot });
    // The position of an outcome may tell it.
    expect(first?.closed_by).toBe(MASK);
    expect(json).toMatchObject({
      carried: [
        { file: second.file, by: 'slot.carried', attempts: 1 },
        { file: plan.stored.file, by: 'slot.settled', attempts: 1 },
      ],
      masked: true,
    });
    const flat = text.replace(/\s+/g, ' ');
    expect(flat).toContain(`carried from entry ${last?.closed_by} of ledger`);
    expect(flat).toContain(`before from a masked entry of ledger`);
    expect(flat).toContain(`1 there: boundbook show ${slot} --manifest ${plan.stored.file}`);
    expect(text).toContain('Outcomes are masked');
    expect(text).not.toContain('No attempt was started yet');
    expectNarrow(text.split('\n\n')[0] ?? '');
    // What is named there works, and shows the attempt.
    expect((await invoke(show, plan.root, [slot], { manifest: plan.stored.file })).text).toContain(
      'attempt.started',
    );
  });

  it('of an own slot names no other ledger', async () => {
    const { plan, second } = chain;
    const own = (await plan.entries()).find(({ type }) => type === 'slot.settled');
    const slot = own !== undefined && 'slot' in own ? own.slot : '';
    const { json } = await invoke(show, plan.root, [slot], { manifest: plan.stored.file });
    expect(json).toMatchObject({ carried: [] });
    const later = await invoke(show, plan.root, [slot], { manifest: second.file });
    expect(later.json).toMatchObject({ carried: [{ file: plan.stored.file }] });
  });

  it('an object that lies in an earlier ledger is named with that ledger', async () => {
    const { plan } = chain;
    await invoke(unblind, plan.root);
    const slot = await carriedSlot('settled');
    const { json } = await invoke(show, plan.root, [slot]);
    const { closed_by: at = -1 } = (json as { carried: { closed_by: number }[] }).carried.at(-1) ?? {};
    expect((await entriesOf(plan.root, plan.stored))[at]).toMatchObject({ type: 'slot.settled', slot });
    const { report: digest } = (json as { state: { basis: { report: string } } }).state.basis;
    await expect(invoke(show, plan.root, [digest])).rejects.toMatchObject({
      code: 'OBJECT_MISSING',
      message: expect.stringContaining(`lies in the ledger of ${plan.stored.file}`) as string,
      hint: `boundbook show ${digest} --manifest ${plan.stored.file}`,
    });
    await invoke(unblind, plan.root, [plan.stored.file], { partial: true });
    const there = await invoke(show, plan.root, [digest], { manifest: plan.stored.file });
    expect(there.json).toMatchObject({ kind: 'object', digest });
    const nowhere = digestOf('nothing');
    await expect(invoke(show, plan.root, [nowhere])).rejects.toMatchObject({
      code: 'OBJECT_MISSING',
      message: expect.not.stringContaining('lies in the ledger') as string,
    });
  });
});

describe('a PRML claim of an amended plan', () => {
  const claim = (root: string, out: string, args: readonly string[] = []) =>
    invoke(exportVerb, root, args, { prml: 'adopt', producer: 'example.org', out, linkage: `${out}.record` });
  const textOf = (root: string, file: string) => readFileSync(join(root, file), 'utf8');

  it('says that it was amended before unblinding, and its record has the digest of the very report', async () => {
    const { plan, third } = chain;
    await invoke(unblind, plan.root);
    const { json, text } = await claim(plan.root, 'third.yaml');
    expect(json).toMatchObject({
      manifest: third.digest,
      amendment: 'before unblinding',
      superseded_by: null,
      observed: { label: 'confirmatory' },
    });
    expect(text).not.toContain('post hoc');
    expect(textOf(plan.root, 'third.yaml')).toContain('  amendment: before unblinding\n');
    await invoke(report, plan.root, [], { format: 'json', out: 'third.json' });
    expect(textOf(plan.root, 'third.yaml.record')).toContain(
      `  digest: ${hexOf(digestOf(readFileSync(join(plan.root, 'third.json'))))}\n`,
    );
    const checked = await invoke(audit, plan.root, [], { prml: 'third.yaml' });
    expect(checked.exitCode).toBeUndefined();
  });

  it('of a superseded plan is marked as such', async () => {
    const { plan, third } = chain;
    const { json, text } = await claim(plan.root, 'first.yaml', [plan.stored.file]);
    expect(json).toMatchObject({ amendment: null, superseded_by: third.digest });
    expect(text.replace(/\s+/g, ' ')).toContain(`superseded by revision 3, ${third.file}`);
    expect(textOf(plan.root, 'first.yaml')).not.toContain('amendment');
  });

  it('of a plan that was changed after unblinding is post hoc in the claim, on the screen and in the audit', async () => {
    const plan = await trial(SETTING);
    await plan.run({ limit: 4 });
    await invoke(unblind, plan.root, [], { partial: true });
    await amend(plan, SETTING, { seeds: [42, 7] });
    const before = await claim(plan.root, 'early.yaml').catch(() => null);
    expect(before).toBeNull();
    await plan.run();
    await invoke(unblind, plan.root);
    const { json, text } = await claim(plan.root, 'late.yaml');
    expect(json).toMatchObject({ amendment: 'post hoc', observed: { label: 'exploratory' } });
    expect(text.replace(/\s+/g, ' ')).toContain('post hoc the plan was changed after outcomes were open');
    const written = textOf(plan.root, 'late.yaml');
    expect(written).toContain('  amendment: post hoc\n');
    const clean = await invoke(audit, plan.root, [], { prml: 'late.yaml' });
    expect(clean.exitCode).toBeUndefined();
    expect((clean.json as { remarks: string[] }).remarks.join('\n')).toContain('late.yaml is post hoc');
    const { writeFileSync } = await import('node:fs');
    writeFileSync(join(plan.root, 'nicer.yaml'), written.replace('post hoc', 'before unblinding'));
    const nicer = await invoke(audit, plan.root, [], { prml: 'nicer.yaml' });
    expect(nicer).toMatchObject({
      exitCode: 4,
      json: { findings: [{ code: 'CLAIM_DIFFERS', where: { pointer: '/metric_args/amendment' } }] },
    });
  });
});
