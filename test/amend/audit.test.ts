import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { audit, auditBundle } from '../../src/audit/audit.js';
import { exportBundle } from '../../src/audit/bundle/export.js';
import { ledgerFolder, openBook } from '../../src/ledger/book.js';
import type { StoredManifest } from '../../src/manifest/workspace.js';
import type { SelectField } from '../../src/slots/selector.js';
import { Insider, type Loose } from '../audit/insider.js';
import { type PlanSetting, type Trial, trial } from '../runner/fixture.js';
import { LooseBundle } from '../support/loose-bundle.js';
import { amend } from './support.js';

const SETTING: PlanSetting = {
  prompts: { a: 'right a', b: 'wrong b', c: 'html c' },
  seeds: [42, 7, 5],
  reps: 2,
};

let plan: Trial;
/** r2, which carries the six slots of seed 42 and gives up two of seed 5; r3, which has one rep. */
let second: StoredManifest;
let third: StoredManifest;

function only(field: SelectField, ...values: string[]): ReadonlyMap<SelectField, ReadonlySet<string>> {
  return new Map([[field, new Set(values)]]);
}

beforeAll(async () => {
  plan = await trial(SETTING);
  await plan.run({ selection: { shard: null, only: only('training_seed', '42') } });
  await plan.run({
    selection: { shard: null, only: new Map([...only('training_seed', '5'), ...only('task', 'a')]) },
  });
  second = (await amend(plan, SETTING, { seeds: [42, 7] })).stored;
  await plan.run({ selection: { shard: null, only: only('task', 'a') } });
  third = (await amend(plan, SETTING, { seeds: [42, 7], reps: 1, revision: 3 })).stored;
  await plan.run();
});

/** Somebody with every right on the files of one of the ledgers. */
function insider(stored: StoredManifest): Insider {
  return new Insider({ ...plan, stored });
}

async function codes(root: string, stored: StoredManifest): Promise<string[]> {
  const { findings } = await audit(root, stored.file);
  return [...new Set(findings.map(({ code }) => code))];
}

describe('an amended plan', () => {
  it('is audited with the ledgers that it carries from', async () => {
    for (const stored of [plan.stored, second, third]) {
      const { findings, checked, remarks } = await audit(plan.root, stored.file);
      expect(findings).toEqual([]);
      const before = [plan.stored, second, third].indexOf(stored);
      expect(checked.filter((line) => line.startsWith('the superseded ledger'))).toHaveLength(before);
      expect(remarks.some((line) => line.startsWith('the plan was superseded by revision'))).toBe(
        stored !== third,
      );
    }
  });

  const EDITS: Record<string, readonly [string, string, (edit: Insider) => void]> = {
    'another value': [
      'CARRIED_DIFFERS',
      'law 3',
      (edit) => {
        const entry = edit.find(
          'slot.carried',
          ({ outcome }) => outcome.kind === 'settled' && outcome.value === 0,
        );
        (entry.outcome as { value: number }).value = 1;
      },
    ],
    'another report': [
      'CARRIED_DIFFERS',
      'law 3',
      (edit) => {
        const entry = edit.find('slot.carried', ({ outcome }) => outcome.kind === 'settled');
        (entry.outcome as { basis: { report: string } }).basis.report = `sha256:${'0'.repeat(64)}`;
      },
    ],
    'a settled slot as an unresolved one': [
      'CARRIED_DIFFERS',
      'law 3',
      (edit) => {
        const entry = edit.find('slot.carried', ({ outcome }) => outcome.kind === 'settled');
        entry.outcome = { kind: 'unresolved', reason: 'undetermined' };
      },
    ],
    'another place in the old ledger': [
      'CARRIED_DIFFERS',
      'law 3',
      (edit) => Object.assign(edit.find('slot.carried'), { closed_by: 3 }),
    ],
    'another count of what is executed again': [
      'CARRIED_DIFFERS',
      'law 3',
      (edit) => Object.assign(edit.find('ledger.opened').carries as object, { again: 1 }),
    ],
    'a slot less': [
      'CARRY_OMITTED',
      'law 3',
      (edit) => edit.entries.splice(edit.entries.indexOf(edit.find('slot.carried')), 1),
    ],
    'nothing at all': [
      'CARRY_OMITTED',
      'law 3',
      (edit) => {
        edit.find('ledger.opened').carries = null;
        edit.remove(({ type }) => type === 'slot.carried');
      },
    ],
    'another root of the old ledger': [
      'PREDECESSOR_DIFFERS',
      'P22',
      (edit) => Object.assign(edit.find('ledger.opened').carries as object, { root: '0'.repeat(64) }),
    ],
    'a state before the amendment': [
      'PREDECESSOR_DIFFERS',
      'P22',
      (edit) => Object.assign(edit.find('ledger.opened').carries as object, { size: 3 }),
    ],
    'another ledger': [
      'PREDECESSOR_DIFFERS',
      'P22',
      (edit) => Object.assign(edit.find('ledger.opened').carries as object, { ledger: '0'.repeat(32) }),
    ],
    'an earlier ledger than the last that ran': [
      'PREDECESSOR_DIFFERS',
      'P22',
      (edit) => Object.assign(edit.find('ledger.opened').carries as object, { manifest: plan.stored.digest }),
    ],
  };

  it.each(Object.entries(EDITS))('carrying %s is found', async (_, [code, clause, edit]) => {
    const copy = insider(third);
    edit(copy);
    copy.rechain();
    const { findings } = await audit(copy.root, third.file);
    const found = findings.find((one) => one.code === code);
    expect(found, JSON.stringify(findings, null, 1)).toMatchObject({ clause });
    if (code === 'CARRIED_DIFFERS' && found?.where.slot !== null)
      expect(found).toMatchObject({ evidence: null, message: expect.stringMatching(/withheld/) as string });
  });

  it('a carried slot that was never closed there is found, and one that was run again too', async () => {
    const slot = (await openThird()).find(({ key }) => key.training_seed === 7 && key.task === 'b');
    if (slot === undefined) throw new Error('no such slot');
    const copy = insider(third);
    const carried = copy.find('slot.carried');
    copy.remove((entry) => entry.slot === slot.slot);
    const { attemptId } = await import('../../src/attempts/slot-state.js');
    copy.entries.splice(1, 0, {
      ...carried,
      slot: slot.slot,
      key: slot.key,
      outcome: {
        kind: 'settled',
        value: 1,
        basis: { kind: 'model_failure', attempt: attemptId(slot.slot, 1) },
      },
    } as Loose);
    (copy.entries[1]?.outcome as { value: number }).value = 0;
    copy.rechain().sweep();
    expect(await codes(copy.root, third)).toContain('CARRY_UNFOUNDED');
  });

  it('a fault in an earlier ledger is a fault of what rests on it, and is placed there', async () => {
    const copy = insider(plan.stored);
    const entry = copy.find('stage.finished', ({ result }) => result.kind === 'report');
    (entry.result as { value: number }).value = 0.5;
    copy.rechain();
    const { findings } = await audit(copy.root, third.file);
    expect(findings.map(({ code }) => code)).toEqual(
      expect.arrayContaining(['VALUE_DIFFERS', 'PREDECESSOR_DIFFERS']),
    );
    expect(findings.find(({ code }) => code === 'VALUE_DIFFERS')?.where.file).toBe(
      `ledger/${plan.stored.file.replace('.json', '')}`,
    );
  });

  it('a superseded ledger that is gone, or its manifest, is missed', async () => {
    const gone = insider(third);
    rmSync(ledgerFolder(gone.root, second.file), { recursive: true });
    expect(await codes(gone.root, third)).toContain('PREDECESSOR_DIFFERS');
    const manifest = insider(third);
    rmSync(join(manifest.root, 'manifests', second.file));
    expect(await codes(manifest.root, third)).toContain('MANIFEST_MISSING');
  });

  it('less exposure than the ledger shows is found', async () => {
    // Two further slots of the old ledger were run than the amendment says: as if the seal had been moved back.
    const copy = insider(plan.stored);
    const seal = copy.find('amended');
    const slots = [...new Set(copy.entries.map(({ slot }) => slot))].filter((slot) => slot !== undefined);
    expect(slots).toHaveLength(8);
    const { parseManifest, sealManifest } = await import('../../src/manifest/manifest.js');
    const { readFileSync, writeFileSync, chmodSync } = await import('node:fs');
    const path = join(copy.root, 'manifests', second.file);
    const { manifest } = parseManifest(readFileSync(path), second.file);
    const {
      pending: _p,
      execution_ready: _e,
      ...draft
    } = JSON.parse(JSON.stringify(manifest)) as typeof manifest;
    const forged = sealManifest({
      ...draft,
      exposure: { ...draft.exposure, slots_run: 7, settled: 6 },
    } as never);
    chmodSync(path, 0o644);
    rmSync(path);
    const { manifestFileName } = await import('../../src/manifest/manifest.js');
    writeFileSync(join(copy.root, 'manifests', manifestFileName(forged)), forged.bytes);
    rmSync(join(copy.root, 'manifests', third.file));
    Object.assign(seal, { successor: forged.digest });
    copy.rechain();
    const { findings } = await audit(copy.root, plan.stored.file);
    expect(findings).toEqual([]);
    const { findings: own } = await auditWithoutLedger(copy.root, manifestFileName(forged), second);
    expect(
      own.filter(({ code }) => code === 'EXPOSURE_UNDERSTATED').map(({ where }) => where.pointer),
    ).toEqual(['/exposure/slots_run']);
  });

  it('a ledger that names another successor than the one that supersedes it is found', async () => {
    const copy = insider(plan.stored);
    Object.assign(copy.find('amended'), { reason: 'another reason' });
    copy.rechain();
    expect(await codes(copy.root, plan.stored)).toEqual(['AMENDMENT_DIFFERS']);
    expect(await codes(copy.root, second)).toContain('AMENDMENT_DIFFERS');
  });

  it('a run after the amendment is found', async () => {
    const copy = insider(plan.stored);
    const seal = copy.find('amended');
    const at = copy.entries.findIndex(({ type }) => type === 'attempt.started');
    copy.entries.splice(copy.entries.indexOf(seal), 1);
    copy.entries.splice(at, 0, seal);
    copy.rechain();
    expect(await codes(copy.root, plan.stored)).toContain('UNLAWFUL');
  });
});

describe('a bundle of an amended plan', () => {
  it('holds the ledgers that it carries from, and is audited with them', async () => {
    const options = { out: 'bundle', tar: 'bundle.tar', beforeUnblinding: 'for a test' };
    const { folder } = await exportBundle(plan.root, third.file, options);
    for (const path of [folder, join(plan.root, 'bundle.tar')]) {
      const result = await auditBundle(path);
      expect(result.findings).toEqual([]);
      expect(result.checked.filter((line) => line.startsWith('the superseded ledger'))).toHaveLength(2);
    }
    const loose = LooseBundle.read(folder);
    expect(loose.predecessors.size).toBe(2);
  });

  const EDITS: Record<string, readonly [string, (loose: LooseBundle) => void]> = {
    'another outcome in the old ledger': [
      'PREDECESSOR_DIFFERS',
      (loose) => {
        for (const { entries } of loose.predecessors.values())
          for (const entry of entries) if (entry.type === 'slot.settled') entry.value = 1;
      },
    ],
    'a carried outcome': [
      'CARRIED_DIFFERS',
      (loose) => {
        const { outcome } = loose.find('slot.carried', (entry) => entry.outcome.kind === 'settled');
        (outcome as { value: number }).value = 0.5;
      },
    ],
    'the old ledger taken away': ['PREDECESSOR_DIFFERS', (loose) => loose.predecessors.clear()],
  };

  it.each(Object.entries(EDITS))('%s is found', async (_, [code, edit]) => {
    const loose = LooseBundle.read(join(plan.root, 'bundle'));
    edit(loose);
    const { findings } = await auditBundle(loose.write(join(plan.root, 'edited')));
    expect(findings.map((one) => one.code)).toContain(code);
  });
});

async function openThird() {
  const book = await openBook(plan.root, third, 'read');
  try {
    return [...book.store.entries()].flatMap(({ entry }) =>
      entry.type === 'attempt.started' ? [entry] : [],
    );
  } finally {
    book.close();
  }
}

/** Audits a forged revision with the ledger of the true one, whose opening then belongs to another manifest. */
function auditWithoutLedger(root: string, manifest: string, ledgerOf: StoredManifest) {
  return audit(root, manifest, { ledger: ledgerFolder(root, ledgerOf.file) });
}
