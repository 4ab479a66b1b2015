import { chmodSync, cpSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/core/digest.js';
import { anchorPath } from '../../src/ledger/anchor.js';
import { ledgerFolder, openBook, openLedger, openOrCreateBook } from '../../src/ledger/book.js';
import { gateDraft, newBook, newWorkspace, SlotScript, slotAt, testClock } from './support.js';

describe('a book', () => {
  it('is made once, with manifest and tasks in it, and opened afterwards', async () => {
    const { root, stored, files } = await newWorkspace();
    await expect(openBook(root, stored, 'read')).rejects.toMatchObject({ code: 'LEDGER_NOT_FOUND' });
    const book = await openOrCreateBook(root, stored, files, testClock());
    expect(book.folder).toBe(join(root, 'ledger', stored.file.replace('.json', '')));
    expect(book.opened).toMatchObject({
      seq: 0,
      manifest: stored.digest,
      manifest_object: stored.digest,
      plan: { count: 18 },
    });
    expect(digestOf(book.store.getObject(stored.digest))).toBe(stored.digest);
    expect(book.tasks.ids.get('two')).toEqual(['t1', 't2']);
    expect(book.tasks.tasks.get('two')?.size).toBe(2);
    book.close();
    const again = await openOrCreateBook(root, stored, new Map(), testClock());
    expect(again.head()).toEqual({ ...book.head() });
    expect(again.store.countEntries()).toBe(1);
    again.close();
  });

  it('follows its own appends and those of others', async () => {
    const { root, book } = await newBook([new SlotScript(slotAt(0)).whole(1)]);
    const other = await openBook(root, undefined, 'write', testClock());
    const script = new SlotScript(slotAt(1)).whole(0);
    other.store.append(script.drafts, script.objects);
    expect(book.fold.slots.total().settled).toBe(1);
    expect(other.fold.slots.total().settled).toBe(2);
    book.store.transact((tail) => {
      expect(tail.length).toBe(5);
      expect(book.fold.slots.total().settled).toBe(2);
      return { drafts: [], result: null };
    });
    expect(book.head()).toEqual(other.head());
    expect(book.head()).toEqual(book.store.head());
    other.close();
    const reading = await openBook(root, 'tiny', 'read');
    expect(reading.head()).toEqual(book.head());
    expect(reading.fold.costs()).toEqual(book.fold.costs());
    reading.close();
  });

  it('refuses an entry that is no lawful continuation, with its position and the law', async () => {
    const { root, book } = await newBook([new SlotScript(slotAt(0)).whole(1)]);
    const late = new SlotScript(slotAt(0)).start().generated().graded(0).drafts.slice(2);
    expect(() => book.store.append(late)).toThrowError(expect.objectContaining({ code: 'LEDGER_DAMAGED' }));
    expect(() => book.store.append([gateDraft('7'.repeat(32))])).toThrowError(/no more entries/);
    book.close();
    const damaged = {
      code: 'LEDGER_DAMAGED',
      exitCode: 4,
      evidence: { seq: 7, what: expect.stringMatching(/^against law 3: /) },
    };
    await expect(openBook(root, undefined, 'read')).rejects.toMatchObject(damaged);
    await expect(openBook(root, undefined, 'write', testClock())).rejects.toMatchObject(damaged);
    const ledger = await openLedger(root, undefined);
    expect([...ledger.reader.rows()].length).toBe(8);
    ledger.reader.close();
  });
});

describe('what belongs together', () => {
  it('a ledger of another manifest is refused: by the gate for a run, as foreign for reading', async () => {
    const first = await newBook();
    first.book.close();
    const { root, stored, files } = await newWorkspace({ title: 'Another plan' });
    mkdirSync(join(root, 'ledger'));
    cpSync(first.book.folder, ledgerFolder(root, stored.file), { recursive: true });
    const evidence = { binding: 'ledger', expected: stored.digest, actual: first.stored.digest };
    await expect(openBook(root, stored, 'read')).rejects.toMatchObject({
      code: 'LEDGER_FOREIGN',
      exitCode: 4,
      evidence,
    });
    await expect(openBook(root, stored, 'write', testClock())).rejects.toMatchObject({
      code: 'GATE_REFUSED',
      exitCode: 3,
      evidence,
    });
    await expect(openOrCreateBook(root, stored, files, testClock())).rejects.toMatchObject({
      code: 'GATE_REFUSED',
    });
  });

  it('a second ledger of the same manifest is refused, under whatever name', async () => {
    const { root, stored, files, book } = await newBook();
    book.close();
    cpSync(book.folder, join(root, 'ledger', 'copy-of-yesterday'), { recursive: true });
    const evidence = {
      manifest: stored.digest,
      ledgers: [stored.file.replace('.json', ''), 'copy-of-yesterday'],
    };
    await expect(openBook(root, stored, 'read')).rejects.toMatchObject({ code: 'LEDGER_FOREIGN', evidence });
    await expect(openBook(root, stored, 'write', testClock())).rejects.toMatchObject({
      code: 'GATE_REFUSED',
      evidence,
    });
    renameSync(book.folder, join(root, 'moved away'));
    await expect(openOrCreateBook(root, stored, files, testClock())).rejects.toMatchObject({
      code: 'GATE_REFUSED',
      evidence,
    });
  });

  it('other things beside it are no ledgers and hinder nobody', async () => {
    const { root, stored, book } = await newBook();
    book.close();
    mkdirSync(join(root, 'ledger', 'notes'));
    mkdirSync(join(root, 'ledger', 'broken'));
    writeFileSync(join(root, 'ledger', 'broken', 'ledger.sqlite'), 'text');
    writeFileSync(join(root, 'ledger', 'README.md'), 'text');
    (await openBook(root, stored, 'read')).close();
  });

  it('task files that are not the bound ones make no ledger', async () => {
    const { root, stored } = await newWorkspace();
    for (const files of [new Map(), new Map([['tasks/two', Buffer.from('{"answer":"4","id":"t1"}\n')]])]) {
      await expect(openOrCreateBook(root, stored, files, testClock())).rejects.toMatchObject({
        code: 'GATE_REFUSED',
        evidence: { binding: 'tasks/two' },
      });
    }
    await expect(openBook(root, stored, 'read')).rejects.toMatchObject({ code: 'LEDGER_NOT_FOUND' });
  });

  it('tasks altered inside the ledger are found', async () => {
    const { root, book } = await newBook();
    book.close();
    const db = new Database(book.store.file);
    const sql = db
      .prepare("SELECT sql FROM sqlite_schema WHERE name = 'object_update'")
      .pluck()
      .get() as string;
    db.exec('DROP TRIGGER object_update');
    db.prepare('UPDATE object SET bytes = ? WHERE digest = ?').run(
      Buffer.from('{}'),
      Buffer.from(String(book.opened.task_objects['tasks/two']).slice(7), 'hex'),
    );
    db.exec(sql);
    db.close();
    await expect(openBook(root, undefined, 'read')).rejects.toMatchObject({
      code: 'OBJECT_ALTERED',
      exitCode: 4,
    });
  });

  it('an edited manifest opens nothing', async () => {
    const { root, stored, book } = await newBook();
    book.close();
    chmodSync(stored.path, 0o644);
    writeFileSync(stored.path, JSON.stringify({ ...stored.manifest, title: 'edited' }));
    await expect(openBook(root, undefined, 'read')).rejects.toMatchObject({ code: 'MANIFEST_ALTERED' });
  });

  it('the head is kept beside the folder, not inside', async () => {
    const { book, root, stored } = await newBook();
    book.close();
    expect(anchorPath(book.folder)).toBe(join(root, 'ledger', stored.file.replace('.json', '.head')));
  });
});
