import type { SlotRules } from '../attempts/slot-state.js';
import { canonicalText } from '../core/canonical-json.js';
import type { Digest } from '../core/digest.js';
import { rewardRange } from '../grading/reference.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { idOf } from '../slots/blocks.js';
import { type SlotBlock, slotBlocks, type TaskIds } from '../slots/plan.js';
import { type SlotKey, samplingSeed, seedOf, slotId } from '../slots/slot.js';

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

/** A block of the plan with what its slots share. */
interface NumberedBlock {
  readonly block: SlotBlock;
  /** Number of its first slot. */
  readonly first: number;
  readonly positions: ReadonlyMap<string, number>;
  /** How the tuple of a slot and what its seed is hashed from begin, as canonical JSON. */
  readonly tuple: string;
  readonly seed: string;
  readonly rules: Omit<SlotRules, 'slot' | 'samplingSeed'>;
}

/**
 * Numbers the planned slots in the order of `expandSlots`, by arithmetic: a key to its number and back, in memory
 * that grows with the tasks and not with the slots.
 */
export class PlanIndex {
  readonly count: number;
  readonly #bits: number;
  readonly #blocks: NumberedBlock[] = [];
  readonly #byName = new Map<string, NumberedBlock>();
  /** The block that was asked for last: slots of one block mostly follow one another. */
  #last: NumberedBlock | undefined;

  constructor(protocol: Protocol, taskIds: TaskIds) {
    const positions = new Map<readonly string[], ReadonlyMap<string, number>>();
    this.#bits = protocol.sampling.bits;
    let first = 0;
    for (const block of slotBlocks(protocol, taskIds)) {
      const { tasks, queue, arm, trainingSeed, evaluationSeed } = block;
      const known = positions.get(tasks) ?? new Map(tasks.map((task, i) => [task, i]));
      positions.set(tasks, known);
      const {
        slot: _slot,
        samplingSeed: _seed,
        ...rules
      } = slotRules(protocol, { ...block, task: '', rep: 0 });
      const numbered = {
        block,
        first,
        positions: known,
        tuple: beginning([queue, arm, trainingSeed, evaluationSeed]),
        seed: beginning([protocol.sampling.namespace, queue, evaluationSeed]),
        rules,
      };
      this.#blocks.push(numbered);
      this.#byName.set(blockName(block), numbered);
      first += tasks.length * block.reps;
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
    const numbered = this.#blockOf(key);
    if (numbered === undefined) return null;
    const { block, first, positions } = numbered;
    const position = positions.get(key.task);
    if (position === undefined || !Number.isInteger(key.rep) || key.rep < 0 || key.rep >= block.reps)
      return null;
    return first + position * block.reps + key.rep;
  }

  /** {@link slotRules} of a planned slot; null for a key that is not planned. */
  rulesOf(key: SlotKey): SlotRules | null {
    const numbered = this.#blockOf(key);
    if (numbered === undefined) return null;
    const { replacements, regrades, rules, reward } = numbered.rules;
    const end = `${canonicalText(key.task)},${key.rep}]`;
    const slot = idOf(numbered.tuple + end);
    return {
      slot,
      samplingSeed: seedOf(numbered.seed + end, this.#bits),
      replacements,
      regrades,
      rules,
      reward,
    };
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

  #blockOf(key: SlotKey): NumberedBlock | undefined {
    if (this.#last !== undefined && isOf(this.#last.block, key)) return this.#last;
    this.#last = this.#byName.get(blockName(key));
    return this.#last;
  }
}

/** Canonical JSON of a list that goes on. */
function beginning(items: readonly (string | number | null)[]): string {
  return `${canonicalText(items).slice(0, -1)},`;
}

type BlockKey = Pick<SlotBlock, 'queue' | 'arm' | 'trainingSeed' | 'evaluationSeed'>;

function isOf(block: SlotBlock, key: BlockKey): boolean {
  return (
    block.queue === key.queue &&
    block.arm === key.arm &&
    block.trainingSeed === key.trainingSeed &&
    block.evaluationSeed === key.evaluationSeed
  );
}

function blockName(part: BlockKey): string {
  return JSON.stringify([part.queue, part.arm, part.trainingSeed, part.evaluationSeed]);
}
