import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { canonicalText } from '../../src/core/canonical-json.js';
import { digestOf, hexOf } from '../../src/core/digest.js';
import { anchorPath } from '../../src/ledger/anchor.js';
import type { Entry } from '../../src/ledger/entries/entry.js';
import { CompactRange, leafHash } from '../../src/ledger/merkle.js';
import { toObject } from '../../src/ledger/objects.js';
import { LedgerStore } from '../../src/ledger/store.js';
import {
  gateDraft,
  newLedger,
  openedDraft,
  pausedDraft,
  SlotScript,
  slotAt,
  tempFolder,
  testClock,
} from './support.js';

describe('a new ledger', () => {
  it('holds its first entry, its objects, and the settings that durability rests on', async () => {
    const store = await newLedger();
    const [first] = [...store.entries()];
    expect(first?.entry).toEqual({ ...openedDraft(), seq: 0, prev: null, time: '2026-11-30T00:00:00.000Z' });
    expect(first?.body.toString()).toBe(canonicalText(first?.entry));
    const db = new Database(store.file, { readonly: true });
    expect(db.pragma('journal_mode', { simple: true })).toBe('wal');
    expect(db.pragma('application_id', { simple: true })).toBe(0x42424f4b);
    expect(db.pragma('user_version', { simple: true })).toBe(1);
    expect(db.prepare('SELECT count(*) FROM object').pluck().get()).toBe(2);
    db.close();
    expect(readdirSync(store.folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('is never made over an old one', async () => {
    const store = await newLedger();
    await expect(newLedger({ folder: store.folder })).rejects.toMatchObject({
      code: 'FILE_EXISTS',
      exitCode: 2,
    });
    expect(store.countEntries()).toBe(1);
  });

  it('leaves nothing under its name when its first entry is refused', async () => {
    const folder = join(tempFolder(), 'ledger');
    const draft = { ...openedDraft(), ledger: 'not a name' };
    await expect(
      LedgerStore.create(folder, { draft, objects: [] }, { now: testClock() }),
    ).rejects.toMatchObject({
      code: 'ENTRY_REFUSED',
    });
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('appending', () => {
  it('chains entries and keeps the tree root', async () => {
    const store = await newLedger();
    const appended = store.append([gateDraft(), pausedDraft('finished')]);
    expect(appended.map(({ seq }) => seq)).toEqual([1, 2]);
    const records = [...store.entries()];
    const range = new CompactRange();
    let prev: string | null = null;
    for (const { entry, body, leaf } of records) {
      expect(entry.prev).toBe(prev);
      expect(leaf).toEqual(leafHash(body));
      prev = leaf.toString('hex');
      range.append(leaf);
    }
    const head = { size: 3, leaf: prev, root: range.root().toString('hex'), time: appended[1]?.time };
    expect(store.head()).toEqual(head);
    const reader = LedgerStore.openReader(store.folder);
    expect(reader.head()).toEqual(head);
    expect([...reader.entries(1)].map(({ entry }) => entry)).toEqual(appended);
    reader.close();
  });

  it('reads more than one page, and from any position', async () => {
    const store = await newLedger();
    const drafts = Array.from({ length: 700 }, (_, i) => gateDraft(i.toString(16).padStart(32, '0')));
    store.append(drafts);
    expect([...store.entries()].length).toBe(701);
    for (const from of [1, 255, 256, 257, 512, 700]) {
      expect([...store.entries(from)].map(({ entry }) => entry.seq)).toEqual(
        Array.from({ length: 701 - from }, (_, i) => from + i),
      );
    }
    expect([...store.entries(701)]).toEqual([]);
    expect(store.head().size).toBe(701);
  });

  it('never lets the time run backwards', async () => {
    const times = [
      '2026-11-30T10:00:00.000Z',
      '2026-11-30T10:00:05.000Z',
      '2026-11-30T09:00:00.000Z',
      '2026-11-30T10:00:06.000Z',
    ];
    const store = await newLedger({ now: () => times.shift() ?? '' });
    for (const id of ['a', 'b', 'c']) store.append([gateDraft(id.repeat(32))]);
    expect([...store.entries()].map(({ entry }) => entry.time.slice(11, 19))).toEqual([
      '10:00:00',
      '10:00:05',
      '10:00:05',
      '10:00:06',
    ]);
  });

  it('refuses a draft that has not the declared form, and a body above 60,000 bytes', async () => {
    const store = await newLedger();
    const extra = { ...gateDraft(), note: 'unknown key' };
    expect(() => store.append([extra])).toThrowError(expect.objectContaining({ code: 'ENTRY_REFUSED' }));
    const selection = Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`field-number-${i}`, i]));
    expect(() => store.append([{ ...gateDraft(), selection }])).toThrowError(/60000/);
    expect(store.countEntries()).toBe(1);
    expect(store.append([gateDraft()])[0]?.seq).toBe(1);
  });

  it('appends all drafts of a call or none', async () => {
    const store = await newLedger();
    const bad = { ...pausedDraft('finished'), session: 'short' };
    expect(() => store.append([gateDraft(), bad])).toThrowError(/declared form/);
    expect(store.countEntries()).toBe(1);
  });

  it('F-103: refuses integers that cannot be held exactly, and keeps the largest that can', async () => {
    const store = await newLedger();
    const script = new SlotScript(slotAt(0)).start().generated(Number.MAX_SAFE_INTEGER);
    store.append(script.drafts, script.objects);
    const last = [...store.entries(2)][0]?.entry as Extract<Entry, { type: 'stage.finished' }>;
    expect(last.usage?.completion_tokens).toBe(9007199254740991);
    for (const tokens of [2 ** 53, 2 ** 53 + 2, 2 ** 63]) {
      const beyond = new SlotScript(slotAt(1)).start().generated(tokens);
      expect(() => store.append(beyond.drafts)).toThrowError(
        expect.objectContaining({ code: 'ENTRY_REFUSED' }),
      );
    }
  });
});

describe('objects', () => {
  it('lie in the ledger file up to 16 KiB and as files above, each once', async () => {
    const store = await newLedger();
    const small = toObject(Buffer.alloc(16_384, 1));
    const large = toObject(Buffer.alloc(16_385, 2));
    store.append([gateDraft()], [small, large, small, large]);
    store.append([pausedDraft('finished')], [small, large]);
    const hex = hexOf(large.digest);
    const path = join(store.folder, 'objects', hex.slice(0, 2), hex.slice(2));
    expect(statSync(path).size).toBe(16_385);
    expect(store.getObject(small.digest).equals(small.bytes)).toBe(true);
    expect(store.getObject(large.digest).equals(large.bytes)).toBe(true);
    const reader = LedgerStore.openReader(store.folder);
    expect(reader.getObject(large.digest).equals(large.bytes)).toBe(true);
    reader.close();
    expect(
      existsSync(
        join(store.folder, 'objects', hexOf(small.digest).slice(0, 2), hexOf(small.digest).slice(2)),
      ),
    ).toBe(false);
  });

  it('are refused when missing or altered, wherever they lie', async () => {
    const store = await newLedger();
    const large = toObject(Buffer.alloc(20_000, 3));
    const small = toObject('answer 42');
    store.append([gateDraft()], [large, small]);
    const absent = digestOf('never stored');
    expect(() => store.getObject(absent)).toThrowError(
      expect.objectContaining({ code: 'OBJECT_MISSING', exitCode: 4, evidence: { digest: absent } }),
    );
    writeFileSync(store.objectFolder.pathOf(large.digest), Buffer.alloc(20_000, 4));
    expect(() => store.getObject(large.digest)).toThrowError(
      expect.objectContaining({ code: 'OBJECT_ALTERED', exitCode: 4 }),
    );
    expect(() => store.append([pausedDraft('finished')], [large])).toThrowError(
      expect.objectContaining({ code: 'OBJECT_ALTERED' }),
    );
    const db = new Database(store.file);
    db.exec('DROP TRIGGER object_update');
    db.prepare('UPDATE object SET bytes = ? WHERE digest = ?').run(
      Buffer.from('answer 43'),
      Buffer.from(hexOf(small.digest), 'hex'),
    );
    db.close();
    expect(() => store.getObject(small.digest)).toThrowError(
      expect.objectContaining({ code: 'OBJECT_ALTERED' }),
    );
  });
});

describe('following', () => {
  it('hands every entry to the follower once and in order: old, foreign, own', async () => {
    const seen: number[] = [];
    const store = await newLedger({ follow: ({ entry }) => void seen.push(entry.seq) });
    expect(seen).toEqual([0]);
    const other = LedgerStore.openWriter(store.folder, { now: testClock() });
    other.append([gateDraft('a'.repeat(32)), gateDraft('b'.repeat(32))]);
    const { entries, result } = store.transact((tail) => {
      expect(tail.map(({ seq }) => seq)).toEqual([1, 2]);
      expect(seen).toEqual([0, 1, 2]);
      return { drafts: [gateDraft('c'.repeat(32))], result: 'claimed' };
    });
    expect([entries[0]?.seq, result]).toEqual([3, 'claimed']);
    expect(other.refresh().map(({ seq }) => seq)).toEqual([3]);
    store.append([gateDraft('d'.repeat(32))]);
    expect(seen).toEqual([0, 1, 2, 3, 4]);
    other.close();
  });

  it('appends nothing when a decision throws, and hands out its error unchanged', async () => {
    const store = await newLedger();
    const fault = new RangeError('no slot left');
    expect(() =>
      store.transact(() => {
        throw fault;
      }),
    ).toThrow(fault);
    expect(store.append([gateDraft()])[0]?.seq).toBe(1);
  });

  it('takes no more entries after a follower failed', async () => {
    const store = await newLedger({
      follow: ({ entry }) => {
        if (entry.seq === 1) throw new RangeError('unlawful');
      },
    });
    expect(() => store.append([gateDraft()])).toThrowError(expect.objectContaining({ code: 'INTERNAL' }));
    expect(() => store.append([pausedDraft('finished')])).toThrowError(/no more entries/);
    expect(store.countEntries()).toBe(2);
  });
});

describe('the anchor beside the folder', () => {
  it('is written on closing and covers the last entry', async () => {
    const store = await newLedger();
    store.append([gateDraft()]);
    const { size, leaf } = store.head();
    store.close();
    store.close();
    expect(JSON.parse(readFileSync(anchorPath(store.folder), 'utf8'))).toMatchObject({ size, leaf });
  });
});
