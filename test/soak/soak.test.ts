import { rmSync } from 'node:fs';
import seedrandom from 'seedrandom';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { markedProcesses } from '../../src/runner/process-tree.js';
import { expectDocumented } from '../crash/observe.js';
import { compiledSources } from '../ledger/compiled.js';
import { accountsOf, type SoakPlan, soakPlan } from './plan.js';
import { BLOWS, growthOf, runUntil } from './session.js';

/** Only `npm run soak` plays it: two hours, unless BOUNDBOOK_SOAK_MINUTES says otherwise. */
const LONG = process.env.BOUNDBOOK_SOAK === 'long';
const MINUTES = Number(process.env.BOUNDBOOK_SOAK_MINUTES || 120);
const SEED = process.env.BOUNDBOOK_SOAK_SEED ?? 'boundbook';
const REPS = 200;
/** A session lasts between these, in milliseconds: the longest let memory be seen. */
const SHORTEST_MS = 3000;
const LONGEST_MS = Math.max(10_000, Math.min(300_000, MINUTES * 10_000));
/** Sessions of at least so many seconds are long enough to look at how much memory they held. */
const LONG_S = 60;
const MAX_GROWTH = 50e6;

let compiled: ReturnType<typeof compiledSources>;
beforeAll(() => {
  compiled = compiledSources();
});
afterAll(() => compiled.remove());

interface Tally {
  sessions: number;
  plans: number;
  slots: number;
  attempts: number;
  mostGrowth: number;
  readonly blows: Map<string, number>;
  readonly ends: Map<string, number>;
}

test.runIf(LONG)(
  `a server that fails in every way, and runs that are interrupted, for ${MINUTES} minutes (seed ${SEED})`,
  async () => {
    const random = seedrandom(SEED);
    const until = Date.now() + MINUTES * 60_000;
    const tally: Tally = {
      sessions: 0,
      plans: 0,
      slots: 0,
      attempts: 0,
      mostGrowth: Number.NEGATIVE_INFINITY,
      blows: new Map(),
      ends: new Map(),
    };
    const plans = [await soakPlan(compiled.folder, false, REPS), await soakPlan(compiled.folder, true, REPS)];
    for (let turn = 0; Date.now() < until; turn++) {
      const index = turn % plans.length;
      const plan = plans[index] as SoakPlan;
      const blow = BLOWS[Math.floor(random() * BLOWS.length)] ?? 'kill';
      const length = SHORTEST_MS + random() ** 2 * (LONGEST_MS - SHORTEST_MS);
      const session = await runUntil(
        compiled.folder,
        plan.trial.root,
        blow,
        Math.min(length, until - Date.now() + SHORTEST_MS),
      );
      tally.sessions++;
      add(tally.blows, session.hit ? blow : 'none', 1);
      const end = session.code === null ? 'killed' : expectDocumented(session);
      expect(['killed', 'done', 'STOPPED'], session.stderr).toContain(end);
      if (session.seconds >= LONG_S) tally.mostGrowth = Math.max(tally.mostGrowth, growthOf(session.memory));
      if (end !== 'done') continue;
      await close(plan, tally);
      plans[index] = await soakPlan(compiled.folder, plan.stream, REPS);
    }
    for (const plan of plans) await close(plan, tally);
    report(tally);
    expect(tally.mostGrowth).toBeLessThanOrEqual(MAX_GROWTH);
  },
  (MINUTES + 30) * 60_000,
);

/** What is in flight is brought to its end, and everything that happened is gone through. */
async function close(plan: SoakPlan, tally: Tally): Promise<void> {
  const { root } = plan.trial;
  const last = await runUntil(compiled.folder, root, null, 0, ['--limit', '0']);
  expect(['done', 'STOPPED'], last.stderr).toContain(expectDocumented(last));
  expect(await plan.trial.findings()).toEqual([]);
  const { slots, attempts, ends } = await accountsOf(plan);
  for (const { session } of await plan.trial.of('gate.passed')) {
    expect(markedProcesses(`${session}.`)).toEqual([]);
  }
  tally.plans++;
  tally.slots += slots;
  tally.attempts += attempts;
  for (const [end, count] of ends) add(tally.ends, end, count);
  rmSync(root, { recursive: true, force: true });
}

function add(counts: Map<string, number>, key: string, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count);
}

function report({ sessions, plans, slots, attempts, mostGrowth, blows, ends }: Tally): void {
  const list = (counts: ReadonlyMap<string, number>) =>
    [...counts].sort().map(([what, count]) => `  ${String(count).padStart(8)}  ${what}`);
  const lines = [
    `${sessions} sessions of ${plans} plans: ${slots} slots, ${attempts} attempts, all accounted for`,
    ...list(blows),
    'attempts ended with',
    ...list(ends),
    Number.isFinite(mostGrowth)
      ? `a session of ${LONG_S} s or more grew by ${(mostGrowth / 1e6).toFixed(0)} MB at most`
      : `no session lasted ${LONG_S} s: memory was not looked at`,
  ];
  console.log(lines.join('\n'));
}
