import { describe, expect, it } from 'vitest';
import { attemptId } from '../../src/attempts/slot-state.js';
import type { CommandContext, CommandDefinition } from '../../src/commands/command.js';
import { command as show } from '../../src/commands/show.js';
import { command as status } from '../../src/commands/status.js';
import { command as unblind } from '../../src/commands/unblind.js';
import { digestOf } from '../../src/core/digest.js';
import { openBook } from '../../src/ledger/book.js';
import { unblind as unblindBook } from '../../src/ledger/unblind.js';
import {
  appendScripts,
  gateDraft,
  newBook,
  newWorkspace,
  PROTOCOL_VALUE,
  pausedDraft,
  SLOTS,
  SlotScript,
  slotAt,
} from './support.js';

function run(
  command: CommandDefinition,
  root: string,
  args: string[] = [],
  options: Record<string, string | boolean> = {},
) {
  const context: CommandContext = {
    root,
    json: false,
    terminal: false,
    progress: () => undefined,
    signal: new AbortController().signal,
    force: new AbortController().signal,
    now: () => '2026-12-01T00:00:00.000Z',
  };
  return command.run(args, options, context);
}

/** Values that cannot come about by accident, so that they can be looked for in everything that is printed. */
const VALUE = 0.123456789;

function outcomeScripts(): SlotScript[] {
  const [first, second, third, fourth] = SLOTS.filter(({ queue }) => queue === 'main');
  if (first === undefined || second === undefined || third === undefined || fourth === undefined)
    throw new Error('no slots');
  return [
    new SlotScript(first).whole(VALUE),
    new SlotScript(second).start().failed('generate', 'body_malformed').finished('failure').settled(),
    new SlotScript(third).start().failed('generate', 'time_limit').finished('failure').unresolved(),
    new SlotScript(fourth)
      .start()
      .generated()
      .failed('grade', 'grader_fault')
      .finished('failure')
      .start('regrade')
      .graded(VALUE)
      .finished('report')
      .settled(),
  ];
}

async function closedBook(changes: Record<string, unknown> = {}) {
  const rest = SLOTS.filter(({ queue }) => queue === 'main')
    .slice(4)
    .map((slot) => new SlotScript(slot).whole(VALUE));
  const made = await newBook([...outcomeScripts(), ...rest], changes);
  made.book.store.append([pausedDraft('finished')]);
  made.book.close();
  return made;
}

function expectNarrow(text: string): void {
  for (const line of text.split('\n')) expect(line.length, line).toBeLessThanOrEqual(100);
}

describe('status', () => {
  it('works before the first run', async () => {
    const { root, stored } = await newWorkspace();
    const { json, text } = await run(status, root);
    expect(json).toMatchObject({
      manifest: { digest: stored.digest },
      plan: { count: 18 },
      ledger: null,
      overdue: [],
      gaps: [],
    });
    expect(text).toContain('No ledger yet: all 18 slots are pending.');
    expectNarrow(text);
  });

  it('counts, and works beside a run', async () => {
    const { root, book } = await newBook(outcomeScripts());
    const { json, text } = await run(status, root);
    expect(json).toMatchObject({
      ledger: {
        head: { ...book.head() },
        queues: [
          {
            queue: 'broad',
            role: 'exploratory',
            planned: 6,
            pending: 6,
            open: 0,
            settled: 0,
            unresolved: 0,
            coverage: 0,
          },
          {
            queue: 'main',
            role: 'confirmatory',
            planned: 12,
            pending: 8,
            open: 0,
            settled: 3,
            unresolved: 1,
            coverage: 0.25,
          },
        ],
        total: { planned: 18, pending: 14, settled: 3, unresolved: 1 },
        attempts: { first: 4, replacement: 0, regrade: 1, recovered: 0 },
        sessions: [{ pid: 100, ended: null }],
        unblinded: null,
      },
    });
    expect(text).toContain('blinded until `boundbook unblind`');
    expect(text).toContain(book.head().root);
    expectNarrow(text);
  });

  it('shows no outcome and no arm', async () => {
    const { root } = await closedBook();
    const { json, text } = await run(status, root);
    // What the manifest still lacks names models; what the ledger says names none.
    const { ledger } = json as { ledger: object };
    for (const output of [text, JSON.stringify(ledger)]) {
      expect(output).not.toContain(String(VALUE));
      expect(output).not.toMatch(/\bmodel\b|\bbase\b|O@1|"O"/);
    }
  });

  it('names plans whose report is overdue, until they are unblinded', async () => {
    const { root } = await closedBook({ due: '2026-11-29' });
    const due = [{ name: 'tiny', revision: 1, due: '2026-11-29' }];
    const before = await run(status, root);
    expect(before.json).toMatchObject({ overdue: due });
    expect(before.text).toContain('OVERDUE: the report of tiny revision 1 was due on 2026-11-29.');
    await run(unblind, root);
    expect((await run(status, root)).json).toMatchObject({ overdue: [] });
  });
});

describe('unblind', () => {
  it('refuses while confirmatory slots are open, and says which', async () => {
    const { root, book } = await newBook([...outcomeScripts(), new SlotScript(slotAt(0, 'broad')).start()]);
    const size = book.store.countEntries();
    await expect(run(unblind, root)).rejects.toMatchObject({
      code: 'UNBLIND_TOO_EARLY',
      exitCode: 2,
      faults: [
        { where: 'broad', message: '5 pending and 1 open (exploratory)' },
        { where: 'main', message: '8 pending and 0 open (confirmatory)' },
      ],
    });
    expect(book.store.countEntries()).toBe(size);
  });

  it('records once, and says so the second time', async () => {
    const { root } = await closedBook();
    const first = await run(unblind, root);
    const entry = { type: 'unblinded', partial: false, planned: 18, settled: 11, unresolved: 1, pending: 6 };
    expect(first.json).toMatchObject({ already_unblinded: false, unjudged: 1, entry });
    expect(first.text).toContain('1 unresolved slots were never adjudicated');
    expectNarrow(first.text);
    const second = await run(unblind, root);
    expect(second.json).toMatchObject({
      already_unblinded: true,
      entry: (first.json as { entry: object }).entry,
    });
    expect(second.text).toMatch(/unblinded before, at .*nothing was recorded now/);
    expect(second.exitCode).toBeUndefined();
    const book = await openBook(root, undefined, 'read');
    expect([...book.store.entries()].filter(({ entry: { type } }) => type === 'unblinded').length).toBe(1);
    book.close();
  });

  it('in part is marked as such, unless all is closed anyway', async () => {
    const open = await newBook(outcomeScripts());
    expect((await run(unblind, open.root, [], { partial: true })).json).toMatchObject({
      entry: { partial: true, settled: 3, pending: 14 },
    });
    const closed = await closedBook();
    expect((await run(unblind, closed.root, [], { partial: true })).json).toMatchObject({
      entry: { partial: false },
    });
  });

  it('names what is not bound, before it looks for a ledger', async () => {
    const { root } = await newWorkspace({}, (name) => name.startsWith('tasks/'));
    await expect(run(unblind, root)).rejects.toMatchObject({
      code: 'UNBLIND_TOO_EARLY',
      exitCode: 2,
      hint: expect.stringContaining('boundbook bind') as string,
      faults: [
        {
          where: 'bindings',
          message: expect.stringContaining(
            'binding runner/boundbook, binding runner/server, binding tokenizer/O@1',
          ) as string,
        },
      ],
    });
  });

  it('of a plan that is not ready and has a ledger all the same is partial at best', async () => {
    const rest = SLOTS.map((slot) => new SlotScript(slot).whole(VALUE));
    const { root } = await newBook(rest, { pending: ['a precision policy'] });
    await expect(run(unblind, root)).rejects.toMatchObject({
      faults: [{ where: 'bindings', message: 'not everything is bound: a precision policy' }],
    });
    expect((await run(unblind, root, [], { partial: true })).json).toMatchObject({
      entry: { partial: true, settled: 18, pending: 0 },
    });
  });

  it('names adjudication as a precondition of its own, until every undetermined slot has a verdict', async () => {
    const attempts = { ...PROTOCOL_VALUE.attempts, adjudication: 'required' };
    const { root, book } = await closedBook({ attempts });
    await expect(run(unblind, root)).rejects.toMatchObject({
      code: 'UNBLIND_TOO_EARLY',
      hint: expect.stringMatching(
        /^An adjudicator closes undetermined slots with `boundbook adjudicate`. --partial/,
      ) as string,
      faults: [
        {
          where: 'adjudication',
          message: "1 undetermined slots have no adjudicator's verdict, which the protocol requires",
        },
      ],
    });
    const [undetermined] = [...book.fold.slots.unresolved()];
    const writer = await openBook(root, undefined, 'write', () => '2026-12-01T00:00:00.000Z');
    writer.store.append([
      {
        type: 'attribution.recorded',
        attempt: attemptId(undetermined?.slot ?? '', 1),
        slot: undetermined?.slot ?? '',
        attribution: 'undetermined',
        rule: null,
        by: 'adjudicator',
        late: false,
        reason: 'nobody can tell',
      },
      { type: 'slot.unresolved', slot: undetermined?.slot ?? '', reason: 'undetermined' },
    ]);
    writer.close();
    expect((await run(unblind, root)).json).toMatchObject({ unjudged: 0, entry: { partial: false } });
  });

  it('looks at its preconditions in the transaction of its entry: what a run started meanwhile counts', async () => {
    const { root, stored } = await closedBook();
    const ours = await openBook(root, stored, 'write', () => '2026-12-01T00:00:00.000Z');
    const theirs = await openBook(root, stored, 'write', () => '2026-12-01T00:00:00.000Z');
    expect(ours.fold.obstacles()).toEqual([]);
    theirs.store.append([{ ...gateDraft('6'.repeat(32)), manifest: stored.digest }]);
    appendScripts(theirs.store, [new SlotScript(slotAt(0, 'broad'), '6'.repeat(32)).start()]);
    const size = theirs.store.size;
    expect(() => unblindBook(ours, false)).toThrowError(/not complete/);
    expect(theirs.store.countEntries()).toBe(size);
    theirs.store.append([
      { type: 'amended', successor: digestOf('next'), revision: 2, reason: 'fewer seeds' },
    ]);
    // Not even in part: the revision that took its place carries its outcomes.
    expect(() => unblindBook(ours, true)).toThrowError(/was amended, and the plan in force carries/);
    expect(theirs.store.countEntries()).toBe(size + 1);
    ours.close();
    theirs.close();
  });

  it('needs a ledger', async () => {
    const { root } = await newWorkspace();
    await expect(run(unblind, root)).rejects.toMatchObject({ code: 'LEDGER_NOT_FOUND' });
  });
});

describe('show', () => {
  it('masks everything that an outcome can be read from, entry by entry and slot by slot', async () => {
    const { root, book } = await closedBook();
    const secrets = [
      String(VALUE),
      'malformed',
      'model',
      ...outcomeScripts().flatMap(({ objects }) =>
        objects.map(({ digest }) => digest).filter((_, i) => i > 0),
      ),
    ];
    const shownDigests = new Set(
      outcomeScripts().flatMap(({ drafts }) =>
        drafts.flatMap((draft) =>
          draft.type === 'attempt.started' && draft.request !== null ? [draft.request] : [],
        ),
      ),
    );
    const outputs: string[] = [];
    for (let seq = 2; seq < book.head().size; seq++) {
      const { text, json } = await run(show, root, [String(seq)]);
      outputs.push(text, JSON.stringify(json));
    }
    for (const { id } of SLOTS) {
      const { text, json } = await run(show, root, [id]);
      outputs.push(text, JSON.stringify(json));
      expectNarrow(text);
    }
    const printed = outputs.join('\n');
    for (const secret of secrets)
      if (!shownDigests.has(secret as never)) expect(printed).not.toContain(secret);
    expect(printed).toContain('Outcomes are masked until `boundbook unblind`.');
    // A slot that was settled by its report and one that was settled by a failure look alike, but for their ids.
    const [settled, failed] = SLOTS.filter(({ queue }) => queue === 'main');
    const alike = async (slot: string) => {
      const { json } = await run(show, root, [slot]);
      const { entries, state } = json as {
        entries: { type: string; masked?: boolean }[];
        state: { phase: string };
      };
      return { types: entries.map(({ type, masked }) => [type, masked]), phase: state.phase };
    };
    expect(await alike(failed?.id ?? '')).toEqual(await alike(settled?.id ?? ''));
  });

  it('shows what is unresolved and why', async () => {
    const { root } = await closedBook();
    const { json, text } = await run(show, root, [slotAt(2, 'main').id]);
    expect(json).toMatchObject({
      kind: 'slot',
      key: ['main', 'O', 1, 0, 't2', 0],
      state: { phase: 'unresolved', reason: 'undetermined' },
      entries: [
        { type: 'attempt.started' },
        { result: { kind: 'failure', signals: { cause: 'time_limit' } } },
        { attribution: 'undetermined' },
        { outcome: 'failure' },
        { reason: 'undetermined' },
      ],
    });
    expect(text).toContain('time_limit');
    // No rule of this plan speaks of time limits.
    expect(json).toMatchObject({
      failures: [{ attribution: 'undetermined', rule: null, decides: 'no_rule', evidence: [] }],
    });
    expect(text).toMatch(/^Attempt [0-9a-f]{8}: undetermined, because no rule matches\.$/m);
    expectNarrow(text);
  });

  it('finds a slot by its attempt, and a planned slot without one', async () => {
    const { root } = await closedBook();
    const script = outcomeScripts()[3];
    const regrade = script?.attempt ?? '';
    expect((await run(show, root, [regrade])).json).toMatchObject({ kind: 'slot', slot: script?.slot.id });
    const { json, text } = await run(show, root, [slotAt(0, 'broad').id]);
    expect(json).toMatchObject({ state: { phase: 'planned' }, entries: [] });
    expect(text).toContain('No attempt was started yet.');
  });

  it('gives objects out by what they are', async () => {
    const { root, stored } = await closedBook();
    const [script] = outcomeScripts();
    const [request, candidate, response, report] = script?.objects.map(({ digest }) => digest) ?? [];
    expect((await run(show, root, [String(request)])).json).toMatchObject({
      kind: 'object',
      text: `request of ${script?.attempt}`,
      // Where an attempt that an outcome rests on begins is masked.
      named_by: [{ seq: null, as: 'request' }],
    });
    expect((await run(show, root, [stored.digest])).text).toContain('as manifest_object');
    for (const digest of [candidate, response, report]) {
      await expect(run(show, root, [String(digest)])).rejects.toMatchObject({
        code: 'OUTCOME_BLINDED',
        exitCode: 2,
      });
    }
    await expect(run(show, root, [digestOf('nowhere')])).rejects.toMatchObject({ code: 'OBJECT_MISSING' });
    await run(unblind, root);
    expect((await run(show, root, [String(report)])).json).toMatchObject({
      text: `report of ${script?.attempt}: ${VALUE}`,
      named_by: [{ as: 'result.report' }, { as: 'basis.report' }],
    });
  });

  it('shows everything after unblinding, or where the protocol does not blind', async () => {
    const masked = await closedBook();
    await run(unblind, masked.root);
    const open = await closedBook({ blinding: 'none' });
    for (const { root } of [masked, open]) {
      const { json, text } = await run(show, root, [slotAt(0, 'main').id]);
      expect(json).toMatchObject({ masked: false, state: { phase: 'settled', value: VALUE } });
      expect(text).toContain(String(VALUE));
    }
  });

  it('refuses what it cannot find, each with its reason', async () => {
    const { root } = await closedBook();
    await expect(run(show, root, ['f'.repeat(32)])).rejects.toMatchObject({ code: 'SLOT_NOT_PLANNED' });
    await expect(run(show, root, ['100000'])).rejects.toMatchObject({
      code: 'USAGE',
      message: expect.stringContaining('there is no entry 100000'),
    });
    for (const what of ['', '-1', '1.5', '007', 'sha256:abc', 'F'.repeat(32)]) {
      await expect(run(show, root, [what])).rejects.toMatchObject({ code: 'USAGE' });
    }
    const { root: empty } = await newWorkspace();
    await expect(run(show, empty, ['0'])).rejects.toMatchObject({ code: 'LEDGER_NOT_FOUND' });
  });
});

describe('a command', () => {
  it.each([status, show, unblind])('tells what it does: $name', ({ name, summary, examples }) => {
    expect(summary.length).toBeLessThanOrEqual(100);
    for (const example of examples) expect(example).toContain(`boundbook ${name}`);
  });
});
