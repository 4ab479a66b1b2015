import type { Protocol } from '../protocol/schema/protocol.js';
import type { TaskIds } from '../protocol/tasks.js';
import { slotBlocks } from '../slots/plan.js';

/** Planned slots of one queue, arm and training seed, over all evaluation seeds. */
export interface CountRow {
  readonly queue: string;
  readonly arm: string;
  readonly trainingSeed: number | null;
  readonly tasks: number;
  readonly reps: number;
  readonly evaluations: number;
  readonly slots: number;
}

export interface PlanCounts {
  readonly rows: readonly CountRow[];
  readonly queues: readonly { readonly queue: string; readonly role: string; readonly slots: number }[];
  readonly total: number;
}

/** Counts a plan's slots by arithmetic; nothing is expanded (C7). */
export function countSlots(protocol: Protocol, taskIds: TaskIds): PlanCounts {
  const rows = new Map<string, CountRow>();
  for (const block of slotBlocks(protocol, taskIds)) {
    const { queue, arm, trainingSeed, reps } = block;
    const key = JSON.stringify([queue, arm, trainingSeed]);
    const earlier = rows.get(key);
    const tasks = block.tasks.length;
    rows.set(key, {
      queue,
      arm,
      trainingSeed,
      tasks,
      reps,
      evaluations: (earlier?.evaluations ?? 0) + 1,
      slots: (earlier?.slots ?? 0) + tasks * reps,
    });
  }
  const list = [...rows.values()];
  const queues = Object.keys(protocol.queues)
    .sort()
    .map((queue) => ({
      queue,
      role: protocol.queues[queue]?.role ?? '',
      slots: sumOf(list.filter((row) => row.queue === queue)),
    }));
  return { rows: list, queues, total: sumOf(list) };
}

function sumOf(rows: readonly CountRow[]): number {
  return rows.reduce((total, row) => total + row.slots, 0);
}
