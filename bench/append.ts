import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { digestOf } from '../src/core/digest.js';
import type { DraftOf } from '../src/ledger/entries/entry.js';
import { GroupCommitter } from '../src/ledger/group-commit.js';
import { LedgerStore } from '../src/ledger/store.js';
import { atLeast, type Figure, median } from './figure.js';

const ROUNDS = 9;
const APPENDS = 300;
const WRITERS = 16;

/**
 * Durable appends, one commit each, against a bare insert of the same bytes with the same settings in the same folder;
 * and 16 writers that share commits against a single one. The three take turns, so that a slow disk slows all of them.
 */
export async function appendBench(): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'boundbook-bench-'));
  const store = await LedgerStore.create(join(folder, 'ledger'), { draft: opening(), objects: [] }, { now });
  const bare = bareTable(join(folder, 'bare.sqlite'), bodyOf(store));
  const times = { bare: [] as number[], store: [] as number[], group: [] as number[] };
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      const bareMs = await timed(() => {
        for (let i = 0; i < APPENDS; i++) bare();
      });
      const storeMs = await timed(() => {
        for (let i = 0; i < APPENDS; i++) store.append([draft(i)]);
      });
      const groupMs = await timed(() => shared(store));
      // The first round warms up.
      if (round === 0) continue;
      times.bare.push(bareMs);
      times.store.push(storeMs);
      times.group.push(groupMs);
    }
  } finally {
    store.close();
    rmSync(folder, { recursive: true, force: true });
  }
  const single = median(times.store);
  return [
    atLeast('durable appends, against a bare insert of the same bytes', median(times.bare) / single, 0.7),
    atLeast(`durable appends of ${WRITERS} writers, against one`, single / median(times.group), 4),
  ];
}

async function shared(store: LedgerStore): Promise<void> {
  const group = new GroupCommitter(store);
  const writer = async (first: number): Promise<void> => {
    for (let i = first; i < APPENDS; i += WRITERS) await group.submit([draft(i)]);
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, i) => writer(i)));
}

async function timed(work: () => void | Promise<void>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

/** One insert and commit per call, into a plain table of the same columns: no trigger, no chain, no check. */
function bareTable(file: string, body: Buffer): () => void {
  const db = new Database(file);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec('CREATE TABLE entry (seq INTEGER PRIMARY KEY, prev BLOB, leaf BLOB, body BLOB) STRICT');
  const insert = db.prepare('INSERT INTO entry VALUES (?, ?, ?, ?)');
  const hash = Buffer.alloc(32, 1);
  let seq = 0;
  return () => void insert.run(seq++, hash, hash, body);
}

function bodyOf(store: LedgerStore): Buffer {
  const [entry] = store.append([draft(0)]);
  for (const { body } of store.entries(entry?.seq ?? 0)) return body;
  throw new Error('the entry is not there');
}

/** An entry of the usual kind and size. */
function draft(i: number): DraftOf<'stage.finished'> {
  const id = i.toString(16).padStart(32, '0');
  const digest = digestOf('object');
  return {
    type: 'stage.finished',
    attempt: id,
    slot: id,
    stage: 'grade',
    result: { kind: 'report', candidate: digest, report: digest, value: 1 },
    objects: { response: digest },
    usage: { prompt_tokens: 12, completion_tokens: 5 },
    finish_reason: 'stop',
    seconds: 0.125,
    queue_seconds: 0,
  };
}

function opening(): DraftOf<'ledger.opened'> {
  const digest = digestOf('manifest');
  return {
    type: 'ledger.opened',
    ledger: '0'.repeat(32),
    incarnation: 1,
    carries: null,
    restored: null,
    manifest: digest,
    manifest_object: digest,
    plan: { count: 1, digest },
    task_objects: {},
    tool: { name: 'boundbook', version: '0.0.0' },
  };
}

function now(): string {
  return new Date().toISOString();
}
