import { createHash } from 'node:crypto';
import { canonicalText } from '../core/canonical-json.js';
import type { Digest } from '../core/digest.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { TaskIds } from '../protocol/tasks.js';
import { blockTuples, expandBlock, idOf, slotBlocks } from './blocks.js';
import { type NumberedBlock, sizeOf, sortGroup } from './order.js';
import { type Slot, shardOf, slotTuple } from './slot.js';

export type { TaskIds } from '../protocol/tasks.js';
export { expandBlock, type SlotBlock, slotBlocks, trainingSeeds } from './blocks.js';

/** Every planned slot, block by block, tasks in file order, reps ascending. Memory does not grow with the plan. */
export function* expandSlots(protocol: Protocol, taskIds: TaskIds): Generator<Slot> {
  for (const block of slotBlocks(protocol, taskIds)) yield* expandBlock(block);
}

/** One line of the slots file: canonical `[id, queue, arm, training_seed, evaluation_seed, task, rep]`. */
export function slotLine(slot: Slot): string {
  return `${canonicalText([slot.id, ...slotTuple(slot)])}\n`;
}

/** The slots file in pieces of some 64 KiB: {@link slotLine} of every slot in the order of {@link expandSlots}. */
export function* slotsFile(
  protocol: Protocol,
  taskIds: TaskIds,
): Generator<{ readonly text: string; readonly slots: number }> {
  let text = '';
  let slots = 0;
  for (const block of slotBlocks(protocol, taskIds)) {
    for (const { tuple } of blockTuples(block)) {
      text += `["${idOf(tuple)}",${tuple.slice(1)}\n`;
      slots++;
      if (text.length > 1 << 16) {
        yield { text, slots };
        text = '';
        slots = 0;
      }
    }
  }
  yield { text, slots };
}

export interface PlanDigest {
  readonly count: number;
  /** SHA-256 of the slots file, see {@link slotLine}; `sha256sum` on that file prints the same. */
  readonly digest: Digest;
}

/** Counts and digests all planned slots in the order of {@link expandSlots}. */
export function planDigest(protocol: Protocol, taskIds: TaskIds): PlanDigest {
  const hash = createHash('sha256');
  let count = 0;
  for (const { text, slots } of slotsFile(protocol, taskIds)) {
    hash.update(text);
    count += slots;
  }
  return { count, digest: `sha256:${hash.digest('hex')}` };
}

/** Which part of the plan a session works on. */
export interface Selection {
  readonly shard?: { readonly index: number; readonly count: number };
  readonly only?: Partial<
    Record<'queue' | 'arm' | 'training_seed' | 'evaluation_seed' | 'task' | 'slot', string>
  >;
  /** Slots to pass over, by their number in the order of {@link expandSlots}: cheaper than to look at each. */
  readonly without?: (number: number) => boolean;
}

/**
 * The slots in plan order (P19): groups as `order.group_by` declares, in the order in which the expansion meets
 * them, inside a group by `orderKey`. One group at a time is sorted, at eight bytes a slot.
 */
export function* orderedSlots(
  protocol: Protocol,
  taskIds: TaskIds,
  selection: Selection = {},
): Generator<Slot> {
  for (const blocks of groupsOf(protocol, taskIds, selection)) {
    const { namespace } = protocol.sampling;
    yield* sortGroup(namespace, blocks, (slot) => isSelected(slot, selection), selection.without);
  }
}

/** The blocks that can hold selected slots, by group. */
function groupsOf(
  protocol: Protocol,
  taskIds: TaskIds,
  selection: Selection,
): Iterable<readonly NumberedBlock[]> {
  const groups = new Map<string, NumberedBlock[]>();
  let next = 0;
  for (const block of slotBlocks(protocol, taskIds)) {
    const first = next;
    next += sizeOf(block);
    const parts = {
      queue: block.queue,
      arm: block.arm,
      training_seed: block.trainingSeed,
      evaluation_seed: block.evaluationSeed,
    };
    const { only = {} } = selection;
    const excluded = Object.entries(parts).some(([field, value]) => {
      const wanted = only[field as keyof typeof parts];
      return wanted !== undefined && wanted !== String(value);
    });
    if (excluded) continue;
    const name = canonicalText(protocol.order.group_by.map((field) => parts[field]));
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [{ block, first }]);
    else group.push({ block, first });
  }
  return groups.values();
}

export function isSelected(slot: Slot, selection: Selection): boolean {
  const { shard, only } = selection;
  if (shard !== undefined && shardOf(slot.id, shard.count) !== shard.index) return false;
  if (only === undefined) return true;
  const values = {
    queue: slot.queue,
    arm: slot.arm,
    training_seed: String(slot.trainingSeed),
    evaluation_seed: String(slot.evaluationSeed),
    task: slot.task,
    slot: slot.id,
  };
  return Object.entries(only).every(
    ([field, value]) => value === undefined || values[field as keyof typeof values] === value,
  );
}
