import type { SlotRules } from '../attempts/machine.js';
import type { Digest } from '../core/digest.js';
import { rewardRange } from '../grading/reference.js';
import type { Protocol } from '../protocol/schema.js';
import { type SlotBlock, slotBlocks, type TaskIds } from '../slots/plan.js';
import { type SlotKey, samplingSeed, slotId } from '../slots/slot.js';

/** What a ledger is judged against: the manifest's identity, its protocol, its tasks and its plan. */
export interface PlanContext {
  readonly manifest: Digest;
  readonly protocol: Protocol;
  readonly taskIds: TaskIds;
  readonly plan: { readonly count: number; readonly digest: Digest };
}

/** What the plan fixes about a slot (P12, P13, P18): its id, its seed, the limits and the reward range of its grader. */
export function slotRules(protocol: Protocol, key: SlotKey): SlotRules {
  const { replacements, regrades, rules } = protocol.attempts;
  const condition = protocol.conditions[protocol.arms[key.arm]?.condition ?? ''];
  return {
    slot: slotId(key),
    samplingSeed: samplingSeed(protocol.sampling, key),
    replacements,
    regrades,
    rules,
    // A slot of an undeclared arm is no slot of the plan; whoever looks it up is told so before any reward counts.
    reward: condition === undefined ? { min: 0, max: 1 } : rewardRange(condition.grader),
  };
}

/**
 * Numbers the planned slots in the order of `expandSlots`, by arithmetic: a key to its number and back, in memory
 * that grows with the tasks and not with the slots.
 */
export class PlanIndex {
  readonly count: number;
  readonly #blocks: { readonly block: SlotBlock; readonly first: number }[] = [];
  readonly #byName = new Map<string, { readonly block: SlotBlock; readonly first: number }>();
  readonly #positions = new Map<readonly string[], ReadonlyMap<string, number>>();

  constructor(protocol: Protocol, taskIds: TaskIds) {
    let first = 0;
    for (const block of slotBlocks(protocol, taskIds)) {
      const numbered = { block, first };
      this.#blocks.push(numbered);
      this.#byName.set(blockName(block), numbered);
      if (!this.#positions.has(block.tasks)) {
        this.#positions.set(block.tasks, new Map(block.tasks.map((task, i) => [task, i])));
      }
      first += block.tasks.length * block.reps;
    }
    this.count = first;
  }

  /** Planned slots of each queue. */
  plannedByQueue(): ReadonlyMap<string, number> {
    const planned = new Map<string, number>();
    for (const { block } of this.#blocks) {
      planned.set(block.queue, (planned.get(block.queue) ?? 0) + block.tasks.length * block.reps);
    }
    return planned;
  }

  /** The slot's number, or null when it is not planned. */
  indexOf(key: SlotKey): number | null {
    const numbered = this.#byName.get(blockName(key));
    if (numbered === undefined) return null;
    const { block, first } = numbered;
    const position = this.#positions.get(block.tasks)?.get(key.task);
    if (position === undefined || !Number.isInteger(key.rep) || key.rep < 0 || key.rep >= block.reps)
      return null;
    return first + position * block.reps + key.rep;
  }

  /** The key of a number that {@link indexOf} gave; null beyond the plan. */
  keyAt(index: number): SlotKey | null {
    let low = 0;
    let high = this.#blocks.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((this.#blocks[middle]?.first ?? Number.POSITIVE_INFINITY) <= index) low = middle;
      else high = middle;
    }
    const numbered = this.#blocks[low];
    if (numbered === undefined) return null;
    const { queue, arm, trainingSeed, evaluationSeed, tasks, reps } = numbered.block;
    const offset = index - numbered.first;
    const task = tasks[Math.floor(offset / reps)];
    return task === undefined ? null : { queue, arm, trainingSeed, evaluationSeed, task, rep: offset % reps };
  }
}

function blockName(part: Pick<SlotBlock, 'queue' | 'arm' | 'trainingSeed' | 'evaluationSeed'>): string {
  return JSON.stringify([part.queue, part.arm, part.trainingSeed, part.evaluationSeed]);
}
