import { chmodSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import type { AuditResult } from '../../src/audit/result.js';
import { BoundbookError } from '../../src/core/errors.js';
import { LedgerReader } from '../../src/ledger/reader.js';
import { readAttestation } from '../../src/manifest/attestations.js';
import { loadManifest } from '../../src/manifest/select.js';
import { temporaryFolder } from '../audit/bundle/support.js';
import { filesBelow } from '../support/loose-bundle.js';
import type { SmallBook } from '../support/small-book.js';
import { outcomeOf, signedBook, TRUST, WITH_A_LONG_ANSWER } from './book.js';
import { flipAll, flipped, maskAt, type Outcome, refusedOr, Tally } from './flips.js';

/**
 * Every byte of the entries, objects and manifests of a workspace is flipped, and of the files beside them. Rows are
 * flipped many at a time, each at the same place, where a finding names the row: each must be named.
 */

/** Thousands of looks at files; a busy machine takes its time. */
vi.setConfig({ testTimeout: 300_000 });

const tally = new Tally('flips of a workspace');
let book: SmallBook;
let db: Database.Database;
let clean: AuditResult;
let triggers: readonly string[];

beforeAll(async () => {
  book = await signedBook(temporaryFolder(), WITH_A_LONG_ANSWER, true);
  clean = await audit(book.root, undefined, TRUST);
  expect(clean.findings).toEqual([]);
  db = new Database(join(book.ledger, 'ledger.sqlite'));
  db.pragma('synchronous = OFF');
  db.pragma('ignore_check_constraints = ON');
  triggers = texts("SELECT sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name");
});
afterAll(() => db.close());

function texts(sql: string): readonly string[] {
  return db.prepare<[], string>(sql).pluck().all();
}

/** Somebody with every right on the file: the triggers are out of the way and back again. */
function edit(change: () => void): void {
  db.transaction(() => {
    disarm();
    change();
    arm();
  })();
}

function disarm(): void {
  for (const name of texts("SELECT name FROM sqlite_schema WHERE type = 'trigger'")) {
    db.exec(`DROP TRIGGER ${name}`);
  }
}

function arm(): void {
  for (const trigger of triggers) db.exec(trigger);
}

const whole = () => audit(book.root, undefined, TRUST);
const judged = () => refusedOr(async () => outcomeOf(await whole(), clean));

interface Row {
  readonly key: number;
  readonly bytes: Buffer;
}

function rowsOf(table: 'entry' | 'object', column: string): readonly Row[] {
  const key = table === 'entry' ? 'seq' : 'rowid';
  return db
    .prepare<[], Row>(
      `SELECT ${key} AS key, ${column} AS bytes FROM ${table} WHERE ${column} IS NOT NULL ORDER BY ${key}`,
    )
    .all();
}

/** Flips one place of every row that is long enough; `named` tells from the verdict whether a row was found. */
async function flipColumn(
  table: 'entry' | 'object',
  column: string,
  named: (result: AuditResult, row: Row) => boolean,
  { from = 0, every = 1, kind = `${table}.${column}` }: { from?: number; every?: number; kind?: string } = {},
): Promise<void> {
  const rows = rowsOf(table, column);
  const key = table === 'entry' ? 'seq' : 'rowid';
  const put = db.prepare<[Buffer, number]>(`UPDATE ${table} SET ${column} = ? WHERE ${key} = ?`);
  const longest = Math.max(...rows.map(({ bytes }) => bytes.length));
  for (let at = from; at < longest; at += every) {
    const hit = rows.filter(({ bytes }) => at < bytes.length);
    edit(() => {
      for (const row of hit) put.run(flipped(row.bytes, at, maskAt(at + row.key)), row.key);
    });
    const result = await whole();
    for (const row of hit) {
      tally.count(kind, `row ${row.key} byte ${at}`, named(result, row) ? 'found' : 'unnoticed');
    }
    edit(() => {
      for (const { bytes, key: where } of hit) put.run(bytes, where);
    });
  }
  expect(tally.unnoticed()).toEqual([]);
}

const namesEntry = ({ findings }: AuditResult, { key }: Row) =>
  findings.some(({ code, where }) => code === 'CHAIN_BROKEN' && where.seq === key);

describe('entries', () => {
  test('each byte of each body', () => flipColumn('entry', 'body', namesEntry));
  test('each byte of each link', () => flipColumn('entry', 'prev', namesEntry));
  test('each byte of each leaf', () => flipColumn('entry', 'leaf', namesEntry));

  test('positions', async () => {
    const put = db.prepare<[number, number]>('UPDATE entry SET seq = ? WHERE seq = ?');
    const count = db.prepare<[], number>('SELECT count(*) FROM entry').pluck().get() ?? 0;
    for (let seq = 0; seq < count; seq++) {
      const free = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((bit) => seq ^ (1 << bit)).find((to) => to >= count);
      if (free === undefined) throw new Error('no free position');
      edit(() => void put.run(free, seq));
      tally.count('entry.seq', `row ${seq}`, await judged());
      edit(() => void put.run(seq, free));
    }
    expect(tally.unnoticed()).toEqual([]);
  });

  test('samples, one at a time', async () => {
    const put = db.prepare<[Buffer, number]>('UPDATE entry SET body = ? WHERE seq = ?');
    for (const { key, bytes } of rowsOf('entry', 'body')) {
      for (let at = key % 7; at < bytes.length; at += 160) {
        edit(() => void put.run(flipped(bytes, at, maskAt(at)), key));
        tally.count('whole audits, one flip each', `entry ${key} byte ${at}`, await judged());
        edit(() => void put.run(bytes, key));
      }
    }
    expect(tally.unnoticed()).toEqual([]);
  });
});

describe('objects', () => {
  test('each byte of each small object, as the audit reads it', () => {
    const put = db.prepare<[Buffer, number]>('UPDATE object SET bytes = ? WHERE rowid = ?');
    const digests = db
      .prepare<[number], string>('SELECT lower(hex(digest)) FROM object WHERE rowid = ?')
      .pluck();
    const reader = LedgerReader.open(book.ledger);
    disarm();
    for (const { key, bytes } of rowsOf('object', 'bytes')) {
      const digest = `sha256:${digests.get(key) ?? ''}` as const;
      for (let at = 0; at < bytes.length; at++) {
        put.run(flipped(bytes, at, maskAt(at)), key);
        tally.count('objects in the table', `${digest} byte ${at}`, altered(reader, digest));
      }
      put.run(bytes, key);
    }
    arm();
    reader.close();
    expect(tally.unnoticed()).toEqual([]);
  });

  test('each byte of the object that lies in a file', async () => {
    const [path = '', ...more] = filesBelow(join(book.ledger, 'objects'));
    expect(more).toEqual([]);
    const reader = LedgerReader.open(book.ledger);
    await flipAll(
      join(book.ledger, 'objects', path),
      () => altered(reader, `sha256:${path.replace('/', '')}`),
      (outcome, at) => tally.count('object files', `byte ${at}`, outcome),
      { masks: (at) => [maskAt(at)] },
    );
    reader.close();
    expect(tally.unnoticed()).toEqual([]);
  });

  test('samples through the whole audit: it names each object', () =>
    flipColumn(
      'object',
      'bytes',
      ({ findings }, { key }) =>
        findings.some(({ code, where }) => code === 'OBJECT_ALTERED' && where.object === digestAt(key)),
      { every: 61, kind: 'whole audits, every object at once' },
    ));

  test('each byte of each digest: the object is missing, and the other one too many', async () => {
    const due = new Map(rowsOf('object', 'digest').map(({ key, bytes }) => [key, bytes.toString('hex')]));
    await flipColumn('object', 'digest', ({ findings }, { key }) =>
      findings.some(
        ({ code, where }) => code === 'OBJECT_MISSING' && where.object === `sha256:${due.get(key) ?? ''}`,
      ),
    );
  });
});

function digestAt(rowid: number): string {
  const hex = db.prepare<[number], string>('SELECT lower(hex(digest)) FROM object WHERE rowid = ?').pluck();
  return `sha256:${hex.get(rowid) ?? ''}`;
}

function altered(reader: LedgerReader, digest: `sha256:${string}`): Outcome {
  try {
    reader.getObject(digest);
    return 'unnoticed';
  } catch (error) {
    if (error instanceof BoundbookError && error.code === 'OBJECT_ALTERED') return 'found';
    throw error;
  }
}

describe('files', () => {
  const writable = (path: string) => {
    chmodSync(path, 0o644);
    return path;
  };

  test('each byte of the manifest, as every verb reads it', async () => {
    const path = writable(book.stored.path);
    await flipAll(
      path,
      () =>
        refusedOr(async (): Promise<Outcome> => {
          await loadManifest(book.root, book.stored.file);
          return 'unnoticed';
        }),
      (outcome, at) => tally.count('manifest', `byte ${at}`, outcome),
      { masks: (at) => [maskAt(at)] },
    );
    await flipAll(
      path,
      judged,
      (outcome, at) => tally.count('whole audits, one flip each', `manifest byte ${at}`, outcome),
      {
        every: 200,
        masks: (at) => [maskAt(at)],
      },
    );
    expect(tally.unnoticed()).toEqual([]);
  });

  test('each byte of the head beside the ledger but its time', async () => {
    const path = `${book.ledger}.head`;
    const text = readFileSync(path, 'utf8');
    const time = text.indexOf('"time":"') + '"time":"'.length;
    const end = text.indexOf('"', time);
    const take = (outcome: Outcome, at: number) => {
      if (outcome === 'unnoticed' && at >= time && at < end) {
        tally.exclude('.head', 'the time at which it was written: for messages alone');
      } else tally.count('.head', `byte ${at}`, outcome);
    };
    await flipAll(path, judged, take, { masks: (at) => [maskAt(at)] });
    expect(tally.unnoticed()).toEqual([]);
  });

  test.each(['checkpoints', 'attestations'])('each byte of %s, in the light of the key', async (kind) => {
    const folder = kind === 'checkpoints' ? join(book.ledger, kind) : join(book.root, kind);
    const [name = '', ...more] = filesBelow(folder);
    expect(more).toEqual([]);
    const path = writable(join(folder, name));
    const text = readFileSync(path, 'utf8');
    const hint = text.indexOf('"keyid":"');
    const end = text.indexOf('"', hint + '"keyid":"'.length);
    await flipAll(
      path,
      () =>
        refusedOr(() => {
          // What is no attestation any more is the finding ATTESTATION_INVALID; the rest goes through the whole audit.
          if (kind === 'attestations') readAttestation(name, readFileSync(path));
          return judged();
        }),
      (outcome, at) => {
        if (outcome === 'unnoticed' && hint !== -1 && at >= hint && at < end) {
          tally.exclude(kind, 'keyid is optional and a hint in DSSE: what counts is the key that verifies');
        } else tally.count(kind, `byte ${at}`, outcome);
      },
      { masks: (at) => [maskAt(at)] },
    );
    expect(tally.unnoticed()).toEqual([]);
  });

  test('names are part of it: a file under another name is not the same file', async () => {
    for (const path of [
      book.stored.path,
      join(book.ledger, 'objects', filesBelow(join(book.ledger, 'objects'))[0] ?? ''),
    ]) {
      const other = path.replace(/[0-9a-f](?=(\.json)?$)/, (digit) => (digit === '0' ? '1' : '0'));
      renameSync(path, other);
      const outcome = await refusedOr(async () => outcomeOf(await whole(), clean));
      tally.count('names', path, outcome);
      renameSync(other, path);
    }
    expect(tally.unnoticed()).toEqual([]);
    expect((await whole()).findings).toEqual([]);
  });
});
