import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Entry } from '../../../src/ledger/entries/entry.js';
import { mentionsOf } from '../../../src/ledger/mentions.js';
import { LedgerReader } from '../../../src/ledger/reader.js';
import { LEDGER_FILE } from '../../../src/ledger/schema.js';
import { LedgerStore } from '../../../src/ledger/store.js';
import { readWorkspace } from '../../../src/manifest/workspace.js';
import { readStageRecord } from '../../../src/runner/adapters/stage-record.js';
import { compiledSources } from '../../ledger/compiled.js';
import { testClock } from '../../ledger/support.js';
import { straceMissing } from '../strace.js';
import { freeze, layOut as layOutWorkspace, ledgerOf } from '../workspace.js';
import { cuts } from './cuts.js';
import { layOut } from './disk.js';
import { type Event, record } from './recording.js';

/** The long form looks at every call; the short one at every third, from another beginning with another seed. */
const LONG = process.env.BOUNDBOOK_CRASH === 'long';
const SEED = process.env.BOUNDBOOK_CRASH_SEED ?? 'boundbook';
const EVERY = LONG ? 1 : 3;
const TIME_MS = LONG ? 3_600_000 : 600_000;

const missing = straceMissing();

let folder: string;
let compiled: ReturnType<typeof compiledSources>;

beforeAll(() => {
  compiled = compiledSources();
  folder = mkdtempSync(join(fastFolder(), 'boundbook-power-'));
});
afterAll(() => {
  compiled.remove();
  rmSync(folder, { recursive: true, force: true });
});

function fastFolder(): string {
  try {
    accessSync('/dev/shm', constants.W_OK);
    return '/dev/shm';
  } catch {
    return tmpdir();
  }
}

interface Opened {
  readonly leaves: readonly string[];
  readonly missingObjects: number;
}

/** Opens what a power cut left as a run would: for writing, every entry verified. Null where there is no ledger yet. */
function open(ledger: string): Opened | null | { readonly refused: string } {
  if (!existsSync(join(ledger, LEDGER_FILE))) return null;
  const leaves: string[] = [];
  const entries: Entry[] = [];
  try {
    const store = LedgerStore.openWriter(ledger, {
      now: testClock(),
      follow: ({ leaf, entry }) => {
        leaves.push(leaf.toString('hex'));
        entries.push(entry);
      },
    });
    try {
      const named = new Set(entries.flatMap((entry) => mentionsOf(entry).map(({ digest }) => digest)));
      const missingObjects = [...named].filter((digest) => store.findObject(digest) === null).length;
      return { leaves, missingObjects };
    } finally {
      store.close();
    }
  } catch (error) {
    const { exitCode, message } = error as { exitCode?: number; message: string };
    expect(exitCode, message).toBe(4);
    return { refused: message };
  }
}

interface Losses {
  states: number;
  /** Refused, with exit code 4 and a word on what is missing. */
  refused: number;
  /** States that lack entries which were acknowledged, and the most of them. */
  losing: number;
  most: number;
}

/** Opens every state and counts what is lost of what was acknowledged. Everything else must hold in each of them. */
async function tally(
  events: readonly Event[],
  base: string,
  ledger: string,
  options: {
    readonly leaves: readonly string[];
    readonly take: (size: number, event: Event) => number;
    readonly look?: (state: string, at: number) => Promise<void>;
  },
): Promise<Losses> {
  const losses: Losses = { states: 0, refused: 0, losing: 0, most: 0 };
  const setting = { first: 0, take: options.take, seed: `${SEED} ${base.length}`, every: EVERY };
  for (const { at, files, acks } of cuts(events, base, setting)) {
    const state = mkdtempSync(join(folder, 'state-'));
    layOut(files, state);
    const opened = open(join(state, ledger));
    losses.states++;
    let size = 0;
    if (opened !== null && 'refused' in opened) losses.refused++;
    else if (opened !== null) {
      size = opened.leaves.length;
      expect(opened.leaves, `after call ${at}`).toEqual(options.leaves.slice(0, size));
      expect(opened.missingObjects, `objects after call ${at}`).toBe(0);
    }
    if (size < acks) {
      losses.losing++;
      losses.most = Math.max(losses.most, acks - size);
    }
    await options.look?.(state, at);
    rmSync(state, { recursive: true, force: true });
  }
  return losses;
}

function leavesOf(ledger: string): readonly string[] {
  const reader = LedgerReader.open(ledger);
  try {
    return [...reader.entries()].map(({ leaf }) => leaf.toString('hex'));
  } finally {
    reader.close();
  }
}

function report(what: string, { states, refused, losing, most }: Losses): void {
  console.log(
    `${what}: ${states} states, ${refused} refused, ${losing} lose acknowledged entries (up to ${most})`,
  );
}

describe.skipIf(missing !== null)(`power cuts (${missing ?? 'strace'}, seed ${SEED})`, () => {
  /** Records a program that appends and says how many entries are durable. */
  function appends(mode: 'full' | 'normal') {
    const base = join(folder, mode);
    mkdirSync(base);
    const script = join(import.meta.dirname, '../fixture/append.mjs');
    const argv = [process.execPath, script, compiled.folder, join(base, 'ledger'), mode];
    const events = record(argv, { cwd: base, log: join(folder, `${mode}.log`), below: [base] });
    const take = (size: number, event: Event) =>
      event.op === 'say' ? Number(/^ACK (\d+)\n$/.exec(event.text)?.[1] ?? size) : size;
    return { events, base, take, leaves: leavesOf(join(base, 'ledger')) };
  }

  test(
    'lose no acknowledged entry and no object, from the making of the ledger on',
    async () => {
      const { events, base, ...rest } = appends('full');
      const losses = await tally(events, base, 'ledger', rest);
      report('appends', losses);
      expect(losses).toMatchObject({ refused: 0, losing: 0 });
      expect(losses.states).toBeGreaterThan(200);
    },
    TIME_MS,
  );

  test(
    'control: with synchronous=NORMAL they do',
    async () => {
      const { events, base, ...rest } = appends('normal');
      const losses = await tally(events, base, 'ledger', rest);
      report('appends with synchronous=NORMAL', losses);
      expect(losses.losing).toBeGreaterThan(20);
    },
    TIME_MS,
  );

  test(
    'a whole run: ledger, head, objects and the ends of stages',
    async () => {
      const workspace = freeze(join(folder, 'run'), 'command', 4, join(compiled.folder, 'cli.js'));
      const below = join(workspace.root, 'ledger');
      mkdirSync(below, { recursive: true });
      const argv = [process.execPath, workspace.cli, 'run', '--json', '--workers', '2'];
      const events = record(argv, { cwd: workspace.root, log: join(folder, 'run.log'), below: [below] });
      const ledger = ledgerOf(workspace).slice(below.length + 1);
      const reader = LedgerReader.open(ledgerOf(workspace));
      const entries = [...reader.entries()];
      reader.close();
      const marks = durableMarks(events, below);
      expect(marks.length).toBe(8);
      const losses = await tally(events, below, ledger, {
        leaves: entries.map(({ leaf }) => leaf.toString('hex')),
        take: (size, event) =>
          Math.max(
            size,
            acknowledged(
              event,
              entries.map(({ entry }) => entry),
            ),
          ),
        look: async (state, at) => {
          for (const { from, attempt, stage } of marks) {
            if (at < from) continue;
            const kept = await readStageRecord(join(state, ledger, 'work', attempt), stage, attempt);
            expect(kept, `the end of ${stage} after call ${at}`).not.toBeNull();
          }
        },
      });
      report('a run', losses);
      expect(losses).toMatchObject({ refused: 0, losing: 0 });
      expect(losses.states).toBeGreaterThan(200);
    },
    TIME_MS,
  );

  test(
    'freezing: a manifest is there as a whole or not at all, and is durable when it was printed',
    async () => {
      const root = join(folder, 'freeze');
      const { cli } = layOutWorkspace(root, 'command', 4, join(compiled.folder, 'cli.js'));
      const argv = [process.execPath, cli, 'freeze', 'protocol/crash.yaml'];
      const events = record(argv, {
        cwd: root,
        log: join(folder, 'freeze.log'),
        below: [root],
      });
      let states = 0;
      const take = (said: boolean, event: Event) => said || event.op === 'say';
      const setting = { first: false, take, seed: SEED, every: 1 };
      for (const { files, acks } of cuts(events, root, setting)) {
        const state = mkdtempSync(join(folder, 'state-'));
        layOut(files, state);
        const { manifests, damaged } = await readWorkspace(state);
        expect(damaged).toEqual([]);
        if (acks) expect(manifests).toHaveLength(1);
        states++;
        rmSync(state, { recursive: true, force: true });
      }
      console.log(`freezing: ${states} states`);
      expect(states).toBeGreaterThan(10);
    },
    TIME_MS,
  );
});

/** How many entries an event of a run shows to be acknowledged: work begins only when its entry is durable. */
function acknowledged(event: Event, entries: readonly Entry[]): number {
  if (event.op === 'say') return entries.length;
  const [, attempt, stage] =
    event.op === 'mkdir' ? (/\/work\/([0-9a-f]{32})\/(generate|grade)$/.exec(event.path) ?? []) : [];
  if (attempt === undefined) return 0;
  const due = entries.findIndex((entry) =>
    stage === 'generate'
      ? entry.type === 'attempt.started' && entry.attempt === attempt
      : entry.type === 'stage.finished' && entry.attempt === attempt && entry.stage === 'generate',
  );
  return due + 1;
}

/** From which call on the end of a stage is durable by a file of its own: names of file and folder are synced. */
function durableMarks(events: readonly Event[], below: string) {
  return events.flatMap((event, i) => {
    const [, home = '', attempt = '', stage] =
      event.op === 'rename'
        ? (/^(.*\/work\/([0-9a-f]{32}))\/(generate|grade)\.ended$/.exec(event.to) ?? [])
        : [];
    if (stage !== 'generate' && stage !== 'grade') return [];
    expect(home.startsWith(below)).toBe(true);
    const syncOf = (path: string, after: number) =>
      events.findIndex((each, at) => at > after && each.op === 'sync' && each.path === path);
    const made = events.findIndex((each) => each.op === 'mkdir' && each.path.startsWith(`${home}/`));
    // Once the attempt's folder is durable by its name, it stays so.
    const [marked, named] = [syncOf(home, i), syncOf(dirname(home), made)];
    return marked < 0 || named < 0 ? [] : [{ from: Math.max(marked, named), attempt, stage } as const];
  });
}
