import { describe, expect, it } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { openBook } from '../../src/ledger/book.js';
import type { EntryOf } from '../../src/ledger/entries/entry.js';
import type { StoredManifest } from '../../src/manifest/workspace.js';
import type { SelectField } from '../../src/slots/selector.js';
import { type PlanSetting, put, RULES, type Trial, trial } from '../runner/fixture.js';
import { amend, entriesOf } from './support.js';

const SETTING: PlanSetting = {
  prompts: { a: 'right a', b: 'wrong b', c: 'html c' },
  seeds: [42, 7, 5],
  reps: 2,
};

function only(field: SelectField, ...values: string[]) {
  const filter: [SelectField, ReadonlySet<string>] = [field, new Set(values)];
  return { shard: null, only: new Map([filter]) };
}

async function partly(setting: PlanSetting = SETTING, ...seeds: string[]): Promise<Trial> {
  const plan = await trial(setting);
  await plan.run({ selection: only('training_seed', ...seeds) });
  return plan;
}

async function headOf(root: string, stored: StoredManifest) {
  const book = await openBook(root, stored, 'read');
  book.close();
  return { ...book.head(), ledger: book.opened.ledger, fold: book.fold };
}

function carriedOf(entries: readonly { readonly type: string }[]) {
  return entries.filter((entry): entry is EntryOf<'slot.carried'> => entry.type === 'slot.carried');
}

describe('the first run of an amended plan', () => {
  it('takes over every closed slot word for word, and never runs it again', async () => {
    const plan = await partly(SETTING, '42');
    const old = await plan.entries();
    const { stored } = await amend(plan, SETTING, { seeds: [42, 7] });
    const sealed = await headOf(plan.root, plan.stored);
    const asked = plan.requests().length;
    await plan.run();
    const entries = await entriesOf(plan.root, stored);
    const [opened, ...rest] = entries;
    expect(opened).toMatchObject({
      type: 'ledger.opened',
      manifest: stored.digest,
      carries: {
        manifest: plan.stored.digest,
        ledger: sealed.ledger,
        size: sealed.size,
        root: sealed.root,
        again: 0,
        dropped: 0,
      },
    });
    const carried = carriedOf(entries);
    expect(rest.slice(0, 6)).toEqual(carried);
    for (const { slot, closed_by, outcome, attempts } of carried) {
      const closing = old[closed_by];
      expect(attempts).toBe(1);
      if (closing?.type === 'slot.settled') {
        const { value, basis } = closing;
        expect(closing.slot).toBe(slot);
        expect(outcome).toEqual({ kind: 'settled', value, basis });
      } else {
        expect(closing).toMatchObject({ type: 'slot.unresolved', slot, reason: 'undetermined' });
        expect(outcome).toEqual({ kind: 'unresolved', reason: 'undetermined' });
      }
    }
    expect(carried.map(({ outcome }) => outcome.kind).sort()).toEqual([
      ...Array(4).fill('settled'),
      ...Array(2).fill('unresolved'),
    ]);
    // Seed 7 alone was asked.
    expect(plan.requests().length - asked).toBe(6);
    const started = entries.flatMap((entry) =>
      entry.type === 'attempt.started' ? [entry.key.training_seed] : [],
    );
    expect(started).toEqual(Array(6).fill(7));
    const { fold } = await headOf(plan.root, stored);
    expect(fold.slots.total()).toEqual({ planned: 12, pending: 0, open: 0, settled: 8, unresolved: 4 });
    // The old ledger is as it was sealed.
    expect((await headOf(plan.root, plan.stored)).root).toBe(sealed.root);
    for (const manifest of [stored.file, plan.stored.file])
      expect((await audit(plan.root, manifest)).findings).toEqual([]);
  });

  it('counts what is carried in coverage, and what is asked for by name is done', async () => {
    const plan = await partly(SETTING, '42');
    await amend(plan, SETTING, { seeds: [42, 7] });
    const summary = await plan.run({ selection: only('training_seed', '42') });
    expect(summary.json).toMatchObject({
      selected: { slots: 6, done: 6 },
      closed_now: 0,
      attempts: { first: 0 },
    });
    expect(plan.requests()).toHaveLength(6);
  });

  it('carries on what was carried', async () => {
    const plan = await partly(SETTING, '42');
    const second = await amend(plan, SETTING, { seeds: [42, 7] });
    await plan.run({ selection: only('task', 'a') });
    const before = await entriesOf(plan.root, second.stored);
    const third = await amend(plan, SETTING, { seeds: [42, 7], reps: 1, revision: 3 });
    await plan.run();
    const entries = await entriesOf(plan.root, third.stored);
    expect(entries[0]).toMatchObject({
      carries: { manifest: second.stored.digest, again: 0, dropped: 4 },
    });
    const carried = carriedOf(entries);
    // seed 42: tasks a, b, c; seed 7: task a; one rep of two
    expect(carried).toHaveLength(4);
    const types = carried.map(({ slot, closed_by }) => {
      const closing = before[closed_by];
      expect(closing).toMatchObject({ slot });
      return closing?.type;
    });
    expect(types.sort()).toEqual(['slot.carried', 'slot.carried', 'slot.carried', 'slot.settled']);
    for (const { stored } of [second, third])
      expect((await audit(plan.root, stored.file)).findings).toEqual([]);
  });

  it('carries from the last plan that ran', async () => {
    const plan = await partly(SETTING, '42');
    await amend(plan, SETTING, { seeds: [42, 7] });
    const third = await amend(plan, SETTING, { seeds: [42], revision: 3 });
    expect(third).toMatchObject({ entry: null, exposure: { slots_run: 6 } });
    expect(third.carry?.carried).toHaveLength(6);
    await plan.run();
    const entries = await entriesOf(plan.root, third.stored);
    expect(entries[0]).toMatchObject({ carries: { manifest: plan.stored.digest } });
    expect(carriedOf(entries)).toHaveLength(6);
    expect(plan.requests()).toHaveLength(6);
    expect((await audit(plan.root, undefined)).findings).toEqual([]);
  });
});

describe('under other conditions', () => {
  const CHANGES: Record<string, readonly [Partial<PlanSetting>, number, readonly string[]]> = {
    'the limits of the runner': [
      { limits: 'request_s: 3, queue_wait_s: 3, response_bytes: 1000000' },
      0,
      ['runner'],
    ],
    'the rules of attempts': [
      { attempts: `{ replacements: 0, regrades: 1, breaker: 50, rules: ${RULES} }` },
      0,
      ['attempts'],
    ],
    'the grader': [{ grader: '{ kind: exact, answer: answer }' }, 0, ['condition']],
    'the breaker alone, which is no condition of a slot': [
      { attempts: `{ replacements: 1, regrades: 1, breaker: 5, rules: ${RULES} }` },
      6,
      [],
    ],
    'adjudication, which only undetermined slots have left': [
      { attempts: `{ replacements: 1, regrades: 1, breaker: 50, adjudication: required, rules: ${RULES} }` },
      4,
      ['adjudication'],
    ],
  };

  it.each(Object.entries(CHANGES))('%s', async (_, [change, count, because]) => {
    const plan = await partly(SETTING, '42');
    const { carry } = await amend(plan, SETTING, { ...change, seeds: [42, 7] });
    expect(carry?.carried).toHaveLength(count);
    expect([...(carry?.because ?? [])]).toEqual(because.map((name) => [name, 6 - count]));
    expect(carry?.again).toBe(6 - count);
  });

  it('one changed task is executed again, and its siblings are carried', async () => {
    const plan = await partly(SETTING, '42');
    const tasks = ['right a', 'right b', 'html c'].map((prompt, i) =>
      JSON.stringify({ id: 'abc'[i], prompt, answer: '7' }),
    );
    put(plan.root, 'tasks/all.jsonl', `${tasks.join('\n')}\n`);
    const { stored, carry } = await amend(plan, SETTING, { seeds: [42, 7] });
    expect([...(carry?.because ?? [])]).toEqual([['task', 2]]);
    await plan.run();
    expect(plan.requests()).toHaveLength(6 + 2 + 6);
    const [opened] = await entriesOf(plan.root, stored);
    expect(opened).toMatchObject({ carries: { again: 2, dropped: 0 } });
    expect((await audit(plan.root, undefined)).findings).toEqual([]);
  });

  it('one changed model is executed again, and the others are carried', async () => {
    const plan = await partly(SETTING, '42', '7');
    put(plan.root, 'models/M-7/config.json', '{"model_type":"another"}');
    const { carry } = await amend(plan, SETTING, { seeds: [42, 7] });
    expect([...(carry?.because ?? [])]).toEqual([['binding weights/M@7', 6]]);
    expect(carry?.carried).toHaveLength(6);
  });
});

describe('what was given up', () => {
  it('is not planned again under its name', async () => {
    const plan = await partly(SETTING, '42', '5');
    const second = await amend(plan, SETTING, { seeds: [42, 7] });
    expect(second.carry).toMatchObject({ dropped: 6 });
    await plan.run({ limit: 1 });
    await expect(amend(plan, SETTING, { seeds: [42, 7, 5], revision: 3 })).rejects.toMatchObject({
      code: 'AMEND_REFUSED',
      message: '6 slots were run under an earlier revision and given up by a later one',
    });
  });
});
