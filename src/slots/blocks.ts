import { canonicalText } from '../core/canonical-json.js';
import { sha256Hex } from '../core/digest.js';
import type { Protocol } from '../protocol/schema.js';
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
  const { queue, arm, trainingSeed, evaluationSeed } = block;
  for (const { task, rep, tuple } of blockTuples(block)) {
    yield { queue, arm, trainingSeed, evaluationSeed, task, rep, id: idOf(tuple) };
  }
}

/** The canonical text of each slot's tuple; what a block's slots share is rendered once. */
export function* blockTuples(
  block: SlotBlock,
): Generator<{ readonly task: string; readonly rep: number; readonly tuple: string }> {
  const { queue, arm, trainingSeed, evaluationSeed, reps } = block;
  const shared = canonicalText([queue, arm, trainingSeed, evaluationSeed]).slice(0, -1);
  for (const task of block.tasks) {
    const start = `${shared},${canonicalText(task)},`;
    for (let rep = 0; rep < reps; rep++) yield { task, rep, tuple: `${start}${rep}]` };
  }
}

/** The slot id of a tuple that is already canonical text; `slotId` in `slot.ts` is the rule. */
export function idOf(tuple: string): string {
  return sha256Hex(tuple).slice(0, 32);
}
