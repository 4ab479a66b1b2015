import { createHash } from 'node:crypto';
import { canonicalText } from '../core/canonical-json.js';
import type { Digest } from '../core/digest.js';
import type { Protocol } from '../protocol/schema.js';
import { orderKey, type Slot, shardOf, slotId, slotTuple } from './slot.js';

/** Task ids of every task set, in file order. */
export type TaskIds = ReadonlyMap<string, readonly string[]>;

/** One block of slots that differ only in task and rep. */
export interface SlotBlock {
  readonly queue: string;
  readonly arm: string;
  readonly trainingSeed: number | null;
  readonly evaluationSeed: number;
  readonly tasks: readonly string[];
  readonly reps: number;
}

/** The training seeds of an arm's model; `[null]` for a model without. */
export function trainingSeeds(protocol: Protocol, arm: string): readonly (number | null)[] {
  const model = protocol.arms[arm]?.model;
  return (model === undefined ? undefined : protocol.models[model]?.training_seeds) ?? [null];
}

/** The blocks of the plan: queues and arms in the order of their names' UTF-16 code units, seeds as declared. */
export function* slotBlocks(protocol: Protocol, taskIds: TaskIds): Generator<SlotBlock> {
  for (const name of Object.keys(protocol.queues).sort()) {
    const queue = protocol.queues[name];
    if (queue === undefined) continue;
    const tasks = taskIds.get(queue.tasks) ?? [];
    for (const arm of [...queue.arms].sort()) {
      for (const trainingSeed of trainingSeeds(protocol, arm)) {
        for (const evaluationSeed of queue.evaluation_seeds ?? [0]) {
          yield { queue: name, arm, trainingSeed, evaluationSeed, tasks, reps: queue.reps };
        }
      }
    }
  }
}

/** Every planned slot, block by block, tasks in file order, reps ascending. Memory does not grow with the plan. */
export function* expandSlots(protocol: Protocol, taskIds: TaskIds): Generator<Slot> {
  for (const block of slotBlocks(protocol, taskIds)) yield* expandBlock(block);
}

export function* expandBlock(block: SlotBlock): Generator<Slot> {
  const { queue, arm, trainingSeed, evaluationSeed } = block;
  for (const task of block.tasks) {
    for (let rep = 0; rep < block.reps; rep++) {
      const key = { queue, arm, trainingSeed, evaluationSeed, task, rep };
      yield { ...key, id: slotId(key) };
    }
  }
}

/** One line of the slots file: canonical `[id, queue, arm, training_seed, evaluation_seed, task, rep]`. */
export function slotLine(slot: Slot): string {
  return `${canonicalText([slot.id, ...slotTuple(slot)])}\n`;
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
  let pending = '';
  for (const slot of expandSlots(protocol, taskIds)) {
    pending += slotLine(slot);
    count++;
    if (pending.length > 1 << 16) {
      hash.update(pending);
      pending = '';
    }
  }
  hash.update(pending);
  return { count, digest: `sha256:${hash.digest('hex')}` };
}

/** Which part of the plan a session works on. */
export interface Selection {
  readonly shard?: { readonly index: number; readonly count: number };
  readonly only?: Partial<
    Record<'queue' | 'arm' | 'training_seed' | 'evaluation_seed' | 'task' | 'slot', string>
  >;
}

/**
 * The slots in plan order (P19): groups as `order.group_by` declares, inside a group by {@link orderKey}. One group
 * is held in memory at a time.
 */
export function* orderedSlots(
  protocol: Protocol,
  taskIds: TaskIds,
  selection: Selection = {},
): Generator<Slot> {
  const groups = new Map<string, SlotBlock[]>();
  for (const block of slotBlocks(protocol, taskIds)) {
    const parts = {
      queue: block.queue,
      arm: block.arm,
      training_seed: block.trainingSeed,
      evaluation_seed: block.evaluationSeed,
    };
    const name = canonicalText(protocol.order.group_by.map((field) => parts[field]));
    groups.set(name, [...(groups.get(name) ?? []), block]);
  }
  for (const blocks of groups.values()) {
    const group: { readonly key: string; readonly slot: Slot }[] = [];
    for (const block of blocks) {
      for (const slot of expandBlock(block)) {
        if (isSelected(slot, selection))
          group.push({ key: orderKey(protocol.sampling.namespace, slot.id), slot });
      }
    }
    group.sort((a, b) => (a.key < b.key ? -1 : 1));
    for (const { slot } of group) yield slot;
  }
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
  return Object.entries(only).every(([field, value]) => values[field as keyof typeof values] === value);
}
