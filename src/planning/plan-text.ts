import type { Protocol } from '../protocol/schema/protocol.js';
import type { PlanDigest } from '../slots/plan.js';
import type { PlanCounts } from './counts.js';
import { FORMULA, type QueuePrecision } from './precision.js';
import type { PreviewedSlot } from './preview.js';
import { queuesTable } from './queues-table.js';
import { display, renderTable } from './table.js';
import type { WeightLoads } from './weight-loads.js';

export interface PlanView {
  readonly counts: PlanCounts;
  readonly plan: PlanDigest;
  readonly precision: readonly QueuePrecision[];
  readonly first: readonly PreviewedSlot[];
  readonly order: Protocol['order'];
  /** Slots of each shard; null without shards. */
  readonly shards: readonly number[] | null;
  /** Slots of each shard for some numbers of shards; empty when shards were asked for, or the plan is large. */
  readonly splits: readonly (readonly number[])[];
  /** How often weights are loaded; null where no service is started, or the plan is large. */
  readonly loads: WeightLoads | null;
  /** The slots file that was written; null when none was. */
  readonly slotsFile: string | null;
}

/** What `plan` prints. */
export function planText(view: PlanView, path: string): string {
  const parts = [countsText(view.counts), `plan digest ${view.plan.digest}`, errorsText(view.precision)];
  if (view.first.length > 0) parts.push(firstText(view));
  parts.push(orderText(view.order) + loadsText(view.loads));
  parts.push(view.shards === null ? splitsText(view.splits) : shardsText(view.shards));
  if (view.slotsFile !== null) {
    parts.push(
      `${view.slotsFile} holds ${display(view.plan.count)} slots; sha256sum prints the plan digest.`,
    );
  }
  parts.push(`Next: boundbook freeze ${path}`);
  return parts.join('\n\n');
}

function countsText(counts: PlanCounts): string {
  const rows = counts.rows.map((row) => [
    row.queue,
    row.arm,
    row.trainingSeed === null ? '-' : String(row.trainingSeed),
    row.tasks,
    row.reps,
    row.evaluations,
    row.slots,
  ]);
  const head = ['queue', 'arm', 'training seed', 'tasks', 'reps', 'evaluations', 'slots'];
  return `${renderTable(head, rows)}\n\n${queuesTable(counts)}`;
}

function errorsText(precision: readonly QueuePrecision[]): string {
  const accuracies = precision[0]?.errors.map((error) => String(error.accuracy)) ?? [];
  const table = renderTable(
    ['queue', 'N', 'k', ...accuracies.map((accuracy) => `p=${accuracy}`)],
    precision.map((queue) => [
      queue.queue,
      queue.tasks,
      queue.reps,
      ...queue.errors.map((error) => (100 * error.standardError).toFixed(2)),
    ]),
  );
  return `Standard error of one score in percentage points, ${FORMULA}:\n${table}`;
}

function firstText(view: PlanView): string {
  const sharded = view.shards !== null;
  const table = renderTable(
    ['#', 'slot', 'queue', 'arm', 'task', 'rep', 'sampling seed', ...(sharded ? ['shard'] : [])],
    view.first.map((slot) => [
      String(slot.position),
      slot.id,
      slot.queue,
      slot.trainingSeed === null ? slot.arm : `${slot.arm}@${slot.trainingSeed}`,
      slot.task,
      String(slot.rep),
      String(slot.samplingSeed),
      ...(sharded ? [String(slot.shard ?? '')] : []),
    ]),
  );
  return `The first slots in plan order:\n${table}`;
}

function loadsText(loads: WeightLoads | null): string {
  if (loads === null) return '';
  const { sets, loads: times, held } = loads;
  return `\nWeights: ${display(sets)} sets, loaded ${display(times)} times in this order with ${held} up at once`;
}

function orderText({ group_by }: Protocol['order']): string {
  const inside = 'ascending by the SHA-256 of sampling namespace and slot id (within: hash)';
  return group_by.length === 0
    ? `Order: one group of all slots,\n  ${inside}`
    : `Order: a group for each ${group_by.join(', ')}, one group after the other;\n  inside a group ${inside}`;
}

/** How a plan splits over hosts, without being asked. */
function splitsText(splits: readonly (readonly number[])[]): string {
  const lines = splits.map((sizes) => `\n  ${sizes.length} shards: ${sizes.map(display).join(', ')} slots`);
  return `Shards (run --shard i/n): the slot id decides; --shards <n> shows how n shards split.${lines.join('')}`;
}

function shardsText(shards: readonly number[]): string {
  return renderTable(
    ['shard', 'slots'],
    shards.map((slots, shard) => [`${shard}/${shards.length}`, slots]),
  );
}
