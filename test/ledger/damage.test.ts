import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { canonicalBytes } from '../../src/core/canonical-json.js';
import { type Digest, isDigest } from '../../src/core/digest.js';
import { anchorPath } from '../../src/ledger/anchor.js';
import { ChainVerifier } from '../../src/ledger/chain.js';
import { leafHash } from '../../src/ledger/merkle.js';
import type { LedgerReader } from '../../src/ledger/reader.js';
import { LedgerStore } from '../../src/ledger/store.js';
import {
  appendScripts,
  CONTEXT,
  gateDraft,
  newLedger,
  SLOTS,
  SlotScript,
  slotAt,
  tempFolder,
  testClock,
} from './support.js';

/** A closed ledger of 12 entries: the gate and two settled slots. */
async function closedLedger(): Promise<string> {
  const store = await newLedger();
  store.append([gateDraft()]);
  appendScripts(store, [new SlotScript(slotAt(0)).whole(1), new SlotScript(slotAt(1)).whole(0)]);
  store.close();
  return store.folder;
}

const openers = {
  reader: (folder: string) => LedgerStore.openReader(folder),
  writer: (folder: string) => LedgerStore.openWriter(folder, { now: testClock() }),
};

/** Every object that an entry of the ledger names, each entry verified. */
function namedObjects(reader: LedgerReader): { readonly digests: ReadonlySet<Digest> } {
  const digests = new Set<Digest>();
  for (const { body } of reader.entries()) {
    for (const [text] of body.toString().matchAll(/sha256:[0-9a-f]{64}/g))
      if (isDigest(text)) digests.add(text);
  }
  digests.delete(CONTEXT.plan.digest);
  return { digests };
}

/** Both ways of opening must end in the code, with a hint, and leave the bytes as they are. */
function expectRefusal(folder: string, code: string, message: RegExp): void {
  for (const open of Object.values(openers)) {
    let caught: unknown;
    try {
      open(folder).close();
    } catch (error) {
      caught = error;
    }
    expect(caught).toMatchObject({
      name: 'BoundbookError',
      code,
      message: expect.stringMatching(message),
      hint: expect.stringMatching(/./),
    });
  }
}

describe('F-105: opening never creates and never takes something else for a ledger', () => {
  it('a missing folder, a missing file', async () => {
    const folder = tempFolder();
    expectRefusal(join(folder, 'typo'), 'LEDGER_NOT_FOUND', /no ledger at/);
    expectRefusal(folder, 'LEDGER_NOT_FOUND', /no ledger at/);
    expect(() => readFileSync(join(folder, 'ledger.sqlite'))).toThrow(/ENOENT/);
  });

  it('a zero-byte file', () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'ledger.sqlite'), '');
    expectRefusal(folder, 'LEDGER_DAMAGED', /empty \(0 bytes\)/);
    expect(readFileSync(join(folder, 'ledger.sqlite')).length).toBe(0);
  });

  it.each([
    ['short', 10],
    ['long', 5_000],
  ])('a %s text file', (_, length) => {
    const folder = tempFolder();
    const text = 'not a ledger\n'.repeat(length);
    writeFileSync(join(folder, 'ledger.sqlite'), text);
    expectRefusal(folder, 'LEDGER_FOREIGN', /no SQLite file/);
    expect(readFileSync(join(folder, 'ledger.sqlite'), 'utf8')).toBe(text);
  });

  it('a folder, a link and a file in place of the folder', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'a/ledger.sqlite'), { recursive: true });
    expectRefusal(join(folder, 'a'), 'FILE_NOT_REGULAR', /is a folder/);
    mkdirSync(join(folder, 'b'));
    symlinkSync(join(await closedLedger(), 'ledger.sqlite'), join(folder, 'b/ledger.sqlite'));
    expectRefusal(join(folder, 'b'), 'FILE_NOT_REGULAR', /not a regular file/);
    writeFileSync(join(folder, 'c'), 'file');
    expectRefusal(join(folder, 'c'), 'LEDGER_NOT_FOUND', /no ledger at/);
  });

  it("another program's database, an empty database, another version", () => {
    const folder = tempFolder();
    const make = (name: string, sql: string) => {
      mkdirSync(join(folder, name));
      const db = new Database(join(folder, name, 'ledger.sqlite'));
      db.exec(sql);
      db.close();
      return join(folder, name);
    };
    expectRefusal(
      make('foreign', 'PRAGMA application_id = 77; CREATE TABLE t (x)'),
      'LEDGER_FOREIGN',
      /another program/,
    );
    expectRefusal(
      make('plain', 'CREATE TABLE entry (seq INTEGER PRIMARY KEY)'),
      'LEDGER_FOREIGN',
      /another program/,
    );
    expectRefusal(make('empty', 'PRAGMA journal_mode = WAL; VACUUM'), 'LEDGER_DAMAGED', /without any table/);
    expectRefusal(
      make('newer', `PRAGMA application_id = ${0x42424f4b}; PRAGMA user_version = 2; CREATE TABLE t (x)`),
      'LEDGER_FOREIGN',
      /version 2; this program knows 1/,
    );
  });

  it('a file that is cut short, at any length', async () => {
    const folder = await closedLedger();
    const file = join(folder, 'ledger.sqlite');
    const whole = readFileSync(file);
    for (const length of [1, 50, 99, 512, 4_095, 4_096, 8_192, whole.length - 4_096]) {
      writeFileSync(file, whole.subarray(0, length));
      for (const open of Object.values(openers)) {
        expect(() => open(folder).close(), `${length} bytes`).toThrowError(
          expect.objectContaining({ exitCode: 4, code: expect.stringMatching(/^LEDGER_(DAMAGED|FOREIGN)$/) }),
        );
      }
    }
  });
});

describe('a last page that is cut', () => {
  it('is found where something was on it', async () => {
    const folder = await closedLedger();
    const file = join(folder, 'ledger.sqlite');
    const whole = readFileSync(file);
    let refused = 0;
    for (let missing = 1; missing < 4_096; missing += 63) {
      writeFileSync(file, whole.subarray(0, whole.length - missing));
      try {
        const reader = LedgerStore.openReader(folder);
        const { digests } = namedObjects(reader);
        for (const digest of digests) reader.getObject(digest);
        expect(reader.head().size).toBe(12);
        reader.close();
      } catch (error) {
        expect(error).toMatchObject({ exitCode: 4 });
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(50);
  });
});

describe('F-99: a copy without its log file', () => {
  it('is refused where the head is remembered', async () => {
    const store = await newLedger();
    store.append([gateDraft()]);
    appendScripts(store, [new SlotScript(slotAt(0)).whole(1)]);
    const copy = join(tempFolder(), 'ledger.sqlite');
    copyFileSync(store.file, copy);
    store.close();
    copyFileSync(copy, store.file);
    expectRefusal(store.folder, 'LEDGER_DAMAGED', /has 1 entries, but had 7 at .*: its end is missing/);
  });

  it('with a log of another time is refused too', async () => {
    const store = await newLedger();
    store.append([gateDraft()]);
    const copy = join(tempFolder(), 'old-wal');
    copyFileSync(`${store.file}-wal`, copy);
    appendScripts(
      store,
      SLOTS.slice(0, 6).map((slot) => new SlotScript(slot).whole(1)),
    );
    store.close();
    copyFileSync(copy, `${store.file}-wal`);
    expectRefusal(store.folder, 'LEDGER_DAMAGED', /is damaged|its end is missing/);
  });
});

describe('F-101: replaced past the triggers', () => {
  it('is found by the hashes, and the row is named', async () => {
    const folder = await closedLedger();
    const db = new Database(join(folder, 'ledger.sqlite'));
    const sql = db
      .prepare("SELECT sql FROM sqlite_schema WHERE name = 'entry_update'")
      .pluck()
      .get() as string;
    db.exec('DROP TRIGGER entry_update');
    const { body } = db.prepare<[], { body: Buffer }>('SELECT body FROM entry WHERE seq = 11').get() ?? {};
    const forged = Buffer.from(String(body).replace('"value":0', '"value":1'));
    expect(forged.equals(body ?? Buffer.alloc(0))).toBe(false);
    db.prepare('UPDATE entry SET body = ? WHERE seq = 11').run(forged);
    db.exec(sql);
    db.close();
    const reader = LedgerStore.openReader(folder);
    expect(() => [...reader.entries()]).toThrowError(
      expect.objectContaining({
        code: 'LEDGER_DAMAGED',
        evidence: { seq: 11, what: 'the leaf is not the hash of the body' },
      }),
    );
    reader.close();
  });
});

describe('F-107: a corrupt database is neither repaired nor started anew', () => {
  it('says up to where it can be read, and stays as it is', async () => {
    const store = await newLedger();
    const ids = Array.from({ length: 400 }, (_, i) => gateDraft(i.toString(16).padStart(32, '0')));
    store.append(ids);
    store.close();
    const bytes = readFileSync(store.file);
    let refused = 0;
    for (let page = 1; page < bytes.length / 4096; page++) {
      const damaged = Buffer.from(bytes);
      damaged.fill(0, page * 4096, (page + 1) * 4096);
      writeFileSync(store.file, damaged);
      try {
        const reader = LedgerStore.openReader(store.folder);
        try {
          for (const _ of reader.entries()) void _;
        } finally {
          reader.close();
        }
        expect(() =>
          LedgerStore.openWriter(store.folder, { now: testClock(), follow: () => undefined }).close(),
        ).not.toThrow();
      } catch (error) {
        expect(error).toMatchObject({ code: 'LEDGER_DAMAGED', exitCode: 4 });
        refused++;
      }
      expect(readFileSync(store.file).equals(damaged)).toBe(true);
    }
    // Only pages of the object table can be zeroed without an entry being touched.
    expect(refused).toBeGreaterThan(bytes.length / 4096 - 5);
  });
});

describe('F-111: a chain whose end was cut off', () => {
  it('is refused by the head that lies beside the folder', async () => {
    const folder = await closedLedger();
    const db = new Database(join(folder, 'ledger.sqlite'));
    const sql = db
      .prepare("SELECT sql FROM sqlite_schema WHERE name = 'entry_delete'")
      .pluck()
      .get() as string;
    db.exec('DROP TRIGGER entry_delete; DELETE FROM entry WHERE seq >= 7');
    db.exec(sql);
    db.close();
    expectRefusal(folder, 'LEDGER_DAMAGED', /has 7 entries, but had 12 at .*: its end is missing/);
  });

  it('and chained anew by an insider as well', async () => {
    const folder = await closedLedger();
    const anchor = readFileSync(anchorPath(folder));
    rmSync(folder, { recursive: true });
    rmSync(anchorPath(folder));
    const forged = await newLedger({ folder, now: testClock(2_000) });
    forged.append([gateDraft()]);
    appendScripts(forged, [new SlotScript(slotAt(0)).whole(1), new SlotScript(slotAt(1)).whole(1)]);
    forged.close();
    writeFileSync(anchorPath(folder), anchor);
    expectRefusal(folder, 'LEDGER_DAMAGED', /another entry at position 11 .*: it was rewritten/);
  });

  it('while a head that nobody can read is no head', async () => {
    const folder = await closedLedger();
    for (const text of ['', 'null', '{"size":3}', '{"leaf":"zz","size":3,"time":"x"}', 'x'.repeat(10_000)]) {
      writeFileSync(anchorPath(folder), text);
      expectRefusal(folder, 'LEDGER_DAMAGED', /is not the head of a ledger/);
    }
    rmSync(anchorPath(folder));
    LedgerStore.openReader(folder).close();
  });

  it('is seen by a process that had the entries before', async () => {
    const store = await newLedger();
    store.append([gateDraft()]);
    const db = new Database(store.file);
    db.exec('DROP TRIGGER entry_delete; DELETE FROM entry WHERE seq = 1');
    db.close();
    expect(() => store.append([gateDraft('e'.repeat(32))])).toThrowError(
      /entries up to 1 were here and are gone/,
    );
  });
});

describe('every byte counts', () => {
  it('a flip anywhere in a body is found at its entry', async () => {
    const folder = await closedLedger();
    const reader = LedgerStore.openReader(folder);
    const rows = [...reader.rows()];
    reader.close();
    let flips = 0;
    for (const [i, row] of rows.entries()) {
      for (let at = 0; at < row.body.length; at++) {
        const body = Buffer.from(row.body);
        body[at] = (body[at] ?? 0) ^ 1;
        const verifier = new ChainVerifier({ size: i, leaf: row.prev, time: null });
        const { record, faults } = verifier.check({ ...row, body });
        expect(record).toBeNull();
        expect(faults[0]).toEqual({ seq: i, what: 'the leaf is not the hash of the body' });
        flips++;
      }
    }
    expect(flips).toBe(rows.reduce((sum, { body }) => sum + body.length, 0));
  });

  it('a body that hashes right is still read strictly', () => {
    const frame = { seq: 0, prev: null, time: '2026-11-30T00:00:00.000Z' };
    const valid = { type: 'slot.unresolved', slot: 'a'.repeat(32), reason: 'undetermined' };
    const cases: [string | Buffer, string][] = [
      [canonicalBytes({ ...frame, ...valid, note: 1 }), 'has not the declared form'],
      [canonicalBytes({ ...frame, ...valid, type: 'slot.erased' }), 'has not the declared form'],
      [canonicalBytes({ ...frame, ...valid, time: '2026-11-30' }), 'malformed'],
      [canonicalBytes({ ...frame, ...valid, seq: 2 ** 53 }), 'malformed'],
      [JSON.stringify({ ...frame, ...valid }), 'not canonical'],
      [`${canonicalBytes({ ...frame, ...valid }).toString()} `, 'not canonical'],
      [Buffer.from([0x7b, 0xff, 0x7d]), 'not UTF-8'],
      ['[]', 'no object'],
      ['{', 'not JSON'],
    ];
    for (const [text, what] of cases) {
      const body = Buffer.from(text);
      const { record, faults } = new ChainVerifier({ size: 0, leaf: null, time: null }).check({
        seq: 0,
        prev: null,
        leaf: leafHash(body),
        body,
      });
      expect(record).toBeNull();
      expect(faults).toEqual([{ seq: 0, what: expect.stringContaining(what) }]);
    }
  });

  it('an audit gets every fault, not only the first', async () => {
    const folder = await closedLedger();
    const reader = LedgerStore.openReader(folder);
    const verifier = new ChainVerifier({ size: 0, leaf: null, time: null });
    const found = [...reader.rows()].flatMap((row) => {
      const body = Buffer.from(row.body);
      if (row.seq === 3 || row.seq === 8) body[body.length - 2] = 0x20;
      return verifier.check({ ...row, body }).faults;
    });
    reader.close();
    expect([...new Set(found.map(({ seq }) => seq))]).toEqual([3, 4, 8, 9]);
  });

  it('a truncated log loses nothing silently', async () => {
    const store = await newLedger();
    store.append([gateDraft()]);
    appendScripts(store, [new SlotScript(slotAt(0)).whole(1)]);
    const copy = join(tempFolder(), 'ledger');
    mkdirSync(copy);
    for (const name of ['ledger.sqlite', 'ledger.sqlite-wal'])
      copyFileSync(join(store.folder, name), join(copy, name));
    store.close();
    copyFileSync(anchorPath(store.folder), anchorPath(copy));
    truncateSync(join(copy, 'ledger.sqlite-wal'), 3 * 4_152 + 32);
    expect(() => LedgerStore.openReader(copy)).toThrowError(/its end is missing/);
  });
});
