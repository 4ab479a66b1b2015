import type { Protocol } from '../protocol/schema/protocol.js';
import { orderedSlots, type TaskIds } from '../slots/plan.js';
import { matchingSlots, passes, type SelectField, type Selector } from '../slots/selector.js';
import { type Slot, shardOf } from '../slots/slot.js';

/** The part of the plan that a session works on. */
export interface RunSelection {
  readonly shard: { readonly index: number; readonly count: number } | null;
  readonly only: Selector;
}

/**
 * Selected slots in plan order (P19).
 *
 * @param without numbers of slots in the plan that are passed over
 */
export function* selectedSlots(
  selection: RunSelection,
  protocol: Protocol,
  taskIds: TaskIds,
  without: (number: number) => boolean = () => false,
): Generator<Slot> {
  const { shard } = selection;
  const only: Partial<Record<SelectField, string>> = {};
  for (const [field, values] of selection.only) {
    const [value] = values;
    if (values.size === 1 && value !== undefined) only[field] = value;
  }
  for (const slot of orderedSlots(protocol, taskIds, {
    ...(shard === null ? {} : { shard }),
    only,
    without,
  })) {
    if (selects(selection, slot)) yield slot;
  }
}

/** Visits every selected slot in no particular order, without sorting; for counting. */
export function* anyOrderSlots(
  selection: RunSelection,
  protocol: Protocol,
  taskIds: TaskIds,
): Generator<Slot> {
  for (const slot of matchingSlots(selection.only, protocol, taskIds)) {
    if (isInShard(selection, slot)) yield slot;
  }
}

export function isWholePlan(selection: RunSelection): boolean {
  return selection.shard === null && selection.only.size === 0;
}

/** The selection as a ledger entry shows it. */
export function describeSelection(
  selection: RunSelection,
  limit: number | null,
  recheck: string | null,
): Readonly<Record<string, string | number>> {
  const { shard, only } = selection;
  return {
    ...(shard === null ? {} : { shard: `${shard.index}/${shard.count}` }),
    ...Object.fromEntries([...only].map(([field, values]) => [field, [...values].join(',').slice(0, 1000)])),
    ...(limit === null ? {} : { limit }),
    ...(recheck === null ? {} : { recheck_stopped: recheck }),
  };
}

function selects(selection: RunSelection, slot: Slot): boolean {
  return isInShard(selection, slot) && passes(selection.only, slot);
}

function isInShard({ shard }: RunSelection, slot: Slot): boolean {
  return shard === null || shardOf(slot.id, shard.count) === shard.index;
}
