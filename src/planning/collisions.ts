import type { Protocol } from '../protocol/schema/protocol.js';
import type { TaskIds } from '../protocol/tasks.js';
import { samplingSeed } from '../slots/slot.js';

/** Cells (queue, evaluation seed, task, rep) whose sampling seed another cell has as well (F-53). */
export interface SeedCollisions {
  readonly cells: number;
  /** Counted, or expected for random seeds where the plan is too large to count. */
  readonly basis: 'counted' | 'expected';
  /** Cells minus distinct seeds. */
  readonly repeated: number;
  /** The same among cells of one task, where the model meets an equal prompt with an equal seed; null if not counted. */
  readonly repeatedInTask: number | null;
}

/** Above this the seeds are not held in memory. */
const MAX_COUNTED = 4_000_000;

/** Counts equal sampling seeds over a plan. Arms share seeds on purpose and do not count. */
export function seedCollisions(
  protocol: Protocol,
  taskIds: TaskIds,
  maxCounted = MAX_COUNTED,
): SeedCollisions {
  const cells = cellCount(protocol, taskIds);
  if (cells > maxCounted) {
    return {
      cells,
      basis: 'expected',
      repeated: expectedRepeats(cells, protocol.sampling.bits),
      repeatedInTask: null,
    };
  }
  const seeds = new Float64Array(cells);
  let filled = 0;
  let repeatedInTask = 0;
  for (const cellsOfTask of cellsByTask(protocol, taskIds)) {
    const own = new Set<number>();
    let size = 0;
    for (const seed of cellsOfTask) {
      seeds[filled++] = seed;
      own.add(seed);
      size++;
    }
    repeatedInTask += size - own.size;
  }
  seeds.sort();
  let repeated = 0;
  for (let i = 1; i < seeds.length; i++) if (seeds[i] === seeds[i - 1]) repeated++;
  return { cells, basis: 'counted', repeated, repeatedInTask };
}

function cellCount(protocol: Protocol, taskIds: TaskIds): number {
  return Object.values(protocol.queues).reduce((total, queue) => {
    const tasks = taskIds.get(queue.tasks)?.length ?? 0;
    return total + tasks * queue.reps * (queue.evaluation_seeds?.length ?? 1);
  }, 0);
}

/** The sampling seeds of each task over all queues that run it. */
function* cellsByTask(protocol: Protocol, taskIds: TaskIds): Generator<Iterable<number>> {
  const queuesOf = new Map<string, string[]>();
  for (const [name, queue] of Object.entries(protocol.queues)) {
    for (const task of taskIds.get(queue.tasks) ?? []) {
      const names = queuesOf.get(task);
      if (names === undefined) queuesOf.set(task, [name]);
      else names.push(name);
    }
  }
  for (const [task, queues] of queuesOf) yield taskSeeds(protocol, task, queues);
}

function* taskSeeds(protocol: Protocol, task: string, queues: readonly string[]): Generator<number> {
  for (const name of queues) {
    const queue = protocol.queues[name];
    for (const evaluationSeed of queue?.evaluation_seeds ?? [0]) {
      for (let rep = 0; rep < (queue?.reps ?? 0); rep++) {
        yield samplingSeed(protocol.sampling, { queue: name, evaluationSeed, task, rep });
      }
    }
  }
}

/** n − M (1 − (1 − 1/M)^n) with M = 2^bits, in a form that does not cancel: n draws, M values. */
function expectedRepeats(n: number, bits: number): number {
  const m = 2 ** bits;
  return n + m * Math.expm1(n * Math.log1p(-1 / m));
}
