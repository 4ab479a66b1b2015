import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { leafHash } from '../../src/ledger/merkle.js';
import { LedgerStore } from '../../src/ledger/store.js';
import { gateDraft, newLedger, pausedDraft, testClock } from './support.js';

/** A ledger of three entries and a second connection of an ordinary SQL client, default settings. */
async function attacked() {
  const store = await newLedger();
  store.append([gateDraft(), pausedDraft('finished')]);
  const db = new Database(store.file);
  onTestFinished(() => void db.close());
  const rows = () => db.prepare('SELECT seq, prev, leaf, body FROM entry ORDER BY seq').all();
  return { store, db, rows };
}

const body = Buffer.from('{}');
const leaf = leafHash(body);

/** SQL with one statement each; $leaf and $body are new bytes, $last is the true last leaf. */
const ENTRY_ATTACKS = {
  'an update': 'UPDATE entry SET body = $body WHERE seq = 1',
  'an update of the position': 'UPDATE entry SET seq = 99 WHERE seq = 2',
  'update or replace': 'UPDATE OR REPLACE entry SET seq = 1 WHERE seq = 2',
  'a deletion of the last': 'DELETE FROM entry WHERE seq = 2',
  'a deletion of all': 'DELETE FROM entry',
  'replace on a present position': 'INSERT OR REPLACE INTO entry VALUES (1, $last, $leaf, $body)',
  'the same in other words': 'REPLACE INTO entry VALUES (2, $last, $leaf, $body)',
  'insert or ignore on a present position': 'INSERT OR IGNORE INTO entry VALUES (1, $last, $leaf, $body)',
  'insert or ignore out of order': 'INSERT OR IGNORE INTO entry VALUES (7, $last, $leaf, $body)',
  'an upsert':
    'INSERT INTO entry VALUES (1, $last, $leaf, $body) ON CONFLICT (seq) DO UPDATE SET body = excluded.body',
  'a gap': 'INSERT INTO entry VALUES (4, $last, $leaf, $body)',
  'a negative position': 'INSERT INTO entry VALUES (-1, $last, $leaf, $body)',
  'no position': 'INSERT INTO entry (prev, leaf, body) VALUES ($leaf, $leaf, $body)',
  'a null position': 'INSERT INTO entry VALUES (NULL, $leaf, $leaf, $body)',
  'a wrong link': 'INSERT INTO entry VALUES (3, $leaf, $leaf, $body)',
  'no link': 'INSERT INTO entry VALUES (3, NULL, $leaf, $body)',
  'two rows at once, the second out of order':
    'INSERT INTO entry VALUES (3, $last, $leaf, $body), (5, $leaf, $leaf, $body)',
  'a text for a body': "INSERT INTO entry VALUES (3, $last, $leaf, 'text')",
  'a short leaf': "INSERT INTO entry VALUES (3, $last, x'00', $body)",
};

describe('a second connection', () => {
  it.each(Object.entries(ENTRY_ATTACKS))('cannot change entries by %s', async (_, sql) => {
    const { db, rows } = await attacked();
    const before = rows();
    const last = db.prepare('SELECT leaf FROM entry WHERE seq = 2').pluck().get();
    const parameters = Object.fromEntries(
      Object.entries({ leaf, body, last }).filter(([name]) => sql.includes(`$${name}`)),
    );
    for (const recursive of ['OFF', 'ON']) {
      db.pragma(`recursive_triggers = ${recursive}`);
      expect(() => db.prepare(sql).run(parameters)).toThrowError(
        expect.objectContaining({ code: expect.stringMatching(/^SQLITE_CONSTRAINT/) }),
      );
      expect(rows()).toEqual(before);
    }
  });

  it('can append the next entry only, as any client may', async () => {
    const { store, db } = await attacked();
    const last = db.prepare('SELECT leaf FROM entry WHERE seq = 2').pluck().get();
    db.prepare('INSERT INTO entry VALUES (3, ?, ?, ?)').run(last, leaf, body);
    // It is in the chain, and still no entry: whoever reads on is told so.
    expect(() => [...store.entries()]).toThrowError(
      expect.objectContaining({
        code: 'LEDGER_DAMAGED',
        evidence: { seq: 3, what: 'seq, prev or time is malformed' },
      }),
    );
    expect(() => store.append([gateDraft('c'.repeat(32))])).toThrowError(
      expect.objectContaining({ code: 'LEDGER_DAMAGED' }),
    );
    expect(() => store.append([gateDraft('d'.repeat(32))])).toThrowError(/no more entries in this process/);
  });

  it.each([
    ['an update', 'UPDATE object SET bytes = $body'],
    ['a deletion', 'DELETE FROM object'],
    ['replace on a present digest', 'INSERT OR REPLACE INTO object (digest, bytes) VALUES ($digest, $body)'],
    [
      'replace on a present rowid',
      'INSERT OR REPLACE INTO object (rowid, digest, bytes) VALUES ($rowid, $leaf, $body)',
    ],
    ['insert of a present digest', 'INSERT INTO object (digest, bytes) VALUES ($digest, $body)'],
  ])('cannot change objects by %s', async (_, sql) => {
    const { db } = await attacked();
    const rows = () => db.prepare('SELECT rowid, * FROM object ORDER BY rowid').all();
    const before = rows();
    const { rowid, digest } =
      db.prepare<[], { rowid: number; digest: Buffer }>('SELECT rowid, digest FROM object').get() ?? {};
    const values = { rowid, digest, leaf, body };
    const parameters = Object.fromEntries(
      Object.entries(values).filter(([name]) => sql.includes(`$${name}`)),
    );
    expect(() => db.prepare(sql).run(parameters)).toThrowError(
      expect.objectContaining({ code: 'SQLITE_CONSTRAINT_TRIGGER' }),
    );
    expect(rows()).toEqual(before);
  });

  it.each([
    'DROP TRIGGER entry_insert',
    'DROP TRIGGER object_delete',
    'CREATE TABLE settled (slot TEXT)',
    'CREATE TRIGGER quiet AFTER INSERT ON entry BEGIN SELECT 1; END',
    'ALTER TABLE entry ADD COLUMN note TEXT',
    'DROP TRIGGER entry_insert; CREATE TRIGGER entry_insert BEFORE INSERT ON entry WHEN 0 BEGIN SELECT 1; END',
  ])('is found out at the next opening after %s', async (sql) => {
    const { store, db } = await attacked();
    db.exec(sql);
    store.close();
    const expected = expect.objectContaining({
      code: 'LEDGER_DAMAGED',
      exitCode: 4,
      message: expect.stringContaining('other tables or triggers'),
    });
    expect(() => LedgerStore.openReader(store.folder)).toThrowError(expected);
    expect(() => LedgerStore.openWriter(store.folder, { now: testClock() })).toThrowError(expected);
  });
});
