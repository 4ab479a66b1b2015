import type { Protocol } from '../protocol/schema/protocol.js';
import type { TaskIds } from '../protocol/tasks.js';
import { expandSlots, orderedSlots, slotsFile } from '../slots/plan.js';
import { type Slot, samplingSeed, shardOf } from '../slots/slot.js';

export interface PreviewedSlot extends Slot {
  /** 0-based position in plan order. */
  readonly position: number;
  readonly samplingSeed: number;
  /** 0-based; null without shards. */
  readonly shard: number | null;
}

/** The first slots in plan order, as a run will take them. */
export function firstSlots(
  protocol: Protocol,
  taskIds: TaskIds,
  count: number,
  shards: number | null,
): readonly PreviewedSlot[] {
  const first: PreviewedSlot[] = [];
  if (count === 0) return first;
  for (const slot of orderedSlots(protocol, taskIds)) {
    first.push({
      ...slot,
      position: first.length,
      samplingSeed: samplingSeed(protocol.sampling, slot),
      shard: shards === null ? null : shardOf(slot.id, shards),
    });
    if (first.length === count) break;
  }
  return first;
}

/** How many slots each of n shards has. */
export function shardSizes(protocol: Protocol, taskIds: TaskIds, shards: number): readonly number[] {
  const sizes = new Array<number>(shards).fill(0);
  for (const slot of expandSlots(protocol, taskIds)) {
    const shard = shardOf(slot.id, shards);
    sizes[shard] = (sizes[shard] ?? 0) + 1;
  }
  return sizes;
}

/** The slots file in pieces. */
export function* slotsText(protocol: Protocol, taskIds: TaskIds): Generator<string> {
  for (const { text } of slotsFile(protocol, taskIds)) yield text;
}
