import type { ProcessStat } from './process-identity.js';
import { listProcesses } from './process-tree.js';

/**
 * What was seen of the offspring of one process while it ran: a process that has lost its parents is known again by its
 * number and start, and its children by their session, whatever they did to their environment.
 */
export class ProcessTrail {
  readonly #root: Pick<ProcessStat, 'pid' | 'started'>;
  /** Start of each living process that belongs here, by its number. */
  #seen = new Map<number, string>();
  #sessions = new Set<number>();

  /** @param root the first process, which leads a process group and a session of its own */
  constructor(root: Pick<ProcessStat, 'pid' | 'started'>) {
    this.#root = root;
    this.#sessions.add(root.pid);
  }

  /**
   * The living processes that belong here, out of all that live now.
   *
   * @param own others that are known to have come from the first process
   * @param strangers others that belong here wherever they came from: they and their children, but not their sessions
   */
  look(
    all: readonly ProcessStat[],
    own: readonly ProcessStat[] = [],
    strangers: readonly ProcessStat[] = [],
  ): readonly ProcessStat[] {
    const children = byParent(all);
    const family = withOffspring([...own, ...all.filter((stat) => this.#knows(stat))], children);
    this.#seen = new Map([...family.values()].map(({ pid, started }) => [pid, started]));
    // A number of a session is free for others once nobody is left in it.
    this.#sessions = new Set([...family.values()].map(({ session }) => session));
    return [...new Map([...withOffspring(strangers, children), ...family]).values()];
  }

  #knows({ pid, group, session, started }: ProcessStat): boolean {
    if (pid === this.#root.pid) return started === this.#root.started;
    return group === this.#root.pid || this.#sessions.has(session) || this.#seen.get(pid) === started;
  }
}

function withOffspring(
  first: readonly ProcessStat[],
  children: ReadonlyMap<number, readonly ProcessStat[]>,
): ReadonlyMap<number, ProcessStat> {
  const found = new Map<number, ProcessStat>();
  const waiting = [...first];
  for (let stat = waiting.pop(); stat !== undefined; stat = waiting.pop()) {
    if (found.has(stat.pid)) continue;
    found.set(stat.pid, stat);
    waiting.push(...(children.get(stat.pid) ?? []));
  }
  return found;
}

function byParent(all: readonly ProcessStat[]): ReadonlyMap<number, ProcessStat[]> {
  const children = new Map<number, ProcessStat[]>();
  for (const stat of all) {
    const siblings = children.get(stat.parent);
    if (siblings === undefined) children.set(stat.parent, [stat]);
    else siblings.push(stat);
  }
  return children;
}

const EVERY_MS = 100;
/** How much longer than a look the time to the next one is at least. */
const REST = 50;

/** Looks at all processes now and then, once for all trails that are followed. */
class Lookout {
  readonly #trails = new Set<ProcessTrail>();
  #timer: NodeJS.Timeout | undefined;

  follow(trail: ProcessTrail): void {
    this.#trails.add(trail);
    if (this.#timer === undefined) this.#wait(EVERY_MS);
  }

  leave(trail: ProcessTrail): void {
    this.#trails.delete(trail);
    if (this.#trails.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #wait(ms: number): void {
    this.#timer = setTimeout(() => {
      const start = performance.now();
      const all = listProcesses();
      for (const trail of this.#trails) trail.look(all);
      this.#wait(Math.max(EVERY_MS, REST * (performance.now() - start)));
    }, ms);
    this.#timer.unref();
  }
}

export const lookout = new Lookout();
