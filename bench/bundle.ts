import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { exportBundle } from '../src/audit/bundle/export.js';
import type { Turn } from './bundle-turn.js';
import { atLeast, atMost, type Figure, median } from './figure.js';
import { writeLedger } from './ledger.js';

const ENTRIES = 1_000_000;
const ROUNDS = 3;

/**
 * A whole audit of a bundle of 1,000,000 entries, against the bare loop of `bundle-turn.ts`. Each turn is a process of its
 * own, as a stranger would start it; the files come from a warm cache.
 */
export async function bundleBench(): Promise<Figure[]> {
  const root = mkdtempSync(join(tmpdir(), 'boundbook-bench-'));
  try {
    const bundle = join(root, 'bundle');
    await writeLedger(root, ENTRIES);
    await exportBundle(root, undefined, { out: bundle, beforeUnblinding: true });
    return measureBundle(bundle, ROUNDS);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Bare loop and audit in turns. */
export function measureBundle(bundle: string, rounds: number): Figure[] {
  const bare: Turn[] = [];
  const audit: Turn[] = [];
  for (let round = 0; round < rounds; round++) {
    bare.push(turn('bare', bundle));
    audit.push(turn('audit', bundle));
  }
  const [entries] = new Set([...bare, ...audit].map((one) => one.entries));
  if (audit.some((one) => one.entries !== entries)) throw new Error('both do not read the same entries');
  const wall = (turns: readonly Turn[]): number => median(turns.map(({ ms }) => ms));
  const cpu = (turns: readonly Turn[]): number => median(turns.map(({ cpuMs }) => cpuMs));
  process.stderr.write(
    `${entries} entries: bare loop ${wall(bare).toFixed(0)} ms (${cpu(bare).toFixed(0)} ms of processors), ` +
      `audit ${wall(audit).toFixed(0)} ms (${cpu(audit).toFixed(0)} ms of processors)\n`,
  );
  return [
    atLeast(
      'audit of a bundle of 1,000,000 entries, against a bare loop that reads and hashes it',
      wall(bare) / wall(audit),
      0.35,
    ),
    atMost('that audit: peak resident memory, MB', Math.max(...audit.map(({ rss }) => rss)) / 1e6, 300),
  ];
}

function turn(what: 'bare' | 'audit', bundle: string): Turn {
  const program = fileURLToPath(new URL('bundle-turn.js', import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, what, bundle], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`the ${what} turn failed: ${stderr}`);
  return JSON.parse(stdout) as Turn;
}
