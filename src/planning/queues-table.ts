import type { PlanCounts } from './counts.js';
import { renderTable } from './table.js';

/** Slots of each queue and of the whole plan. */
export function queuesTable(counts: PlanCounts): string {
  const rows = counts.queues.map((queue) => [queue.queue, queue.role, queue.slots]);
  return renderTable(['queue', 'role', 'slots'], [...rows, ['total', '', counts.total]]);
}
