import { cpSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as inThisThread from '../../../src/audit/audit.js';
import { BulkWorker as BulkWorkerHere } from '../../../src/audit/bundle/bulk-worker.js';
import * as bundleHere from '../../../src/audit/bundle/bundle-source.js';
import { exportBundle } from '../../../src/audit/bundle/export.js';
import { openFolder } from '../../../src/audit/bundle/folder-files.js';
import * as findingHere from '../../../src/audit/finding.js';
import { compiledSources } from '../../ledger/compiled.js';
import { makeSmallBook, type SmallBook } from '../../support/small-book.js';
import { temporaryFolder } from './support.js';

/**
 * The large files of a bundle are checked in a thread of their own. It must say what the same code says without one: the
 * compiled program has threads, the sources have none.
 */

interface Program {
  readonly auditSource: typeof inThisThread.auditSource;
  readonly openBundleSource: typeof bundleHere.openBundleSource;
  readonly Findings: typeof findingHere.Findings;
}

const sources: Program = { ...inThisThread, ...bundleHere, ...findingHere };
let book: SmallBook;
let compiled: { readonly folder: string; readonly remove: () => void };
let threaded: Program;

beforeAll(async () => {
  compiled = compiledSources();
  const load = (path: string) => import(join(compiled.folder, path));
  threaded = {
    ...(await load('audit/audit.js')),
    ...(await load('audit/bundle/bundle-source.js')),
    ...(await load('audit/finding.js')),
  };
  book = await makeSmallBook(temporaryFolder());
  await exportBundle(book.root, undefined, { out: 'bundle', tar: 'bundle.tar' });
});

afterAll(() => compiled?.remove());

/** Findings and verdict, whatever their order; or the error by which the audit ended. */
async function auditOf(program: Program, path: string, threadFrom: number) {
  const findings = new program.Findings();
  try {
    const source = await program.openBundleSource(path, findings, null, threadFrom);
    try {
      const result = await program.auditSource(source, {}, findings);
      const texts = result.findings.map((finding) => JSON.stringify(finding)).sort();
      return { verdict: result.verdict, findings: texts, head: result.ledger.head };
    } finally {
      await source.close();
    }
  } catch (error) {
    return { error: (error as { toJson(): unknown }).toJson() };
  }
}

const scratchFolders = () => readdirSync(tmpdir()).filter((name) => name.startsWith('boundbook-audit-'));

function copyWith(name: string, change: (ledger: string) => void): string {
  const folder = join(book.root, name);
  cpSync(join(book.root, 'bundle'), folder, { recursive: true });
  change(join(folder, 'ledger'));
  return folder;
}

function changeDatabase(ledger: string, sql: string): void {
  const db = new Database(join(ledger, 'ledger.sqlite'));
  const triggers = db
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    .pluck()
    .all();
  for (const name of triggers) db.exec(`DROP TRIGGER ${name}`);
  db.exec(sql);
  db.close();
}

function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  writeFileSync(path, bytes);
}

const CASES: Readonly<Record<string, (ledger: string) => void>> = {
  'a byte of an entry': (ledger) => flip(join(ledger, 'entries.jsonl'), 300),
  'a byte of the pack': (ledger) => flip(join(ledger, 'objects.pack'), 70),
  'a byte in the middle of the database': (ledger) => flip(join(ledger, 'ledger.sqlite'), 6000),
  'a database in the other journal mode': (ledger) => flip(join(ledger, 'ledger.sqlite'), 18),
  'a row without a body': (ledger) => changeDatabase(ledger, 'DELETE FROM entry WHERE seq = 3'),
  'no database': (ledger) => rmSync(join(ledger, 'ledger.sqlite')),
  'no pack': (ledger) => rmSync(join(ledger, 'objects.pack')),
  'a database that ends early': (ledger) => truncateSync(join(ledger, 'ledger.sqlite'), 8192),
  'no entries': (ledger) => rmSync(join(ledger, 'entries.jsonl')),
};

describe('large files', () => {
  test('the compiled program has a thread for them, the sources have none', async () => {
    const { BulkWorker } = await import(join(compiled.folder, 'audit/bundle/bulk-worker.js'));
    const files = openFolder(join(book.root, 'bundle'));
    const open = (name: string) => files.open(`ledger/${name}`);
    const job = { entries: open('entries.jsonl'), pack: open('objects.pack'), sqlite: open('ledger.sqlite') };
    const verdicts = [];
    for (const [Kind, isThread] of [
      [BulkWorker, true],
      [BulkWorkerHere, false],
    ]) {
      const worker: BulkWorkerHere = new Kind(job);
      expect((await worker.said) !== null).toBe(isThread);
      verdicts.push(await worker.verdict());
      await worker.close();
    }
    files.close();
    expect(verdicts[0]).toEqual(verdicts[1]);
    expect(verdicts[0]?.sqliteFault).toBeNull();
  });

  test.each(['bundle', 'bundle.tar'])('%s is clean with a thread and without', async (name) => {
    const path = join(book.root, name);
    const alone = await auditOf(sources, path, Number.POSITIVE_INFINITY);
    expect(alone).toMatchObject({ verdict: 'clean', findings: [] });
    expect(await auditOf(sources, path, 0)).toEqual(alone);
    expect(await auditOf(threaded, path, 0)).toEqual(alone);
  });

  test.each(Object.keys(CASES))('%s is found alike with a thread and without', async (name) => {
    const path = copyWith(name.replaceAll(' ', '-'), CASES[name] ?? (() => {}));
    const before = scratchFolders();
    const alone = await auditOf(sources, path, Number.POSITIVE_INFINITY);
    expect(alone).not.toMatchObject({ verdict: 'clean' });
    expect(await auditOf(sources, path, 0)).toEqual(alone);
    expect(await auditOf(threaded, path, 0)).toEqual(alone);
    expect(scratchFolders().filter((folder) => !before.includes(folder))).toEqual([]);
  });
});
