import { canonicalText } from '../core/canonical-json.js';
import { sha256Hex } from '../core/digest.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { TaskIds } from '../protocol/tasks.js';
import type { Slot } from './slot.js';

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

/** The slots of a block: tasks in file order, reps ascending. */
export function* expandBlock(block: SlotBlock): Generator<Slot> {
  for (const part of blockTuples(block)) yield slotOf(block, part);
}

/** One slot of a block. */
export interface BlockPart {
  /** Its place among the slots of the block, from 0. */
  readonly offset: number;
  readonly task: string;
  readonly rep: number;
  /** The canonical text of its tuple. */
  readonly tuple: string;
}

export function slotOf(block: SlotBlock, { task, rep, tuple }: BlockPart): Slot {
  const { queue, arm, trainingSeed, evaluationSeed } = block;
  return { queue, arm, trainingSeed, evaluationSeed, task, rep, id: idOf(tuple) };
}

/**
 * The parts of a block; what they share is rendered once.
 *
 * @param without offsets to pass over
 */
export function* blockTuples(
  block: SlotBlock,
  without: (offset: number) => boolean = () => false,
): Generator<BlockPart> {
  const { queue, arm, trainingSeed, evaluationSeed, reps } = block;
  const shared = canonicalText([queue, arm, trainingSeed, evaluationSeed]).slice(0, -1);
  let offset = 0;
  for (const task of block.tasks) {
    let start: string | null = null;
    for (let rep = 0; rep < reps; rep++, offset++) {
      if (without(offset)) continue;
      start ??= `${shared},${canonicalText(task)},`;
      yield { offset, task, rep, tuple: `${start}${rep}]` };
    }
  }
}

/** The slot id of a tuple that is already canonical text; `slotId` in `slot.ts` is the rule. */
export function idOf(tuple: string): string {
  return sha256Hex(tuple).slice(0, 32);
}
