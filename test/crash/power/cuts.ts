import { createHash } from 'node:crypto';
import seedrandom from 'seedrandom';
import { type Choice, Disk, DROP, KEEP } from './disk.js';
import type { Event } from './recording.js';

/** What a power cut left, and what had been acknowledged by then. */
export interface Cut<Acks> {
  readonly at: number;
  readonly files: ReadonlyMap<string, Buffer | null>;
  readonly acks: Acks;
}

/** Nothing that was not synced, all of it, and four subsets by chance. */
const RANDOM_STATES = 4;

/**
 * Every state in which a power cut can leave what a recording wrote: one after each call, six for each. States that are
 * equal in files and acknowledgements come once.
 *
 * @param take what is acknowledged after a call
 * @param every only after each so many calls
 */
export function* cuts<Acks>(
  events: readonly Event[],
  base: string,
  setting: {
    readonly first: Acks;
    readonly take: (acks: Acks, event: Event) => Acks;
    readonly seed: string;
    readonly every: number;
  },
): Generator<Cut<Acks>> {
  const disk = new Disk(base);
  const random = seedrandom(setting.seed);
  const seen = new Set<string>();
  let acks = setting.first;
  for (const [i, event] of events.entries()) {
    disk.apply(event);
    acks = setting.take(acks, event);
    if (i % setting.every !== 0 && i !== events.length - 1) continue;
    for (let n = -2; n < RANDOM_STATES; n++) {
      const choice: Choice = n === -2 ? DROP : n === -1 ? KEEP : () => random() < 0.5;
      const files = disk.after(choice);
      const key = keyOf(files, acks);
      if (seen.has(key)) continue;
      seen.add(key);
      yield { at: i, files, acks };
    }
  }
}

function keyOf(files: ReadonlyMap<string, Buffer | null>, acks: unknown): string {
  const hash = createHash('sha256').update(JSON.stringify(acks));
  for (const [path, content] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    // The index of the log is memory that happens to have a name: it is made anew after a restart.
    if (path.endsWith('-shm')) continue;
    hash.update(`\0${path}\0${content === null ? 'folder' : content.length}\0`);
    if (content !== null) hash.update(content);
  }
  return hash.digest('hex');
}
