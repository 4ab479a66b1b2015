import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Book, openBook } from '../src/ledger/book.js';
import { LedgerReader } from '../src/ledger/reader.js';
import { StateCache } from '../src/ledger/state-cache.js';
import { CACHE_FILE } from '../src/ledger/state-cache-file.js';
import type { LedgerStore } from '../src/ledger/store.js';
import type { StoredManifest } from '../src/manifest/workspace.js';
import { PlanQueue } from '../src/runner/plan-queue.js';
import { selectedSlots } from '../src/runner/selection.js';
import { planDigest } from '../src/slots/plan.js';
import { bareLoop } from './bare-loop.js';
import { atLeast, atMost, type Figure, median } from './figure.js';
import { writeLedger } from './ledger.js';

const ENTRIES = 1_000_000;
/** Slots behind the last checkpoint, as a crash leaves them. */
const SLOTS_BEHIND = 1000;
const ROUNDS = 5;

/**
 * What `run` does to a ledger of 1,000,000 entries before the first attempt: open it with the state cached at the last
 * checkpoint, verify and fold what follows, hold the plan to its digest and find the next slot. Beside it a bare loop that
 * reads and hashes all entries, in turns. That an older cache is not used is looked at, not timed.
 */
export async function openBench(): Promise<Figure[]> {
  const root = mkdtempSync(join(tmpdir(), 'boundbook-bench-'));
  const times = { bare: [] as number[], open: [] as number[], processor: [] as number[] };
  try {
    const { stored, file, entries } = await writeLedger(root, ENTRIES, SLOTS_BEHIND);
    for (let round = 0; round <= ROUNDS; round++) {
      const from = performance.now();
      const rows = bareLoop(file);
      const between = performance.now();
      const before = process.cpuUsage();
      const size = await openForRun(root, stored);
      const to = performance.now();
      const { user, system } = process.cpuUsage(before);
      if (rows !== entries || size !== entries) throw new Error(`${rows} rows, ${size} entries`);
      // The first round warms up.
      if (round === 0) continue;
      times.bare.push(between - from);
      times.open.push(to - between);
      times.processor.push((user + system) / 1000);
    }
    await assertOlderIsDropped(root, stored);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  // The best time: other work on the machine only ever adds.
  const processor = Math.min(...times.processor).toFixed(0);
  process.stderr.write(
    `opening takes ${Math.min(...times.open).toFixed(0)} ms (${processor} ms of processors)\n`,
  );
  const seconds = Math.min(...times.open) / 1000;
  return [
    atMost('opening a ledger of 1,000,000 entries for run, seconds', seconds, 2),
    atLeast(
      'a bare loop over 1,000,000 entries, against opening them for run',
      median(times.bare) / median(times.open),
      2,
    ),
  ];
}

async function openForRun(root: string, stored: StoredManifest): Promise<number> {
  const book = await openBook(root, stored, 'write', now);
  try {
    const { protocol, taskIds } = book.context;
    const { count } = planDigest(protocol, taskIds);
    const queue = new PlanQueue({
      slots: selectedSlots(
        { shard: null, only: new Map() },
        protocol,
        taskIds,
        book.fold.slots.closedByNumber(),
      ),
      protocol,
      tasks: book.tasks.tasks,
      fold: book.fold,
      limit: Number.POSITIVE_INFINITY,
      stationOf: ({ model }) => model,
    });
    if (queue.nextStation() === null || count === 0) throw new Error('nothing is left to do');
    return book.head().size;
  } finally {
    book.close();
  }
}

/** Puts the cache of before a checkpoint back after it. */
async function assertOlderIsDropped(root: string, stored: StoredManifest): Promise<void> {
  const book = await openBook(root, stored, 'write', now);
  const cache = join(book.folder, CACHE_FILE);
  copyFileSync(cache, `${cache}.old`);
  if (cachedSize(book) === null) throw new Error('the cache was not used');
  const { size, root: tree } = book.head();
  book.store.append([{ type: 'checkpoint', size, root: tree, note: null, timestamps: [] }]);
  book.close();
  if (cachedSize(book) !== size + 1) throw new Error('the cache does not follow the checkpoint');
  copyFileSync(`${cache}.old`, cache);
  if (cachedSize(book) !== null) throw new Error('a cache older than the last checkpoint was used');
}

function cachedSize(book: Book<LedgerStore>): number | null {
  const reader = LedgerReader.open(book.folder);
  const cache = new StateCache(book.folder);
  try {
    return cache.load(book.context, reader)?.tail.size ?? null;
  } finally {
    cache.close(null, reader);
    reader.close();
  }
}

function now(): string {
  return new Date().toISOString();
}
