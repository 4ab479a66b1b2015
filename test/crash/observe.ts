import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { ERROR_CODES } from '../../src/core/error-codes.js';
import type { Entry, EntryOf, EntryType } from '../../src/ledger/entries/entry.js';
import { LedgerReader } from '../../src/ledger/reader.js';
import { LEDGER_FILE } from '../../src/ledger/schema.js';
import { readStageRecord } from '../../src/runner/adapters/stage-record.js';
import { markedProcesses } from '../../src/runner/process-tree.js';
import type { Ended } from './strike.js';
import { executions, ledgerOf, type Workspace } from './workspace.js';

/** What a ledger held at some time: the entries that anybody could have seen by then. */
export interface Snapshot {
  readonly leaves: readonly string[];
  readonly entries: readonly Entry[];
}

const NOTHING: Snapshot = { leaves: [], entries: [] };

/** Reads a ledger as it lies there, by the product's own opening: its head is asked, its chain verified. */
export function snapshot(workspace: Workspace): Snapshot {
  const folder = ledgerOf(workspace);
  if (!existsSync(join(folder, LEDGER_FILE))) return NOTHING;
  const reader = LedgerReader.open(folder);
  try {
    const records = [...reader.entries()];
    return {
      leaves: records.map(({ leaf }) => leaf.toString('hex')),
      entries: records.map(({ entry }) => entry),
    };
  } finally {
    reader.close();
  }
}

/** Law 4: what was there is there, in its place. */
export function expectExtends(after: Snapshot, before: Snapshot): void {
  expect(after.leaves.slice(0, before.leaves.length)).toEqual(before.leaves);
}

/** Law 2: whatever a command or a server was asked to do has its attempt in the ledger. */
export function expectIntent(workspace: Workspace, { entries }: Snapshot): void {
  const started = of(entries, 'attempt.started');
  if (workspace.kind === 'command') {
    const known = new Set(started.map(({ attempt }) => attempt));
    for (const [what, attempt = ''] of executions(workspace)) {
      expect(known.has(attempt), `${what} of attempt ${attempt}`).toBe(true);
    }
    return;
  }
  const allowed = countBy(started, ({ sampling_seed }) => String(sampling_seed));
  const asked = countBy(executions(workspace), ([, seed = '']) => seed);
  for (const [seed, count] of asked)
    expect(allowed.get(seed) ?? 0, `seed ${seed}`).toBeGreaterThanOrEqual(count);
}

/** A run that was not killed ends in a documented way: exit code, one JSON document, no stack trace. */
export function expectDocumented({ code, stdout, stderr }: Ended): string {
  expect(stderr).not.toMatch(/^\s+at .*:\d+:\d+\)?$/m);
  expect([0, 2, 3, 4, 5], stderr).toContain(code);
  const document = JSON.parse(stdout) as { error?: { code: string; exit: number; hint: string | null } };
  if (code === 0) {
    expect(document.error).toBeUndefined();
    return 'done';
  }
  const error = document.error ?? { code: '', exit: 0, hint: null };
  expect(Object.keys(ERROR_CODES)).toContain(error.code);
  expect(error.exit).toBe(code);
  expect(error.hint).toMatch(/./);
  return error.code;
}

/** Everything that must hold when a plan that was interrupted has come to its end. */
export async function expectSound(workspace: Workspace): Promise<void> {
  const { entries } = snapshot(workspace);
  const closed = entries.flatMap((entry) =>
    entry.type === 'slot.settled' || entry.type === 'slot.unresolved' ? [entry.slot] : [],
  );
  expect(closed).toHaveLength(workspace.slots);
  expect(new Set(closed).size).toBe(workspace.slots);
  expectIntent(workspace, { entries, leaves: [] });
  if (workspace.kind === 'command') await expectFirstReports(workspace, entries);
  const { findings } = await audit(workspace.root, undefined);
  expect(findings).toEqual([]);
  for (const { session } of of(entries, 'gate.passed')) expect(markedProcesses(`${session}.`)).toEqual([]);
}

/** Law 3 as the commands' own log has it, and no second generation where the first was complete. */
async function expectFirstReports(workspace: Workspace, entries: readonly Entry[]): Promise<void> {
  const slotOf = new Map(of(entries, 'attempt.started').map(({ attempt, slot }) => [attempt, slot]));
  const generations = new Map<string, number>();
  const reports = new Map<string, string>();
  for (const [what, attempt = '', digest = ''] of executions(workspace)) {
    const slot = slotOf.get(attempt) ?? '';
    if (what === 'generate-begin') generations.set(attempt, (generations.get(attempt) ?? 0) + 1);
    if (what === 'grade-begin') expect(reports.get(slot), `graded again: ${slot}`).toBeUndefined();
    if (what === 'grade-done') reports.set(slot, `sha256:${digest}`);
  }
  for (const [attempt, count] of generations) expect(count, `generations of ${attempt}`).toBe(1);
  for (const { slot, basis } of of(entries, 'slot.settled')) {
    // A report whose line the kill kept out of the log is the only other one that there can be.
    if (basis.kind === 'report') expect(basis.report).toBe(reports.get(slot) ?? basis.report);
  }
  for (const { attempt, found } of of(entries, 'attempt.recovered')) {
    if (found !== 'nothing') continue;
    const home = join(ledgerOf(workspace), 'work', attempt);
    expect(await readStageRecord(home, 'generate', attempt), `candidate of ${attempt}`).toBeNull();
  }
}

function of<T extends EntryType>(entries: readonly Entry[], type: T): readonly EntryOf<T>[] {
  return entries.filter((entry): entry is EntryOf<T> => entry.type === type);
}

function countBy<T>(items: readonly T[], key: (item: T) => string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(key(item), (counts.get(key(item)) ?? 0) + 1);
  return counts;
}
