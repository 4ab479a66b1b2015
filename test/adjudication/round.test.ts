import { spawnSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { RoundFile } from '../../src/adjudication/round-file.js';
import { putItems } from '../../src/attempts/adjudication.js';
import { audit } from '../../src/audit/audit.js';
import { exportBundle } from '../../src/audit/bundle/export.js';
import type { OptionValue } from '../../src/commands/command.js';
import { command as report } from '../../src/commands/report.js';
import { type AmendmentHooks, amendPlan } from '../../src/ledger/amendment.js';
import { openBook } from '../../src/ledger/book.js';
import type { Entry, EntryOf } from '../../src/ledger/entries/entry.js';
import { LedgerFold } from '../../src/ledger/fold.js';
import { lookUp } from '../../src/ledger/lookup.js';
import { unblindPlan } from '../../src/ledger/unblind.js';
import { exposureOf } from '../../src/report/exposure.js';
import { hasPython, NO_PYTHON, VERIFIER } from '../verify/python.js';
import { type Desk, LEAKS, listed, makeDesk } from './support.js';

let desk: Desk;
afterEach(() => desk.remove());

async function entries(): Promise<readonly Entry[]> {
  const book = await openBook(desk.root, undefined, 'read');
  const all = [...book.store.entries()].map(({ entry }) => entry);
  book.close();
  return all;
}

function ofType<T extends Entry['type']>(all: readonly Entry[], type: T): readonly EntryOf<T>[] {
  return all.filter((entry): entry is EntryOf<T> => entry.type === type);
}

const judge = (
  alias: string,
  verdict: string,
  reason = 'the proxy closed the connection',
): Record<string, OptionValue> => ({
  item: alias,
  verdict,
  reason,
});

describe('a round of adjudication', () => {
  it('from the first look to a clean audit, without an arm or an outcome in sight', {
    timeout: 60_000,
  }, async () => {
    desk = await makeDesk();
    const printed: string[] = [];
    const { questions } = await listed(desk, { duplicates: '0.5' });
    // Four items, two of them twice.
    expect(questions.map(({ judged }) => judged)).toEqual(Array(6).fill(false));
    expect((await desk.run({ list: true })).json).toMatchObject({ late: false, blinded: true });
    for (const { alias } of questions) {
      const shown = await desk.run({ item: alias });
      expect(shown.text).toContain('proxy said no: upstream closed');
      printed.push(shown.text, JSON.stringify(shown.json));
    }
    const hits = await desk.run({ item: questions[0]?.alias ?? '', search: 'UPSTREAM' });
    expect(hits.json).toMatchObject({ hits: [{ piece: 'attempt 1: generate, response', line: 1 }] });
    for (const leak of ['M@42', '0.7071']) {
      expect((await desk.run({ item: questions[0]?.alias ?? '', search: leak })).json).toMatchObject({
        hits: [],
      });
    }
    await expect(unblindPlan(desk.root, undefined, false, desk.book.now)).rejects.toMatchObject({
      code: 'UNBLIND_TOO_EARLY',
      faults: [
        {
          where: 'adjudication',
          message: expect.stringContaining("4 undetermined slots have no adjudicator's verdict"),
        },
        { where: 'adjudication', message: expect.stringContaining('is open') },
      ],
    });
    for (const [i, { alias }] of questions.entries()) {
      const done = await desk.run(judge(alias, i % 2 === 0 ? 'model' : 'cannot-tell'));
      printed.push(done.text, JSON.stringify(done.json));
    }
    expect((await listed(desk)).questions.every(({ judged }) => judged)).toBe(true);
    const closed = await desk.run({ close: true });
    printed.push(closed.text, JSON.stringify(closed.json));
    for (const leak of LEAKS) for (const text of printed) expect(text).not.toContain(leak);

    const all = await entries();
    const [opened] = ofType(all, 'adjudication.opened');
    const [revealed] = ofType(all, 'adjudication.revealed');
    const [end] = ofType(all, 'adjudication.closed');
    expect(opened).toMatchObject({ items: 4, duplicates: 2, revises: false });
    const verdicts = ofType(all, 'verdict.opened');
    const put = putItems(
      { secret: revealed?.secret ?? '' },
      [...new Set(verdicts.map(({ attempt }) => attempt))],
      2,
    );
    expect(put.map(({ alias }) => alias)).toEqual(questions.map(({ alias }) => alias));
    // Computed here from the entries: both copies of two items, every other verdict alike.
    const pairs = [...new Set(verdicts.map(({ attempt }) => attempt))]
      .map((attempt) => verdicts.filter((one) => one.attempt === attempt).map(({ verdict }) => verdict))
      .filter(({ length }) => length === 2);
    expect(end).toMatchObject({
      verdicts: 6,
      pairs: 2,
      agreeing: pairs.filter(([a, b]) => a === b).length,
      abandoned: null,
    });
    expect(ofType(all, 'attribution.recorded').filter(({ by }) => by === 'adjudicator')).toHaveLength(4);

    const { entry } = await unblindPlan(desk.root, undefined, false, desk.book.now);
    expect(entry).toMatchObject({ partial: false, planned: 11, pending: 0 });
    expect(entry.settled + entry.unresolved).toBe(11);
    await desk.run({ out: 'report.json', format: 'json' }, undefined, report);
    const file = { name: 'report.json', bytes: readFileSync(join(desk.root, 'report.json')) };
    const verdict = await audit(desk.root, undefined, { report: file });
    expect(verdict.findings).toEqual([]);
    expect(verdict.remarks.join('\n')).toMatch(
      /6 verdicts on 4 items; \d of 2 items that were judged twice agree/,
    );
    expect(verdict.checked.join('\n')).toContain('6 verdicts of 1 rounds of adjudication');
  });

  it.skipIf(!hasPython)(`is found sound by the second verifier, with its report (${NO_PYTHON})`, async () => {
    desk = await makeDesk();
    const { questions } = await listed(desk, { duplicates: '0.5' });
    for (const [i, { alias }] of questions.entries())
      await desk.run(judge(alias, i < 3 ? 'model' : 'cannot-tell'));
    await desk.run({ close: true });
    await unblindPlan(desk.root, undefined, false, desk.book.now);
    const { folder } = await exportBundle(desk.root, undefined, { out: 'bundle' });
    const { status, stdout } = spawnSync('python3', [VERIFIER, folder], { encoding: 'utf8' });
    expect([status, stdout]).toEqual([0, expect.any(String)]);
  });

  it('an infrastructure verdict earns the replacement, which the next run makes', async () => {
    desk = await makeDesk([4]);
    const { questions } = await listed(desk, { duplicates: '0' });
    await desk.run(judge(questions[0]?.alias ?? '', 'infrastructure'));
    expect((await desk.run({ close: true })).json).toMatchObject({
      closed: { applied: 1, pairs: 0, late: false },
    });
    const book = await openBook(desk.root, undefined, 'read');
    const [open] = [...book.fold.slots.open()];
    expect(open?.state).toMatchObject({
      phase: 'attributed',
      attribution: 'infrastructure',
      by: 'adjudicator',
    });
    book.close();
    expect((await audit(desk.root, undefined)).findings).toEqual([]);
  });

  it('after unblinding verdicts are late and change nothing', async () => {
    desk = await makeDesk([4], (text) => text, true);
    const { questions } = await listed(desk, { duplicates: '0' });
    expect((await desk.run({ list: true })).json).toMatchObject({ late: true, blinded: false });
    await desk.run(judge(questions[0]?.alias ?? '', 'model'));
    expect((await desk.run({ close: true })).json).toMatchObject({ closed: { applied: 1, late: true } });
    const all = await entries();
    expect(ofType(all, 'attribution.recorded').at(-1)).toMatchObject({ by: 'adjudicator', late: true });
    const book = await openBook(desk.root, undefined, 'read');
    expect(book.fold.slots.total()).toMatchObject({ settled: 10, unresolved: 1 });
    book.close();
    const { findings, remarks } = await audit(desk.root, undefined);
    expect(findings).toEqual([]);
    expect(remarks.join('\n')).toContain('outcomes were unblinded before its end');
  });

  it('a partial unblinding within a round makes its verdicts late', async () => {
    desk = await makeDesk([4]);
    const { questions } = await listed(desk, { duplicates: '0' });
    await desk.run(judge(questions[0]?.alias ?? '', 'model'));
    await unblindPlan(desk.root, undefined, true, desk.book.now);
    expect((await desk.run({ close: true })).json).toMatchObject({ closed: { late: true } });
    expect((await audit(desk.root, undefined)).findings).toEqual([]);
  });

  it('a verdict can be revised in a later round, before unblinding', async () => {
    desk = await makeDesk([4]);
    for (const [verdict, revise] of [
      ['cannot-tell', false],
      ['model', true],
    ] as const) {
      const { questions } = await listed(desk, { duplicates: '0', ...(revise ? { revise } : {}) });
      await desk.run(judge(questions[0]?.alias ?? '', verdict));
      await desk.run({ close: true });
    }
    expect(await desk.run({ list: true })).toMatchObject({ json: { round: null } });
    const book = await openBook(desk.root, undefined, 'read');
    expect(book.fold.slots.total()).toMatchObject({ settled: 11, unresolved: 0 });
    book.close();
    expect((await audit(desk.root, undefined)).findings).toEqual([]);
  });

  it('goes on after an interruption between the file and the ledger, and keeps its secret to its owner', async () => {
    desk = await makeDesk([1, 4]);
    const { questions, round } = await listed(desk, { duplicates: '0' });
    const path = join(desk.book.ledger, 'adjudication/round.json');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const { secret } = JSON.parse(readFileSync(path, 'utf8')) as { secret: string };
    const alias = questions[0]?.alias ?? '';
    const file = await RoundFile.hold(desk.book.ledger);
    const said = { verdict: 'model', reason: 'never committed at all', nonce: '0'.repeat(64) } as const;
    await file.write({ round, secret, verdicts: { [alias]: said } });
    file.release();
    await desk.run(judge(alias, 'cannot-tell'));
    await desk.run({ close: true });
    const [opened] = ofType(await entries(), 'verdict.opened');
    expect(opened).toMatchObject({
      alias,
      verdict: 'undetermined',
      reason: 'the proxy closed the connection',
    });
    expect(() => statSync(path)).toThrow();
  });

  it('two adjudicators at once: the second is told', async () => {
    desk = await makeDesk([4]);
    const file = await RoundFile.hold(desk.book.ledger);
    await expect(desk.run({ list: true })).rejects.toMatchObject({
      code: 'LEDGER_BUSY',
      message: 'another adjudicator is at work on this ledger',
    });
    file.release();
    await desk.run({ list: true });
  });

  it('refuses what does not fit, and says what to do', async () => {
    desk = await makeDesk([4]);
    await expect(desk.run({ close: true })).rejects.toMatchObject({ code: 'ADJUDICATION_REFUSED' });
    const { questions } = await listed(desk, { duplicates: '1' });
    expect(questions).toHaveLength(2);
    const alias = questions[0]?.alias ?? '';
    for (const [options, code] of [
      [{ close: true }, 'ADJUDICATION_REFUSED'],
      [{ item: 'f'.repeat(16) }, 'ADJUDICATION_REFUSED'],
      [judge(alias, 'guilty'), 'USAGE'],
      [judge(alias, 'model', 'bad luck'), 'USAGE'],
      [judge(alias, 'model', '--- ... !!!'), 'USAGE'],
      [judge(alias, 'model', 'x y z '.repeat(1000)), 'USAGE'],
      [{ item: alias, verdict: 'model' }, 'USAGE'],
      [{ duplicates: '1.5' }, 'USAGE'],
      [{ list: true, close: true }, 'USAGE'],
      [{ verdict: 'model' }, 'USAGE'],
    ] as const) {
      await expect(desk.run({ ...options }), JSON.stringify(options)).rejects.toMatchObject({ code });
    }
    await desk.run(judge(alias, 'model'));
    await expect(desk.run(judge(alias, 'cannot-tell'))).rejects.toMatchObject({
      message: `a verdict on ${alias} is committed already`,
    });
  });

  it('whose secret is lost is given up with a reason, and named by every audit', async () => {
    desk = await makeDesk([4]);
    const { questions } = await listed(desk, { duplicates: '0' });
    await desk.run(judge(questions[0]?.alias ?? '', 'model'));
    const file = await RoundFile.hold(desk.book.ledger);
    file.remove();
    file.release();
    await expect(desk.run({ list: true })).rejects.toMatchObject({ code: 'ADJUDICATION_REFUSED' });
    expect((await desk.run({ abandon: 'the disk was lost' })).json).toMatchObject({ committed: 1 });
    const { findings, remarks } = await audit(desk.root, undefined);
    expect(findings).toEqual([]);
    expect(remarks.join('\n')).toContain(
      'was abandoned (the disk was lost): 1 committed verdicts can never be opened',
    );
    expect((await listed(desk)).questions.length).toBeGreaterThan(0);
  });

  it('`show` does not tell a verdict of model from one of cannot tell before unblinding', async () => {
    const looks: string[] = [];
    for (const verdict of ['model', 'cannot-tell']) {
      if (looks.length > 0) desk.remove();
      desk = await makeDesk([4]);
      const { questions } = await listed(desk, { duplicates: '0' });
      await desk.run(judge(questions[0]?.alias ?? '', verdict));
      await desk.run({ close: true });
      const all = await entries();
      const { slot = '', seq = 0 } = ofType(all, 'verdict.opened')[0] ?? {};
      const book = await openBook(desk.root, undefined, 'read');
      const shown = [slot, String(seq), String(seq + 1), String(seq + 2)].map((what) => lookUp(book, what));
      book.close();
      // Links and ids of a round are drawn at random.
      looks.push(JSON.stringify(shown).replace(/"(prev|leaf)":"[0-9a-f]{64}"/g, ''));
      for (const word of ['verdict.opened', 'undetermined', 'settled', '"model"', 'proxy'])
        expect(looks.at(-1)).not.toContain(word);
    }
    expect(looks[0]).toBe(looks[1]);
  });

  it('survives being written down and read again by the state cache', async () => {
    desk = await makeDesk([1, 4]);
    const { questions } = await listed(desk, { duplicates: '1' });
    await desk.run(judge(questions[0]?.alias ?? '', 'model'));
    const book = await openBook(desk.root, undefined, 'read');
    const { fold } = book;
    const copy = new LedgerFold(book.context);
    copy.restore(JSON.parse(JSON.stringify(fold.snapshot())), [...fold.slots.liveSince(0)]);
    book.close();
    expect(copy.adjudications.open).toEqual(fold.adjudications.open);
    expect(copy.adjudications.open).toMatchObject({ duplicates: 2, judged: [questions[0]?.alias] });
    // The one goes on where the other stopped.
    await desk.run(judge(questions[1]?.alias ?? '', 'cannot-tell'));
    await desk.run({ close: true });
    for (const entry of await entries()) expect(copy.apply(entry)).toEqual([]);
    expect(copy.adjudications.open).toBeNull();
    expect(copy.adjudications.closed).toMatchObject([{ items: 2, verdicts: 2 }]);
  });

  it('stands in the way of an amendment, which would lose its verdicts', async () => {
    desk = await makeDesk([4]);
    await listed(desk);
    const path = join(desk.root, 'protocol/small.yaml');
    writeFileSync(
      path,
      readFileSync(path, 'utf8').replace('revision: 1', 'revision: 2').replace('reps: 2', 'reps: 1'),
    );
    const hooks: AmendmentHooks = {
      exposureOf: (superseded, book) => exposureOf(superseded, book?.fold ?? null),
      isAlive: () => false,
    };
    const request = {
      protocol: 'protocol/small.yaml',
      reason: 'fewer reps',
      superseded: undefined,
      declared: {},
    };
    const { root } = desk;
    const { now, product } = desk.book;
    await expect(amendPlan(request, { root, now, product }, hooks)).rejects.toMatchObject({
      code: 'AMEND_REFUSED',
      message: 'a round of adjudication is open: its verdicts would be lost',
    });
  });

  it('nothing waits: nothing is opened', async () => {
    desk = await makeDesk([]);
    expect((await desk.run()).text).toBe('No slot waits for a verdict.');
    expect(ofType(await entries(), 'adjudication.opened')).toEqual([]);
  });
});
