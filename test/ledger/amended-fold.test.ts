import { describe, expect, it } from 'vitest';
import { attemptId } from '../../src/attempts/slot-state.js';
import { digestOf } from '../../src/core/digest.js';
import type { DraftOf, EntryDraft } from '../../src/ledger/entries/entry.js';
import { protocolSchema } from '../../src/protocol/schema/protocol.js';
import type { Slot } from '../../src/slots/slot.js';
import {
  foldOf,
  gateDraft,
  openedDraft,
  PROTOCOL_VALUE,
  planContext,
  SLOTS,
  SlotScript,
  slotAt,
} from './support.js';

const CARRIES = {
  manifest: digestOf('the plan before'),
  ledger: 'a'.repeat(32),
  size: 40,
  root: 'b'.repeat(64),
  again: 0,
  dropped: 2,
};
const REPORT = digestOf('a report');

function keyOf({ queue, arm, trainingSeed, evaluationSeed, task, rep }: Slot) {
  return { queue, arm, training_seed: trainingSeed, evaluation_seed: evaluationSeed, task, rep };
}

function carried(slot: Slot, changes: Partial<DraftOf<'slot.carried'>> = {}): DraftOf<'slot.carried'> {
  const attempts = changes.attempts ?? 1;
  const basis = { kind: 'report' as const, attempt: attemptId(slot.id, attempts), report: REPORT };
  return {
    type: 'slot.carried',
    slot: slot.id,
    key: keyOf(slot),
    closed_by: 7,
    attempts,
    outcome: { kind: 'settled', value: 1, basis },
    ...changes,
  };
}

function unresolved(slot: Slot, reason: 'undetermined' | 'limit_reached' = 'undetermined') {
  return carried(slot, { outcome: { kind: 'unresolved', reason } });
}

function amended(changes: Partial<DraftOf<'amended'>> = {}): DraftOf<'amended'> {
  return {
    type: 'amended',
    successor: digestOf('the next plan'),
    revision: 2,
    reason: 'fewer seeds',
    ...changes,
  };
}

function noted(changes: Partial<DraftOf<'deviation.noted'>> = {}): DraftOf<'deviation.noted'> {
  return {
    type: 'deviation.noted',
    text: 'the stop rule of loops was switched on',
    selector: { arm: ['O'] },
    slots: { count: 12, digest: digestOf('ids') },
    ...changes,
  };
}

function unblinded(changes: Partial<DraftOf<'unblinded'>> = {}): DraftOf<'unblinded'> {
  return {
    type: 'unblinded',
    partial: true,
    planned: 18,
    settled: 0,
    unresolved: 0,
    pending: 18,
    ...changes,
  };
}

/** Folds a ledger that was opened with carried slots. */
function foldCarrying(drafts: readonly EntryDraft[], carries: typeof CARRIES | null = CARRIES) {
  return foldOf([{ ...openedDraft(), carries }, ...drafts], { bare: true });
}

describe('carried slots', () => {
  const [first, second, third, fourth] = SLOTS.filter(({ queue }) => queue === 'main') as [
    Slot,
    Slot,
    Slot,
    Slot,
  ];

  it('are closed from the start, count, and have their outcomes and histories elsewhere', () => {
    const failure = { kind: 'model_failure' as const, attempt: attemptId(third.id, 2) };
    const { fold, violations } = foldCarrying([
      carried(first),
      unresolved(second),
      carried(third, { attempts: 2, outcome: { kind: 'settled', value: 0, basis: failure } }),
      gateDraft(),
      ...new SlotScript(fourth).whole(1).drafts,
    ]);
    expect(violations).toEqual([]);
    expect(fold.slots.total()).toEqual({ planned: 18, pending: 14, open: 0, settled: 3, unresolved: 1 });
    expect(fold.slots.carried).toEqual({ settled: 2, unresolved: 1, attempts: 4 });
    expect([first, second, third, fourth].map(({ id }) => fold.slots.value(id))).toEqual([1, null, 0, 1]);
    expect([first, second, third].map(({ id }) => fold.slots.state(id).phase)).toEqual([
      'settled',
      'unresolved',
      'settled',
    ]);
    expect(fold.slots.state(third.id)).toMatchObject({
      attempts: [attemptId(third.id, 1), attemptId(third.id, 2)],
      basis: failure,
      by: 'rule',
    });
    expect(fold.slots.key(first.id)).toEqual(expect.objectContaining({ queue: 'main', task: first.task }));
    expect(fold.slots.carriedSlot(second.id)?.outcome).toEqual({
      kind: 'unresolved',
      reason: 'undetermined',
    });
    expect(fold.slots.carriedSlot(fourth.id)).toBeNull();
    expect([...fold.slots.outcomes()].map(({ state }) => state).sort()).toEqual([
      'settled',
      'settled',
      'settled',
      'unresolved',
    ]);
    // what was spent on them is the other ledger's
    expect(fold.attempts).toEqual({ first: 1, replacement: 0, regrade: 0 });
    expect(fold.costs().used.stages).toBe(2);
    expect([...fold.slots.open()]).toEqual([]);
  });

  const REFUSED: Record<string, readonly [EntryDraft[], string, RegExp, (typeof CARRIES | null)?]> = {
    'an attempt for one': [
      [carried(first), gateDraft(), ...new SlotScript(first).start().drafts],
      'P22',
      /carried: nothing follows/,
    ],
    'a replacement for an unresolved one': [
      [unresolved(first, 'limit_reached'), gateDraft(), ...new SlotScript(first).start().drafts],
      'P22',
      /carried: nothing follows/,
    ],
    'a verdict on one': [
      [unresolved(first), gateDraft(), ...new SlotScript(first).verdict('infrastructure').drafts],
      'P22',
      /carried: nothing follows/,
    ],
    'one after the first gate': [[gateDraft(), carried(first)], 'P22', /directly after the opening/],
    'one twice': [[carried(first), carried(first)], 'law 3', /closed or under way already/],
    'one into a ledger that carries nothing': [[carried(first)], 'P22', /carries nothing/, null],
    'one that is not planned': [
      [carried(first, { key: { ...keyOf(first), rep: 99 } })],
      'law 1',
      /not in the plan/,
    ],
    'one under the id of another': [[carried({ ...first, id: second.id })], 'P6', /the slot of this key/],
    'a value beyond the range': [
      [
        carried(first, {
          outcome: {
            kind: 'settled',
            value: 2,
            basis: { kind: 'report', attempt: attemptId(first.id, 1), report: REPORT },
          },
        }),
      ],
      'P11',
      /outside \[0, 1\]/,
    ],
    'a model failure that counts': [
      [
        carried(first, {
          outcome: {
            kind: 'settled',
            value: 1,
            basis: { kind: 'model_failure', attempt: attemptId(first.id, 1) },
          },
        }),
      ],
      'P14',
      /counts 0/,
    ],
    'a settlement by another attempt than the last': [
      [
        carried(first, {
          attempts: 2,
          outcome: {
            kind: 'settled',
            value: 1,
            basis: { kind: 'report', attempt: attemptId(first.id, 1), report: REPORT },
          },
        }),
      ],
      'law 3',
      /the last of 2 attempts/,
    ],
    'more attempts than the plan allows': [[carried(first, { attempts: 4 })], 'P13', /allows 3 attempts/],
  };

  it.each(Object.entries(REFUSED))('refuse %s', (_, [drafts, clause, message, carries = CARRIES]) => {
    const { fold, violations } = foldCarrying(drafts, carries);
    expect(violations).toEqual([
      { seq: drafts.length, clause, message: expect.stringMatching(message) as string },
    ]);
    expect(fold.attempts.first).toBe(0);
  });
});

describe('an amended plan', () => {
  const done = new SlotScript(slotAt(0, 'main')).whole(1);
  const stuck = new SlotScript(slotAt(1, 'main'))
    .start()
    .failed('generate', 'time_limit')
    .finished('failure');

  it('takes notes, checkpoints of sessions and a partial unblinding with late verdicts', () => {
    const judged = new SlotScript(slotAt(1, 'main'))
      .start()
      .failed('generate', 'time_limit')
      .finished('failure')
      .unresolved();
    const { fold, violations } = foldOf([
      ...done.drafts,
      ...judged.drafts,
      amended(),
      noted(),
      unblinded({ settled: 1, unresolved: 1, pending: 16 }),
      ...judged.verdict('model', true).drafts.slice(-1),
    ]);
    expect(violations).toEqual([]);
    expect(fold.isSealed).toBe(true);
    expect(fold.amended).toMatchObject({ revision: 2, reason: 'fewer seeds' });
    expect(fold.slots.total()).toMatchObject({ settled: 1, unresolved: 1 });
  });

  const REFUSED: Record<string, readonly [EntryDraft[], string, RegExp]> = {
    'a first attempt': [new SlotScript(slotAt(2, 'main')).start().drafts, 'P22', /after the amendment/],
    'the end of an attempt under way': [stuck.unresolved().drafts.slice(-1), 'P22', /follows the amendment/],
    'a second amendment': [[amended({ revision: 3 })], 'P22', /amended before/],
  };

  it.each(Object.entries(REFUSED))('refuses %s', (_, [drafts, clause, message]) => {
    const before = [...done.drafts, ...stuck.drafts.slice(0, 4), amended()];
    const { violations } = foldOf([...before, ...drafts]);
    expect(violations).toEqual([
      { seq: before.length + 2, clause, message: expect.stringMatching(message) as string },
    ]);
  });

  it('refuses a verdict before unblinding: what was carried stays what it was', () => {
    const judged = new SlotScript(slotAt(1, 'main'))
      .start()
      .failed('generate', 'time_limit')
      .finished('failure')
      .unresolved();
    const before = [...judged.drafts, amended()];
    const { violations } = foldOf([...before, ...judged.verdict('model').drafts.slice(-1)]);
    expect(violations).toEqual([
      {
        seq: before.length + 2,
        clause: 'P22',
        message: expect.stringMatching(/carried as they are/) as string,
      },
    ]);
  });

  it.each([
    [{ successor: planContext().manifest }, /succeed itself/],
    [{ revision: 1 }, /does not follow revision 1/],
  ] as const)('refuses %j', (changes, message) => {
    const { fold, violations } = foldOf([amended(changes)]);
    expect(violations).toEqual([
      { seq: 2, clause: 'P22', message: expect.stringMatching(message) as string },
    ]);
    expect(fold.isSealed).toBe(false);
  });

  it('is not unblinded completely any more', () => {
    const all = SLOTS.flatMap((slot) => new SlotScript(slot).whole(1).drafts);
    const counts = { settled: 18, pending: 0, unresolved: 0 };
    const { violations } = foldOf([...all, amended(), unblinded({ ...counts, partial: false })]);
    expect(violations).toMatchObject([
      { clause: 'P22', message: expect.stringMatching(/in plan: / as never) },
    ]);
    expect(foldOf([...all, amended(), unblinded(counts)]).violations).toEqual([]);
  });
});

describe('unblinding', () => {
  const required = planContext(
    protocolSchema.parse({
      ...PROTOCOL_VALUE,
      attempts: { ...PROTOCOL_VALUE.attempts, adjudication: 'required' },
    }),
  );
  const rest = SLOTS.slice(1).flatMap((slot) => new SlotScript(slot).whole(1).drafts);
  const stuck = () =>
    new SlotScript(slotAt(0)).start().failed('generate', 'time_limit').finished('failure').unresolved();
  const complete = unblinded({ partial: false, settled: 17, unresolved: 1, pending: 0 });

  it('waits for the adjudication that the protocol requires', () => {
    const { violations } = foldOf([...rest, ...stuck().drafts, complete], { context: required });
    expect(violations).toMatchObject([
      { clause: 'P14', message: expect.stringMatching(/1 undetermined slots have no adjudicator's verdict/) },
    ]);
  });

  it('goes on when the last word is an adjudicator’s, or the protocol asks for none', () => {
    const judged = stuck().verdict('undetermined').unresolved();
    expect(foldOf([...rest, ...judged.drafts, complete], { context: required }).violations).toEqual([]);
    expect(foldOf([...rest, ...stuck().drafts, complete]).violations).toEqual([]);
  });

  it('in part: counts what is started afterwards', () => {
    const early = unblinded({ settled: 1, pending: 17 });
    const { fold, violations } = foldOf([
      ...new SlotScript(slotAt(0)).whole(1).drafts,
      early,
      ...new SlotScript(slotAt(1)).whole(1).drafts,
      ...new SlotScript(slotAt(2)).start().failed('generate', 'connection_lost').finished('failure').drafts,
      ...new SlotScript(slotAt(3)).start().drafts,
    ]);
    expect(violations).toEqual([]);
    expect(fold.startedAfterUnblinding).toBe(3);
  });
});

describe('a noted deviation', () => {
  it('is kept with its place, and whether outcomes could be read then', () => {
    const { fold, violations } = foldOf([noted(), unblinded(), noted({ text: 'later', selector: {} })]);
    expect(violations).toEqual([]);
    expect(fold.noted).toMatchObject([
      {
        seq: 2,
        text: 'the stop rule of loops was switched on',
        selector: { arm: ['O'] },
        afterUnblinding: false,
      },
      { seq: 4, text: 'later', selector: {}, afterUnblinding: true },
    ]);
  });

  it('cannot touch more slots than are planned', () => {
    const { violations } = foldOf([noted({ slots: { count: 19, digest: digestOf('ids') } })]);
    expect(violations).toMatchObject([{ seq: 2, clause: 'B9' }]);
  });
});
