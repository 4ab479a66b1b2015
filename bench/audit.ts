import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { audit } from '../src/audit/audit.js';
import { bareLoop } from './bare-loop.js';
import { atLeast, type Figure, median } from './figure.js';
import { writeLedger } from './ledger.js';

const ENTRIES = 100_000;
const ROUNDS = 5;

/**
 * A whole audit of a ledger of 100,000 entries, with its objects and the plan of 20,000 slots, against a bare loop that
 * reads each entry's row and hashes it. Both read the same file from a warm cache and take turns.
 */
export async function auditBench(): Promise<Figure[]> {
  const root = mkdtempSync(join(tmpdir(), 'boundbook-bench-'));
  const times = { bare: [] as number[], audit: [] as number[] };
  try {
    const { file } = await writeLedger(root, ENTRIES);
    for (let round = 0; round <= ROUNDS; round++) {
      const from = performance.now();
      const rows = bareLoop(file);
      const between = performance.now();
      const { findings, ledger } = await audit(root, undefined);
      const to = performance.now();
      const [finding] = findings;
      if (finding !== undefined) throw new Error(`the ledger is not clean: ${finding.message}`);
      if (rows !== ledger.head.size) throw new Error(`${rows} rows, ${ledger.head.size} entries`);
      // The first round warms up.
      if (round === 0) continue;
      times.bare.push(between - from);
      times.audit.push(to - between);
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  const [bare, whole] = [median(times.bare), median(times.audit)];
  process.stderr.write(`${ENTRIES} entries: bare loop ${bare.toFixed(0)} ms, audit ${whole.toFixed(0)} ms\n`);
  return [
    atLeast('audit of 100,000 entries, against a bare loop that reads and hashes them', bare / whole, 0.25),
  ];
}
