import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expectDocumented, expectExtends, expectIntent, expectSound, snapshot } from './observe.js';
import type { Story } from './stories.js';
import { describe, type Ended, strike } from './strike.js';
import { copyOf, type Workspace } from './workspace.js';

/** What a campaign did. */
export interface Tally {
  /** Runs that were killed. */
  kills: number;
  /** Runs in which a system call was made to fail. */
  faults: number;
  /** Blows that came too late: the run was over. */
  missed: number;
  runs: number;
  /** Ends of runs with a failing system call: how often each error code, or `done`. */
  readonly ends: Map<string, number>;
}

export const newTally = (): Tally => ({ kills: 0, faults: 0, missed: 0, runs: 0, ends: new Map() });

/** How often an undisturbed run may be needed: a server of a run that was killed may still be ending. */
const MAX_LAST_RUNS = 3;

/** Plays a story and checks after every blow, and at the end, that the ledger is what it must be. */
export async function play({ template, workers, blows }: Story, folder: string, tally: Tally): Promise<void> {
  const workspace = copyOf(template, join(mkdtempSync(join(folder, 'story-')), 'ws'));
  let before = snapshot(workspace);
  const told: string[] = [];
  try {
    for (const blow of blows) {
      told.push(describe(blow));
      const ended = await strike(workspace, blow, workers);
      count(ended, tally);
      const after = snapshot(workspace);
      expectExtends(after, before);
      expectIntent(workspace, after);
      before = after;
      if (ended.code === 0) break;
    }
    await finish(workspace, workers, tally);
    expectExtends(snapshot(workspace), before);
    await expectSound(workspace);
    rmSync(join(workspace.root, '..'), { recursive: true, force: true });
  } catch (error) {
    const kept = process.env.BOUNDBOOK_CRASH_KEEP === '1';
    if (!kept) rmSync(join(workspace.root, '..'), { recursive: true, force: true });
    const where = kept ? ` (kept in ${workspace.root})` : '';
    throw new Error(`${template.kind}: ${told.join('; ')}${where}: ${message(error)}`, { cause: error });
  }
}

function count(ended: Ended, tally: Tally): void {
  tally.runs++;
  if (!ended.hit) tally.missed++;
  else if (ended.code === null) tally.kills++;
  else tally.faults++;
  if (ended.code === null) return;
  const end = expectDocumented(ended);
  if (ended.hit) tally.ends.set(end, (tally.ends.get(end) ?? 0) + 1);
}

async function finish(workspace: Workspace, workers: number, tally: Tally): Promise<void> {
  for (let i = 0; ; i++) {
    const ended = await strike(workspace, null, workers);
    tally.runs++;
    if (ended.code === 0) return;
    const end = expectDocumented(ended);
    if (i + 1 === MAX_LAST_RUNS) throw new Error(`it does not come to its end: ${end}\n${ended.stderr}`);
  }
}

/** Plays stories side by side until there are enough blows, or no more stories. The first that fails stops the rest. */
export async function playAll(
  stories: Iterator<Story>,
  folder: string,
  parallel: number,
  enough: (tally: Tally) => boolean,
): Promise<Tally> {
  const tally = newTally();
  let failed = false;
  const worker = async (): Promise<void> => {
    while (!failed && !enough(tally)) {
      const next = stories.next();
      if (next.done === true) return;
      try {
        await play(next.value, folder, tally);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return tally;
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
