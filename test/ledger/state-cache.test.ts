import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { attemptId } from '../../src/attempts/slot-state.js';
import { digestOf, sha256Hex } from '../../src/core/digest.js';
import { AttemptBook } from '../../src/ledger/attempt-book.js';
import { type Book, openBook, openOrCreateBook } from '../../src/ledger/book.js';
import { BookState } from '../../src/ledger/book-state.js';
import { CheckpointBook } from '../../src/ledger/checkpoint-book.js';
import { SETTLED_FORM } from '../../src/ledger/closed-records.js';
import type { DraftOf } from '../../src/ledger/entries/entry.js';
import { type FoldSnapshot, LedgerFold } from '../../src/ledger/fold.js';
import { toObject } from '../../src/ledger/objects.js';
import { OpeningBook } from '../../src/ledger/openings.js';
import { PlanBook } from '../../src/ledger/plan-book.js';
import { LedgerReader } from '../../src/ledger/reader.js';
import { SessionBook } from '../../src/ledger/sessions.js';
import { SlotBook } from '../../src/ledger/slot-book.js';
import { SettledSlot } from '../../src/ledger/slot-records.js';
import { SlotTable } from '../../src/ledger/slot-table.js';
import { StateCache } from '../../src/ledger/state-cache.js';
import { CACHE_FILE } from '../../src/ledger/state-cache-file.js';
import { LedgerStore } from '../../src/ledger/store.js';
import { deepState, fieldNames } from './deep-state.js';
import { type Random, RandomLedger, seeded } from './random-ledger.js';
import {
  CONTEXT,
  gateDraft,
  MANIFEST_BYTES,
  newWorkspace,
  openedDraft,
  SlotScript,
  slotAt,
  TASK_FILE,
  type TestWorkspace,
  tempFolder,
  testClock,
} from './support.js';

/** 126 slots. */
const QUEUES = {
  broad: { tasks: 'two', reps: 1, arms: ['O', 'base'], role: 'exploratory' },
  main: { tasks: 'two', reps: 20, arms: ['O', 'base'], role: 'confirmatory' },
};

type Head = Readonly<Record<string, unknown>> & { readonly fold: FoldSnapshot };

/** What is the same in every fold of one plan, or is overwritten at every look-up. */
const NO_STATE = ['context', '#context', '#index', '#form', '#id', '#idWords', 'rules'];

const stateOf = (fold: LedgerFold): unknown => deepState(fold, NO_STATE);

async function open(workspace: TestWorkspace, clock: () => string): Promise<Book<LedgerStore>> {
  const book = await openOrCreateBook(workspace.root, workspace.stored, workspace.files, clock);
  onTestFinished(() => book.close());
  return book;
}

function append(book: Book<LedgerStore>, ledger: RandomLedger, count: number): void {
  book.store.append(Array.from({ length: count }, () => ledger.next()));
}

function checkpoint(book: Book<LedgerStore>): void {
  const { size, root } = book.head();
  book.store.append([
    { type: 'checkpoint', size, root, note: null, timestamps: [digestOf(`token of ${size}`)] },
  ]);
}

/** The state as any reader has it: every entry folded from the first. */
async function fromStart({ root, stored }: TestWorkspace): Promise<Book> {
  const book = await openBook(root, stored, 'read');
  book.close();
  return book;
}

/** What the cache in a folder holds, when it may be used. */
function load(book: Book): BookState | null {
  const reader = LedgerReader.open(book.folder);
  const cache = new StateCache(book.folder);
  try {
    return cache.load(book.context, reader);
  } finally {
    cache.close(null, reader);
    reader.close();
  }
}

/** A ledger with a cache: some slots in every kind of state, a checkpoint, and entries behind it. */
async function cachedLedger(): Promise<{ workspace: TestWorkspace; book: Book<LedgerStore>; file: string }> {
  const workspace = await newWorkspace({ queues: QUEUES });
  const book = await open(workspace, testClock());
  const ledger = new RandomLedger(book.context, seeded(7));
  append(book, ledger, 300);
  checkpoint(book);
  append(book, ledger, 20);
  return { workspace, book, file: join(book.folder, CACHE_FILE) };
}

function makeFolderOf(file: string): void {
  rmSync(file);
  mkdirSync(file);
}

/** Edits the head of a cache and makes its digest fit. */
function editHead(file: string, edit: (head: Head) => object): void {
  const db = new Database(file);
  const text = db.prepare<[], string>('SELECT body FROM head').pluck().get() ?? '';
  const body = JSON.stringify(edit(JSON.parse(text)));
  db.prepare('UPDATE head SET body = ?, digest = ?').run(body, sha256Hex(body));
  db.close();
}

describe('a ledger that is opened with a cached state', () => {
  it.each(Array.from({ length: 12 }, (_, i) => i + 1))(
    'has the state that folding it from its first entry gives (random lawful ledger %i)',
    async (seed) => {
      const random: Random = seeded(seed);
      const clock = testClock();
      const workspace = await newWorkspace({ queues: QUEUES });
      let book = await open(workspace, clock);
      const ledger = new RandomLedger(book.context, random);
      let used = 0;
      for (let round = 0; round < 8; round++) {
        append(book, ledger, random(120));
        if (random(3) > 0) checkpoint(book);
        append(book, ledger, random(20));
        const cached = load(book);
        if (cached !== null) {
          used++;
          for (const record of book.store.entries(cached.tail.size)) cached.take(record, 'the ledger');
          expect(cached.head()).toEqual(book.head());
        }
        if (random(3) === 0) {
          book.close();
          book = await open(workspace, clock);
        }
        const whole = await fromStart(workspace);
        expect(book.head()).toEqual(whole.head());
        const expected = stateOf(whole.fold);
        expect(stateOf(book.fold)).toEqual(expected);
        expect([...book.fold.slots.open()]).toEqual([...whole.fold.slots.open()]);
        if (cached !== null) expect(stateOf(cached.fold)).toEqual(expected);
      }
      expect(used).toBeGreaterThan(0);
    },
    60_000,
  );

  it('is verified and folded behind the cached position only', async () => {
    const { workspace, book, file } = await cachedLedger();
    const { size } = load(book)?.tail ?? { size: 0 };
    expect(size).toBe(book.head().size - 20);
    book.close();
    expect(load(book)?.tail.size).toBe(book.head().size);
    editHead(file, (head) => ({
      ...head,
      fold: { ...head.fold, attempts: { ...head.fold.attempts, recovered: 1_000_000 } },
    }));
    const written = await openBook(workspace.root, workspace.stored, 'write', testClock());
    expect(written.fold.recovered).toBe(1_000_000);
    written.close();
    // Reading takes nothing from a cache.
    expect((await fromStart(workspace)).fold.recovered).toBe(book.fold.recovered);
  });

  it('takes nothing from a cache older than the last checkpoint', async () => {
    const { book, file } = await cachedLedger();
    const old = `${file}.old`;
    copyFileSync(file, old);
    const { size } = book.head();
    expect(load(book)?.tail.size).toBe(size - 20);
    checkpoint(book);
    expect(load(book)?.tail.size).toBe(size + 1);
    copyFileSync(old, file);
    expect(load(book)).toBeNull();
  });

  it('takes nothing from the cache of another position, program, form, manifest or ledger', async () => {
    const { book, file } = await cachedLedger();
    const edits: ((head: Head) => object)[] = [
      (head) => ({ ...head, format: 0 }),
      (head) => ({ ...head, program: '0.0.0' }),
      (head) => ({ ...head, size: Number(head.size) - 1 }),
      (head) => ({ ...head, size: Number(head.size) + 1000 }),
      (head) => ({ ...head, leaf: '0'.repeat(64) }),
      (head) => ({ ...head, fold: { ...head.fold, openings: { ...head.fold.openings, opened: null } } }),
      (head) => ({ ...head, roots: [] }),
    ];
    const whole = readFileSync(file);
    for (const edit of edits) {
      writeFileSync(file, whole);
      editHead(file, edit);
      expect(load(book)).toBeNull();
    }
    writeFileSync(file, whole);
    expect(load(book)).not.toBeNull();
    const other = await cachedLedger();
    copyFileSync(other.file, file);
    expect(load(book)).toBeNull();
  });

  it('takes nothing from a cache with a row too many, too few or of an older time', async () => {
    const { book, file } = await cachedLedger();
    const whole = readFileSync(file);
    const edits = [
      'DELETE FROM live WHERE slot = (SELECT min(slot) FROM live)',
      'INSERT INTO live SELECT upper(slot), body FROM live LIMIT 1',
      'UPDATE live SET body = (SELECT max(body) FROM live) WHERE slot = (SELECT min(slot) FROM live)',
      'DELETE FROM closed',
      'UPDATE closed SET bytes = substr(bytes, 1, length(bytes) - 64)',
      'DELETE FROM head',
      'DROP TABLE live',
    ];
    for (const edit of edits) {
      writeFileSync(file, whole);
      const db = new Database(file);
      db.exec(edit);
      db.close();
      expect(load(book), edit).toBeNull();
    }
  });

  it('notices a changed byte, wherever it matters', async () => {
    const { book, file } = await cachedLedger();
    const whole = readFileSync(file);
    const expected = stateOf((load(book) as BookState).fold);
    const random = seeded(11);
    let dropped = 0;
    for (let i = 0; i < 120; i++) {
      const bytes = Buffer.from(whole);
      const at = random(bytes.length);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << random(8));
      writeFileSync(file, bytes);
      const state = load(book);
      if (state === null) dropped++;
      else expect(stateOf(state.fold)).toEqual(expected);
    }
    expect(dropped).toBeGreaterThan(40);
  }, 60_000);

  it.each([
    ['is gone', (file: string) => rmSync(file)],
    ['is empty', (file: string) => writeFileSync(file, '')],
    ['is something else', (file: string) => writeFileSync(file, 'not a database '.repeat(100))],
    ['is cut short', (file: string) => writeFileSync(file, readFileSync(file).subarray(0, 5000))],
    ['is a folder', makeFolderOf],
  ])('opens without a cache that %s', async (_, harm) => {
    const { workspace, book, file } = await cachedLedger();
    book.close();
    harm(file);
    const again = await open(workspace, testClock());
    expect(again.head()).toEqual(book.head());
    checkpoint(again);
    again.close();
    expect(stateOf(again.fold)).toEqual(stateOf((await fromStart(workspace)).fold));
  });
});

describe('a ledger that carries slots of a superseded plan', () => {
  it('has them from the cache as from its entries', async () => {
    const folder = join(tempFolder(), 'ledger');
    const carries = {
      size: 100,
      root: 'a'.repeat(64),
      manifest: digestOf('the plan before'),
      ledger: '2'.repeat(32),
      again: 0,
      dropped: 0,
    };
    const objects = [toObject(MANIFEST_BYTES), toObject(TASK_FILE)];
    const opening = { draft: { ...openedDraft(), carries }, objects };
    const now = testClock();
    const state = BookState.empty(CONTEXT);
    const cache = new StateCache(folder);
    const store: LedgerStore = await LedgerStore.create(folder, opening, {
      now,
      follow: (record) => state.take(record, folder),
      committed: (records) => cache.committed(records, state, store),
    });
    onTestFinished(() => store.close());
    const outcomes: readonly DraftOf<'slot.carried'>['outcome'][] = [
      {
        kind: 'settled',
        value: 0.5,
        basis: { kind: 'report', attempt: attemptId(slotAt(0).id, 1), report: digestOf('report') },
      },
      {
        kind: 'settled',
        value: 0,
        basis: { kind: 'model_failure', attempt: attemptId(slotAt(1).id, 2) },
      },
      { kind: 'unresolved', reason: 'undetermined' },
      { kind: 'unresolved', reason: 'limit_reached' },
    ];
    const attempts = [1, 2, 1, 3];
    store.append(
      outcomes.map((outcome, i) => {
        const { id: slot, queue, arm, trainingSeed, evaluationSeed, task, rep } = slotAt(i);
        const key = { queue, arm, training_seed: trainingSeed, evaluation_seed: evaluationSeed, task, rep };
        return { type: 'slot.carried', slot, key, closed_by: i, attempts: attempts[i] ?? 1, outcome };
      }),
    );
    store.append([gateDraft(), ...new SlotScript(slotAt(5)).whole(1).drafts]);
    const { size, root } = state.head();
    store.append([{ type: 'checkpoint', size, root, note: null, timestamps: [] }]);
    const reader = LedgerReader.open(folder);
    const kept = new StateCache(folder).load(CONTEXT, reader);
    const whole = BookState.empty(CONTEXT);
    for (const record of reader.entries()) whole.take(record, folder);
    reader.close();
    expect(kept?.head()).toEqual(whole.head());
    expect(stateOf((kept as BookState).fold)).toEqual(stateOf(whole.fold));
    for (const [i, outcome] of outcomes.entries()) {
      const { id } = slotAt(i);
      const { index } = kept?.fold.slots.carriedSlot(id) ?? {};
      expect(kept?.fold.slots.carriedSlot(id)).toEqual({
        index,
        closedBy: i,
        attempts: attempts[i],
        outcome,
      });
      expect(kept?.fold.slots.state(id)).toEqual(whole.fold.slots.state(id));
      expect(kept?.fold.slots.key(id)).toMatchObject({ task: slotAt(i).task, rep: slotAt(i).rep });
    }
  });
});

describe('writing the cache', () => {
  it('is left alone by whoever commits no checkpoint', async () => {
    const workspace = await newWorkspace();
    const book = await open(workspace, testClock());
    book.store.append([
      { type: 'gate.refused', manifest: workspace.stored.digest, mismatches: [], total: 0 },
    ]);
    book.close();
    expect(existsSync(join(book.folder, CACHE_FILE))).toBe(false);
  });

  it('is shared by several processes, and never goes back', async () => {
    const workspace = await newWorkspace({ queues: QUEUES });
    const [a, b] = [await open(workspace, testClock()), await open(workspace, testClock())];
    const random = seeded(3);
    const ledger = new RandomLedger(a.context, random);
    const kept = (): number => load(a)?.tail.size ?? 0;
    let last = 0;
    for (let i = 0; i < 60; i++) {
      const book = random(2) === 0 ? a : b;
      append(book, ledger, random(30));
      checkpoint(book);
      expect(kept()).toBe(book.head().size);
      expect(kept()).toBeGreaterThan(last);
      last = kept();
    }
    // One of them is behind; its closing must not take the state back.
    a.store.append([ledger.next()]);
    a.close();
    last = kept();
    b.close();
    expect(kept()).toBe(last);
    const whole = await fromStart(workspace);
    expect(stateOf((load(a) as BookState).fold)).toEqual(stateOf(whole.fold));
  });

  it('goes on beside another process that holds the file', async () => {
    const { book, file } = await cachedLedger();
    const other = new Database(file);
    other.exec('BEGIN IMMEDIATE');
    checkpoint(book);
    other.exec('ROLLBACK');
    other.close();
    expect(load(book)).toBeNull();
    checkpoint(book);
    expect(load(book)?.tail.size).toBe(book.head().size);
  });
});

function attemptBook(): AttemptBook {
  const { slots, sessions, adjudications, rechecks } = new LedgerFold(CONTEXT);
  return new AttemptBook({
    context: CONTEXT,
    slots,
    sessions,
    adjudications,
    rechecks,
    plan: new PlanBook(),
  });
}

describe('what the cache keeps of the books', () => {
  it.each([
    ['LedgerFold', new LedgerFold(CONTEXT), new LedgerFold(CONTEXT).snapshot(), ['context']],
    ['SessionBook', new SessionBook(), new SessionBook().snapshot(), []],
    ['OpeningBook', new OpeningBook(), new OpeningBook().snapshot(), []],
    ['PlanBook', new PlanBook(), new PlanBook().snapshot(), []],
    ['AttemptBook', attemptBook(), attemptBook().snapshot(), ['#setting']],
    ['CheckpointBook', new CheckpointBook(), new CheckpointBook().snapshot(), []],
    // The plan gives index and planned counts; settled and live slots are kept as rows of their own.
    [
      'SlotBook',
      new SlotBook(CONTEXT),
      new SlotBook(CONTEXT).snapshot(),
      ['#context', '#index', '#planned', '#live', '#settled', '#carried'],
    ],
  ])('is every field of a %s', (_, book, snapshot, derived) => {
    const kept = [...Object.keys(snapshot), ...derived.map((name) => name.replace('#', ''))];
    expect(kept.sort()).toEqual(
      fieldNames(book)
        .map((name) => name.replace('#', ''))
        .sort(),
    );
  });

  it('is every field of a slot that can still change', () => {
    const fold = new LedgerFold(CONTEXT);
    const clock = testClock();
    const book = new SlotBook(CONTEXT);
    new SlotScript(slotAt(0)).start().drafts.forEach((draft, seq) => {
      const entry = { ...draft, seq, prev: null, time: clock() };
      if (entry.type === 'attempt.started') book.start(entry);
    });
    expect(fold.slots.liveCount).toBe(0);
    const [[, snapshot] = ['', {}]] = [...book.liveSince(0)];
    const live = deepState(book) as { '#live': { Map: [string, object][] } };
    const [[, kept] = ['', {}]] = live['#live'].Map;
    // Queue, arm and rules follow from the number in the plan.
    expect([...Object.keys(snapshot), 'queue', 'arm', 'rules'].sort()).toEqual(Object.keys(kept).sort());
  });
});

describe('SlotTable', () => {
  const settled = (slot: string, value: number, index: number): SettledSlot | null =>
    SettledSlot.of(index, {
      phase: 'settled',
      attempts: [`${slot}-1`, `${slot}-2`],
      replacements: 1,
      regrades: 0,
      lateAttributions: 0,
      value,
      basis: { kind: 'report', attempt: `${slot}-2`, report: `sha256:${sha256Hex(slot)}` },
      failure: null,
      by: 'report',
    });

  it('finds each of many slots, in the order in which they came, and is restored from its chunks', () => {
    const table = new SlotTable(SETTLED_FORM);
    const ids = Array.from({ length: 10_000 }, (_, i) => sha256Hex(`slot ${i}`).slice(0, 32));
    for (const [i, id] of ids.entries()) {
      expect(table.has(id)).toBe(false);
      table.add(id, settled(id, i / 7, i) as SettledSlot);
    }
    const restored = new SlotTable(SETTLED_FORM);
    for (let i = 0; table.chunk(i).length > 0; i++) restored.addChunk(table.chunk(i));
    for (const one of [table, restored]) {
      expect(one.size).toBe(10_000);
      expect([...one.idsAfter(0)]).toEqual(ids);
      expect([...one.idsAfter(9_998)]).toEqual(ids.slice(9_998));
      expect([...one.values()].map(({ index }) => index)).toEqual(ids.map((_, i) => i));
      for (const [i, id] of ids.entries()) {
        expect(one.get(id)?.value).toBe(i / 7);
        expect(one.get(id)?.report).toBe(`sha256:${sha256Hex(id)}`);
      }
      expect(one.has('0'.repeat(32))).toBe(false);
      expect(one.get('nothing')).toBeUndefined();
    }
    expect(() => restored.addChunk(table.chunk(0))).toThrow(RangeError);
  });
});
