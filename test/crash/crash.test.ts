import { spawnSync } from 'node:child_process';
import { accessSync, constants, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compiledSources } from '../ledger/compiled.js';
import { playAll, type Tally } from './campaign.js';
import { faults, killsAtEveryStep, killsAtSteps, killsInTime, type Template } from './stories.js';
import { recordArgv, STEPS, straceMissing } from './strace.js';
import { strike } from './strike.js';
import { copyOf, freeze, type Workspace } from './workspace.js';

/** `npm run crash` plays the long form: every durable step, more than 1,000 kills and 500 faults. */
const LONG = process.env.BOUNDBOOK_CRASH === 'long';
const SEED = process.env.BOUNDBOOK_CRASH_SEED ?? 'boundbook';
const PARALLEL = 2;
const SLOTS = 4;
const TIME_MS = LONG ? 6 * 3_600_000 : 600_000;

const missing = straceMissing();

let folder: string;
let compiled: ReturnType<typeof compiledSources>;
let templates: readonly Template[];
let lengthMs = 0;

beforeAll(async () => {
  compiled = compiledSources();
  folder = mkdtempSync(join(fastFolder(), 'boundbook-crash-'));
  const cli = join(compiled.folder, 'cli.js');
  const made = [];
  for (const kind of ['command', 'openai'] as const) {
    const workspace = freeze(join(folder, kind), kind, SLOTS, cli);
    const begin = performance.now();
    expect((await strike(copyOf(workspace, join(folder, `${kind}-timed`)), null, 2)).code).toBe(0);
    lengthMs = Math.max(lengthMs, performance.now() - begin);
    made.push({ workspace, counts: countSteps(workspace) });
  }
  templates = made;
}, TIME_MS);

afterAll(() => {
  compiled.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Killing needs no disk: memory is quicker, and an fsync there costs nothing. */
function fastFolder(): string {
  try {
    accessSync('/dev/shm', constants.W_OK);
    return '/dev/shm';
  } catch {
    return tmpdir();
  }
}

/** The greatest number of each step in any one thread of an undisturbed run. */
function countSteps(workspace: Workspace): Template['counts'] {
  const counts = Object.fromEntries(STEPS.map((step) => [step, 0])) as Record<(typeof STEPS)[number], number>;
  if (missing !== null) return counts;
  const { root, cli } = copyOf(workspace, join(folder, `${workspace.kind}-counted`));
  const log = join(root, 'steps.log');
  const [program = '', ...args] = recordArgv(log, [process.execPath, cli, 'run', '--workers', '2']);
  expect(spawnSync(program, args, { cwd: root, stdio: 'ignore' }).status).toBe(0);
  const seen = new Map<string, number>();
  for (const line of readFileSync(log, 'utf8').split('\n')) {
    const [, thread, name] = /^(\d+) +([a-z0-9]+)\(/.exec(line) ?? [];
    const step = STEPS.find((each) => name?.startsWith(each));
    if (step === undefined) continue;
    const key = `${thread} ${step}`;
    seen.set(key, (seen.get(key) ?? 0) + 1);
    // Not every write of a run is worth a kill: most of them wake the event loop.
    counts[step] = Math.min(Math.max(counts[step], seen.get(key) ?? 0), step === 'write' ? 100 : 1000);
  }
  return counts;
}

function report(what: string, tally: Tally): void {
  const { kills, faults: failing, missed, runs, ends } = tally;
  const codes = [...ends].sort().map(([code, count]) => `${code} ${count}`);
  const tail = codes.length === 0 ? '' : `; ends: ${codes.join(', ')}`;
  console.log(`${what}: ${kills} kills, ${failing} faults, ${missed} came too late, ${runs} runs${tail}`);
}

describe(`kill -9 at any time (seed ${SEED})`, () => {
  test(
    'loses nothing, starts nothing twice and settles by the first report',
    async () => {
      const target = LONG ? 400 : 10;
      const stories = killsInTime(templates, `${SEED} time`, lengthMs);
      const tally = await playAll(stories, folder, PARALLEL, ({ kills }) => kills >= target);
      report('kills in time', tally);
      expect(tally.kills).toBeGreaterThanOrEqual(target);
    },
    TIME_MS,
  );
});

describe.skipIf(missing !== null)(`at a chosen system call (${missing ?? 'strace'}, seed ${SEED})`, () => {
  test(
    'kill -9 before and after durable steps, and again while it recovers',
    async () => {
      const target = LONG ? 300 : 10;
      const stories = killsAtSteps(templates, `${SEED} steps`);
      const tally = await playAll(stories, folder, PARALLEL, ({ kills }) => kills >= target);
      report('kills at steps', tally);
      expect(tally.kills).toBeGreaterThanOrEqual(target);
    },
    TIME_MS,
  );

  test.runIf(LONG)(
    'kill -9 before and after every durable step of a first run',
    async () => {
      const tally = await playAll(killsAtEveryStep(templates), folder, PARALLEL, () => false);
      report('kills at every step', tally);
      expect(tally.kills).toBeGreaterThan(300);
    },
    TIME_MS,
  );

  test(
    'calls that fail with EIO or ENOSPC end the run in a documented way, and the next one goes on',
    async () => {
      const target = LONG ? 500 : 10;
      const stories = faults(templates, `${SEED} faults`);
      const tally = await playAll(stories, folder, PARALLEL, (soFar) => soFar.faults >= target);
      report('faults', tally);
      expect(tally.faults).toBeGreaterThanOrEqual(target);
    },
    TIME_MS,
  );
});
