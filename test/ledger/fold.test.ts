import { describe, expect, it } from 'vitest';
import { attemptId } from '../../src/attempts/slot-state.js';
import type { DraftOf, EntryDraft } from '../../src/ledger/entries/entry.js';
import { PlanIndex, slotRules } from '../../src/ledger/plan-index.js';
import { sessionSeconds } from '../../src/ledger/sessions.js';
import { SettledSlot } from '../../src/ledger/slot-records.js';
import { protocolSchema } from '../../src/protocol/schema/protocol.js';
import { slotId } from '../../src/slots/slot.js';
import {
  CONTEXT,
  foldOf,
  gateDraft,
  openedDraft,
  PROTOCOL,
  PROTOCOL_VALUE,
  pausedDraft,
  SLOTS,
  SlotScript,
  slotAt,
  TASK_IDS,
} from './support.js';

const SECOND = '6'.repeat(32);

function unblindedDraft(changes: Partial<DraftOf<'unblinded'>> = {}): DraftOf<'unblinded'> {
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

describe('a lawful ledger', () => {
  it('ends in the counts, values and states that its entries say', () => {
    const scripts = [
      new SlotScript(slotAt(0, 'main')).whole(1),
      new SlotScript(slotAt(1, 'main')).whole(0),
      // replaced once, then settled
      new SlotScript(slotAt(2, 'main'))
        .start()
        .failed('generate', 'connection_lost')
        .finished('failure')
        .start('replacement')
        .generated()
        .graded(1)
        .finished('report')
        .settled(),
      // its grading failed once, and the same candidate was graded again
      new SlotScript(slotAt(3, 'main'))
        .start()
        .generated()
        .failed('grade', 'grader_fault')
        .finished('failure')
        .start('regrade')
        .graded(1)
        .finished('report')
        .settled(),
      // nobody knows why
      new SlotScript(slotAt(4, 'main'))
        .start()
        .failed('generate', 'time_limit')
        .finished('failure')
        .unresolved(),
      // the limit of replacements
      new SlotScript(slotAt(5, 'main'))
        .start()
        .failed('generate', 'connection_lost')
        .finished('failure')
        .start('replacement')
        .failed('generate', 'connection_lost')
        .finished('failure')
        .unresolved('limit_reached'),
      // the model's fault
      new SlotScript(slotAt(0, 'broad'))
        .start()
        .failed('generate', 'body_malformed')
        .finished('failure')
        .settled(),
      new SlotScript(slotAt(1, 'broad')).start().generated(),
    ];
    const { fold, violations } = foldOf(scripts.flatMap(({ drafts }) => drafts));
    expect(violations).toEqual([]);
    expect(fold.slots.counts()).toEqual([
      { queue: 'broad', role: 'exploratory', planned: 6, pending: 4, open: 1, settled: 1, unresolved: 0 },
      { queue: 'main', role: 'confirmatory', planned: 12, pending: 6, open: 0, settled: 4, unresolved: 2 },
    ]);
    expect(fold.slots.total()).toEqual({ planned: 18, pending: 10, open: 1, settled: 5, unresolved: 2 });
    expect([0, 1, 2, 3, 4, 5, 6].map((i) => fold.slots.value(slotAt(i, 'main').id))).toEqual([
      1,
      0,
      1,
      1,
      null,
      null,
      null,
    ]);
    expect(fold.slots.value(slotAt(0, 'broad').id)).toBe(0);
    expect(fold.attempts).toEqual({ first: 8, replacement: 2, regrade: 1 });
    expect(fold.attributions).toEqual({ infrastructure: 4, model: 1, undetermined: 1 });
    expect([...fold.slots.open()].map(({ slot, session, state }) => [slot, session, state.phase])).toEqual([
      [slotAt(1, 'broad').id, '5'.repeat(32), 'grading'],
    ]);
    const isClosed = fold.slots.closedByNumber();
    const closed = SLOTS.map(({ id }) => fold.slots.isClosed(id));
    expect(SLOTS.map((_, number) => isClosed(number))).toEqual(closed);
    // What is unresolved can still be judged.
    expect(closed.filter((one) => one).length).toBe(5);
    expect([...fold.slots.unresolved()].map(({ slot }) => slot)).toEqual([
      slotAt(4, 'main').id,
      slotAt(5, 'main').id,
    ]);
    expect([...fold.slots.outcomes()].map(({ state }) => state).sort()).toEqual([
      'pending',
      ...Array(5).fill('settled'),
      'unresolved',
      'unresolved',
    ]);
    expect(fold.slots.key(slotAt(3, 'main').id)).toEqual({
      queue: 'main',
      arm: 'O',
      trainingSeed: 1,
      evaluationSeed: 0,
      task: 't2',
      rep: 1,
    });
    expect(fold.slots.key(slotAt(11, 'main').id)).toBeNull();
    expect(fold.slots.isTouched(slotAt(11, 'main').id)).toBe(false);
  });

  it('splits cost into used, failed, unused and open (P21)', () => {
    const regraded = new SlotScript(slotAt(0))
      .start()
      .generated(11)
      .failed('grade', 'grader_fault')
      .finished('failure')
      .start('regrade')
      .graded(1)
      .finished('report')
      .settled();
    const replaced = new SlotScript(slotAt(1))
      .start()
      .failed('generate', 'connection_lost')
      .finished('failure')
      .start('replacement')
      .generated(7)
      .graded(0)
      .finished('report')
      .settled();
    const model = new SlotScript(slotAt(2))
      .start()
      .failed('generate', 'body_malformed')
      .finished('failure')
      .settled();
    const unresolved = new SlotScript(slotAt(3))
      .start()
      .generated(100)
      .failed('grade', 'time_limit')
      .finished('failure')
      .unresolved();
    const open = new SlotScript(slotAt(4)).start().generated(null);
    const { fold, violations } = foldOf(
      [regraded, replaced, model, unresolved, open].flatMap(({ drafts }) => drafts),
    );
    expect(violations).toEqual([]);
    const { used, failed, unused, open: still } = fold.costs();
    // generation 2 s of which 0.5 s waiting, grading 0.25 s, a failure 1 s
    expect(used).toEqual({
      stages: 5,
      seconds: 2 + 0.25 + 2 + 0.25 + 1,
      queue_seconds: 1,
      generated_tokens: 18,
      uncounted_generations: 1,
      gradings: 2,
    });
    expect(failed).toEqual({
      stages: 3,
      seconds: 1 + 1 + 1,
      queue_seconds: 0,
      generated_tokens: 0,
      uncounted_generations: 1,
      gradings: 2,
    });
    expect(unused).toEqual({
      stages: 1,
      seconds: 2,
      queue_seconds: 0.5,
      generated_tokens: 100,
      uncounted_generations: 0,
      gradings: 0,
    });
    expect(still).toEqual({
      stages: 1,
      seconds: 2,
      queue_seconds: 0.5,
      generated_tokens: 0,
      uncounted_generations: 1,
      gradings: 0,
    });
  });

  it('moves effort back and forth with the verdicts of an adjudicator', () => {
    const drafts = new SlotScript(slotAt(0))
      .start()
      .generated(9)
      .failed('grade', 'time_limit')
      .finished('failure')
      .unresolved();
    const before = foldOf(drafts.drafts).fold.costs();
    expect([before.used.generated_tokens, before.unused.generated_tokens]).toEqual([0, 9]);
    const judged = drafts.verdict('model').settled();
    const { fold, violations } = foldOf(judged.drafts);
    expect(violations).toEqual([]);
    expect([fold.costs().used.generated_tokens, fold.costs().unused.generated_tokens]).toEqual([9, 0]);
    const revised = foldOf(judged.verdict('undetermined').unresolved().drafts);
    expect(revised.violations).toEqual([]);
    expect([
      revised.fold.costs().used.generated_tokens,
      revised.fold.costs().unused.generated_tokens,
    ]).toEqual([0, 9]);
    expect(revised.fold.slots.total()).toMatchObject({ settled: 0, unresolved: 1, open: 0 });
  });

  it('counts service time once, with its devices, and leaves off-time out (B8)', () => {
    const service = { session: '5'.repeat(32), service: 'O@1#0', model: 'O@1' };
    const started: EntryDraft = {
      type: 'service.started',
      ...service,
      pid: 7,
      port: 8000,
      start: 0,
      effective: null,
      seconds: 3,
    };
    const stopped: EntryDraft = {
      type: 'service.stopped',
      ...service,
      reason: 'done',
      exit_status: 0,
      signal: null,
      seconds: 50,
      gpus: 2,
    };
    const work = new SlotScript(slotAt(0)).whole(1).drafts;
    const ended = foldOf([started, ...work, stopped, pausedDraft('finished')]).fold.costs();
    expect(ended).toMatchObject({ service_seconds: 50, gpu_seconds: 100, session_seconds: 8 });
    // The session died: what is known is up to its last entry, 5 s after the service was ready; 2 GPUs as declared.
    const later = [gateDraft(SECOND, 200), pausedDraft('finished', SECOND)];
    const died = foldOf([started, ...work, ...later]).fold.costs();
    expect(died).toMatchObject({ service_seconds: 8, gpu_seconds: 16, session_seconds: 6 + 1 });
  });

  it('holds what a service held against what is declared (P21)', () => {
    const service = { session: '5'.repeat(32), service: 'O@1#0', model: 'O@1' };
    const { violations } = foldOf([
      { type: 'service.started', ...service, pid: 7, port: 8000, start: 0, effective: null, seconds: 3 },
      {
        type: 'service.stopped',
        ...service,
        reason: 'done',
        exit_status: 0,
        signal: null,
        seconds: 50,
        gpus: 0,
      },
    ]);
    expect(violations).toMatchObject([
      { clause: 'P21', message: 'the service held 0 GPUs, and 2 are declared' },
    ]);
  });

  it('lets a command runner hold its devices while its sessions work', () => {
    const command = { argv: ['x'], wall_s: 1, output_bytes: 1 };
    const protocol = protocolSchema.parse({
      ...PROTOCOL_VALUE,
      runner: {
        adapter: 'command',
        generate: command,
        grade: command,
        grace_s: 1,
        candidate: 'answer',
        gpus: 3,
        sources: {},
      },
    });
    const { fold } = foldOf([...new SlotScript(slotAt(0)).whole(1).drafts, pausedDraft('finished')], {
      context: { ...CONTEXT, protocol },
    });
    expect(fold.costs()).toMatchObject({ session_seconds: 6, gpu_seconds: 18, service_seconds: 0 });
  });

  it('keeps why sessions ended', () => {
    const { fold, violations } = foldOf([
      pausedDraft('breaker'),
      gateDraft(SECOND),
      pausedDraft('finished', SECOND),
    ]);
    expect(violations).toEqual([]);
    expect(fold.deviations).toEqual([{ seq: 2, session: '5'.repeat(32), reason: 'breaker', detail: null }]);
    expect([...fold.sessions.all()].map(({ id, end }) => [id, end?.reason])).toEqual([
      ['5'.repeat(32), 'breaker'],
      [SECOND, 'finished'],
    ]);
  });

  it('hands an attempt over to the session that recovered it', () => {
    const script = new SlotScript(slotAt(0)).start().generated();
    const drafts = [
      ...script.drafts,
      gateDraft(SECOND, 200),
      ...script.recovered('candidate', SECOND).graded(1).drafts.slice(2),
    ];
    const { fold, violations } = foldOf(drafts);
    expect(violations).toEqual([]);
    expect(fold.recovered).toBe(1);
    expect([...fold.slots.open()].map(({ session }) => session)).toEqual([SECOND]);
  });

  it('counts no time of a session that is gone when what it left is recorded (B8)', () => {
    const script = new SlotScript(slotAt(0)).start();
    const { fold, violations } = foldOf([
      ...script.drafts,
      gateDraft(SECOND, 200),
      ...script.recovered('end', SECOND).generated().graded(1).finished('report').settled().drafts.slice(1),
    ]);
    expect(violations).toEqual([]);
    // A second between entries: the gate and the start, then the gate of the second session and five entries.
    expect([...fold.sessions.all()].map((session) => sessionSeconds(session))).toEqual([1, 5]);
  });

  it('passes over entries that it has taken before', () => {
    const script = new SlotScript(slotAt(0)).whole(1);
    const { fold } = foldOf(script.drafts);
    const size = fold.size;
    expect(fold.apply({ ...gateDraft(), seq: 1, prev: null, time: '' })).toEqual([]);
    expect(fold.size).toBe(size);
  });
});

describe('an unlawful ledger', () => {
  const whole = () => new SlotScript(slotAt(0)).whole(1);
  const started = (changes: Partial<DraftOf<'attempt.started'>>): EntryDraft => {
    const [draft] = new SlotScript(slotAt(0)).start().drafts;
    if (draft?.type !== 'attempt.started') throw new Error('no start');
    return { ...draft, ...changes };
  };
  const foreignKey = {
    queue: 'main',
    arm: 'base',
    training_seed: null,
    evaluation_seed: 0,
    task: 't3',
    rep: 0,
  };
  const keyed = (key: typeof foreignKey): EntryDraft => {
    const id = slotId({ ...key, trainingSeed: key.training_seed, evaluationSeed: key.evaluation_seed });
    return started({ slot: id, attempt: attemptId(id, 1), key });
  };
  const closed = () =>
    SLOTS.filter(({ queue }) => queue === 'main')
      .map((slot) => new SlotScript(slot).whole(1))
      .flatMap(({ drafts }) => drafts);
  const complete = unblindedDraft({ partial: false, settled: 12, pending: 6 });

  const cases: [string, () => EntryDraft[], string, RegExp][] = [
    [
      'another manifest behind the gate',
      () => [{ ...gateDraft(SECOND), manifest: `sha256:${'0'.repeat(64)}` }],
      'law 1',
      /belongs to the manifest/,
    ],
    ['a second opening', () => [openedDraft()], 'law 1', /opened before/],
    ['a session that passes twice', () => [gateDraft()], 'law 1', /passed the gate before/],
    ['an attempt without a gate', () => [started({ session: SECOND })], 'law 1', /never passed the gate/],
    [
      'an attempt after the end of its session',
      () => [pausedDraft('finished'), ...new SlotScript(slotAt(0)).start().drafts],
      'law 1',
      /ended before \(finished\)/,
    ],
    ['a second end', () => [pausedDraft('finished'), pausedDraft('signal')], 'law 1', /ended before/],
    ['a task outside the plan', () => [keyed(foreignKey)], 'law 1', /not in the plan/],
    [
      'a rep outside the plan',
      () => [keyed({ ...foreignKey, task: 't1', rep: 2 })],
      'law 1',
      /not in the plan/,
    ],
    [
      'a seed that the arm has not',
      () => [keyed({ ...foreignKey, task: 't1', training_seed: 7 as unknown as null })],
      'law 1',
      /not in the plan/,
    ],
    [
      'an arm outside the queue',
      () => [keyed({ ...foreignKey, task: 't1', arm: 'E' })],
      'law 1',
      /not in the plan/,
    ],
    [
      'a slot id that is not its key',
      () => [started({ slot: slotAt(1).id, attempt: attemptId(slotAt(1).id, 1) })],
      'P6',
      /the slot of this key is/,
    ],
    ['another sampling seed', () => [started({ sampling_seed: 1 })], 'P18', /sampling seed is/],
    ['an attempt of another name', () => [started({ attempt: 'e'.repeat(32) })], 'P16', /is named/],
    [
      'an end without a start',
      () => new SlotScript(slotAt(0)).start().generated().drafts.slice(1),
      'law 2',
      /no attempt was ever started/,
    ],
    [
      'a second first attempt',
      () => [...whole().drafts, ...new SlotScript(slotAt(0)).start().drafts],
      'P11',
      /settled: no further attempt/,
    ],
    [
      'a later report',
      () => [...whole().drafts, ...new SlotScript(slotAt(0)).start().generated().graded(0).drafts.slice(2)],
      'law 3',
      /never adopted/,
    ],
    [
      'a settlement of another value',
      () => [...whole().drafts.slice(0, 4), { ...(whole().drafts[4] as DraftOf<'slot.settled'>), value: 0 }],
      'law 3',
      /the value is 1, not 0/,
    ],
    [
      'a reward outside the range',
      () => new SlotScript(slotAt(0)).start().generated().graded(2).drafts,
      'P11',
      /outside \[0, 1\]/,
    ],
    [
      'an attribution that the rules do not give',
      () =>
        new SlotScript(slotAt(0))
          .start()
          .failed('generate', 'time_limit')
          .drafts.map((draft) =>
            draft.type === 'attribution.recorded'
              ? { ...draft, attribution: 'infrastructure' as const }
              : draft,
          ),
      'P14',
      /the rules say undetermined/,
    ],
    [
      'a recovery by a session without a gate',
      () => new SlotScript(slotAt(0)).start().recovered('nothing', SECOND).drafts,
      'law 1',
      /never passed the gate/,
    ],
    [
      'a verdict without a reason',
      () => [
        ...new SlotScript(slotAt(0)).start().failed('generate', 'time_limit').finished('failure').unresolved()
          .drafts,
        {
          ...(new SlotScript(slotAt(0)).start().verdict('model')
            .drafts[1] as DraftOf<'attribution.recorded'>),
          reason: null,
        },
      ],
      'P14',
      /gives a reason/,
    ],
    [
      'a verdict called late before unblinding',
      () =>
        new SlotScript(slotAt(0))
          .start()
          .failed('generate', 'time_limit')
          .finished('failure')
          .unresolved()
          .verdict('model', true).drafts,
      'P14',
      /late means/,
    ],
    ['an unblinding too early', () => [unblindedDraft({ partial: false })], 'P22', /main: 12 pending/],
    [
      'an unblinding with other counts',
      () => [unblindedDraft({ settled: 1, pending: 17 })],
      'P22',
      /counts are not those/,
    ],
    [
      'a second unblinding',
      () => [unblindedDraft(), unblindedDraft()],
      'P22',
      /unblinded before, by entry 2/,
    ],
    [
      'a start after a complete unblinding',
      () => [...closed(), complete, ...new SlotScript(slotAt(0, 'broad')).start().drafts],
      'P22',
      /nothing is started after/,
    ],
    [
      'a service of an unknown session',
      () => [
        {
          type: 'service.stopped',
          session: SECOND,
          service: 'x',
          model: 'O@1',
          reason: 'done',
          exit_status: 0,
          signal: null,
          seconds: 1,
          gpus: 0,
        },
      ],
      'law 1',
      /never passed the gate/,
    ],
  ];

  it.each(cases)('%s', (_, drafts, clause, message) => {
    const all = drafts();
    const { violations } = foldOf(all);
    expect(violations).toEqual([{ seq: all.length + 1, clause, message: expect.stringMatching(message) }]);
  });

  it('whose beginning is missing', () => {
    expect(foldOf([gateDraft()], { bare: true }).violations).toEqual([
      { seq: 0, clause: 'law 1', message: expect.stringMatching(/does not say what/) },
    ]);
    const { fold } = foldOf([]);
    expect(
      fold.apply({ ...pausedDraft('finished'), seq: 5, prev: null, time: '2026-11-30T00:00:09.000Z' }),
    ).toEqual([{ seq: 5, clause: 'law 4', message: 'entries 2 to 4 are missing' }]);
  });

  it('leaves the state as it was', () => {
    const script = whole();
    const late = new SlotScript(slotAt(0)).start().generated().graded(0).drafts[2];
    const { fold } = foldOf([...script.drafts, ...(late === undefined ? [] : [late])]);
    expect(fold.slots.value(slotAt(0).id)).toBe(1);
    expect(fold.slots.total()).toMatchObject({ settled: 1, open: 0 });
  });
});

describe('unblinding', () => {
  const unresolved = () =>
    new SlotScript(slotAt(0, 'main'))
      .start()
      .failed('generate', 'time_limit')
      .finished('failure')
      .unresolved();
  const rest = () =>
    SLOTS.filter(({ queue }) => queue === 'main')
      .slice(1)
      .flatMap((slot) => new SlotScript(slot).whole(0).drafts);

  it('is complete when every confirmatory slot is closed; late verdicts are kept and change nothing', () => {
    const script = unresolved();
    const draft = unblindedDraft({ partial: false, settled: 11, unresolved: 1, pending: 6 });
    const count = script.drafts.length;
    const { fold, violations } = foldOf([
      ...script.drafts,
      ...rest(),
      draft,
      ...script.verdict('model', true).drafts.slice(count),
    ]);
    expect(violations).toEqual([]);
    expect(fold.slots.state(slotAt(0, 'main').id)).toMatchObject({
      phase: 'unresolved',
      lateAttributions: 1,
    });
    expect(fold.outcomesVisible).toBe(true);
  });

  it('in part lets work go on', () => {
    const { fold, violations } = foldOf([unblindedDraft(), ...new SlotScript(slotAt(0)).whole(1).drafts]);
    expect(violations).toEqual([]);
    expect(fold.slots.total().settled).toBe(1);
  });
});

describe('the plan index', () => {
  it('numbers every slot as the expansion orders them, and back', () => {
    const index = new PlanIndex(PROTOCOL, TASK_IDS);
    expect(index.count).toBe(SLOTS.length);
    for (const [i, { id, ...key }] of SLOTS.entries()) {
      expect(index.indexOf(key)).toBe(i);
      expect(index.keyAt(i)).toEqual(key);
      expect(slotRules(PROTOCOL, key).slot).toBe(id);
    }
    expect(index.keyAt(SLOTS.length)).toBeNull();
    const [key] = SLOTS;
    if (key === undefined) return;
    for (const wrong of [
      { rep: -1 },
      { rep: 0.5 },
      { rep: 99 },
      { task: 't9' },
      { arm: 'X' },
      { trainingSeed: null },
      { evaluationSeed: 1 },
      { queue: 'other' },
    ]) {
      expect(index.indexOf({ ...key, ...wrong })).toBeNull();
    }
  });

  it('takes the reward range from the grader of the arm', () => {
    expect(slotRules(PROTOCOL, slotAt(0)).reward).toEqual({ min: 0, max: 1 });
    const grader = { kind: 'report', reward: { min: -1, max: 3 } };
    const conditions = { default: { ...PROTOCOL_VALUE.conditions.default, grader } };
    const protocol = protocolSchema.parse({ ...PROTOCOL_VALUE, conditions });
    expect(slotRules(protocol, slotAt(0)).reward).toEqual({ min: -1, max: 3 });
  });
});

describe('a settled slot in its lean form', () => {
  it('gives back the state that the machine had', () => {
    const [slot] = [slotAt(0)];
    const scripts = [
      new SlotScript(slot).whole(1),
      new SlotScript(slot)
        .start()
        .failed('generate', 'connection_lost')
        .finished('failure')
        .start('replacement')
        .generated()
        .failed('grade', 'grader_fault')
        .finished('failure')
        .start('regrade')
        .graded(0.5)
        .finished('report')
        .settled(),
    ];
    for (const { drafts } of scripts) {
      const { fold, violations } = foldOf(drafts.slice(0, -1));
      expect(violations).toEqual([]);
      const reported = fold.slots.state(slot.id);
      const state = foldOf(drafts).fold.slots.state(slot.id);
      if (reported.phase !== 'reported' || state.phase !== 'settled') throw new Error('not settled');
      const { attempts, replacements, regrades, lateAttributions, value, report, attempt } = reported;
      expect(state).toEqual({
        phase: 'settled',
        attempts,
        replacements,
        regrades,
        lateAttributions,
        value,
        basis: { kind: 'report', attempt, report },
        failure: null,
        by: 'report',
      });
      expect(SettledSlot.of(3, state)?.toState(slot.id)).toEqual(state);
    }
  });

  it('is not taken of a settlement that can be revised', () => {
    const drafts = new SlotScript(slotAt(0))
      .start()
      .failed('generate', 'time_limit')
      .finished('failure')
      .unresolved()
      .verdict('model')
      .settled().drafts;
    expect(SettledSlot.of(0, foldOf(drafts).fold.slots.state(slotAt(0).id))).toBeNull();
  });
});
