import { existsSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { LEDGER_FILE } from '../src/ledger/schema.js';
import { residentMemory } from './memory.js';
import { freezeWorkspace, runPlan, SERVER } from './run-workspace.js';

const WORKERS = 64;
const REPS = 8;
const SAMPLE_MS = 1000;
/** A reading is the least of so many in a row: what is in flight comes and goes. */
const SAMPLES = 5;
/** Its start, a candidate, a report, its end, the slot's settlement. */
const ENTRIES_PER_ATTEMPT = 5;

/** What the process held, in bytes, once so many attempts had begun. */
export interface Reading {
  readonly attempts: number;
  readonly resident: number;
  /** What V8 uses, and what it holds outside its heap. */
  readonly heap: number;
}

export interface Growth {
  readonly attempts: number;
  readonly early: Reading;
  readonly late: Reading;
  readonly cpuMs: number;
  readonly seconds: number;
}

/** `node --expose-gc memory-turn.js FOLDER ATTEMPTS`: one session of so many attempts, read once a second. */
const [, , root = '', count = ''] = process.argv;
const attempts = Number(count);
const bench = { tasks: attempts / REPS, reps: REPS, server: SERVER, workers: WORKERS };
const stored = await freezeWorkspace(root, bench);

const readings: Reading[] = [];
const from = performance.now();
const cpu = process.cpuUsage();
const ledger = join(root, 'ledger', stored.file.replace(/\.json$/, ''), LEDGER_FILE);
let counter: Database.Statement | null = null;
const timer = setInterval(() => {
  // The gate comes first.
  if (!existsSync(ledger)) return;
  counter ??= new Database(ledger, { readonly: true }).prepare('SELECT max(seq) AS last FROM entry');
  const reading = read(counter);
  if (reading.attempts === 0) return;
  readings.push(reading);
  if (readings.length % 10 === 0) {
    process.stderr.write(
      `${reading.attempts} attempts: ${(reading.resident / 1e6).toFixed(0)} MB resident, ${(reading.heap / 1e6).toFixed(0)} MB heap\n`,
    );
  }
}, SAMPLE_MS);
await runPlan(root, WORKERS);
clearInterval(timer);

const early = readings.findIndex((one) => one.attempts >= attempts / 10);
if (early === -1 || readings.length < early + 2 * SAMPLES)
  throw new Error('it was over too soon to be measured');
const { user, system } = process.cpuUsage(cpu);
const growth: Growth = {
  attempts,
  early: least(readings.slice(early, early + SAMPLES)),
  late: least(readings.slice(-SAMPLES)),
  cpuMs: (user + system) / 1000,
  seconds: (performance.now() - from) / 1000,
};
process.stdout.write(JSON.stringify(growth));

/** The entries are counted: every attempt of this plan leaves equally many. */
function read(statement: Database.Statement): Reading {
  globalThis.gc?.();
  const { last } = statement.get() as { last: number | null };
  const { heapUsed, external } = process.memoryUsage();
  return {
    attempts: Math.floor((last ?? 0) / ENTRIES_PER_ATTEMPT),
    resident: residentMemory(),
    heap: heapUsed + external,
  };
}

function least(some: readonly Reading[]): Reading {
  return some.reduce((a, b) => (b.resident < a.resident ? b : a));
}
