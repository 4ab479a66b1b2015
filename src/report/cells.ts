import { add, ZERO } from '../analysis/rational.js';
import { type TaskTally, tally } from '../analysis/score.js';
import { BoundbookError } from '../core/errors.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { slotBlocks, type TaskIds } from '../slots/plan.js';
import type { SlotKey } from '../slots/slot.js';
import type { SlotOutcome } from './report-input.js';
import type { Counts } from './value.js';

/** What is known of the rollouts of one task under one set of weights. */
interface Cell {
  readonly values: number[];
  readonly reps: number;
  unresolved: number;
}

/** Which cells a figure is computed from. */
export interface CellRange {
  readonly queue: string;
  readonly arm: string;
  readonly trainingSeed: number | null;
  readonly evaluationSeeds: readonly number[];
  readonly tasks: readonly string[];
}

/**
 * The planned cells with their outcomes. The plan decides which cells exist, so that a slot that never ran is in the
 * denominator (law 5) and one outside the plan is refused (P2).
 */
export class Cells {
  readonly #cells = new Map<string, Map<string, Cell>>();

  /** @throws {BoundbookError} SLOT_NOT_PLANNED, or INTERNAL when a slot has more than one outcome. */
  constructor(protocol: Protocol, taskIds: TaskIds, outcomes: Iterable<SlotOutcome>) {
    for (const block of slotBlocks(protocol, taskIds)) {
      const row = new Map<string, Cell>();
      for (const task of block.tasks) row.set(task, { values: [], reps: block.reps, unresolved: 0 });
      this.#cells.set(blockKey(block), row);
    }
    for (const outcome of outcomes) this.#take(outcome);
  }

  /** One tally for each task of the range, evaluation seeds merged (every one has the same number of reps). */
  tallies(range: CellRange): readonly TaskTally[] {
    return range.tasks.map((task) =>
      range.evaluationSeeds
        .map((seed) => this.#cell(range, seed, task))
        .map((cell) => tally(cell.values, cell.reps))
        .reduce(mergeTallies, EMPTY),
    );
  }

  counts(range: CellRange): Counts {
    let [planned, settled, unresolved] = [0, 0, 0];
    for (const task of range.tasks) {
      for (const seed of range.evaluationSeeds) {
        const cell = this.#cell(range, seed, task);
        planned += cell.reps;
        settled += cell.values.length;
        unresolved += cell.unresolved;
      }
    }
    return { planned, settled, unresolved, pending: planned - settled - unresolved };
  }

  #take(outcome: SlotOutcome): void {
    const { key } = outcome;
    const cell = this.#cells.get(blockKey(key))?.get(key.task);
    if (cell === undefined || key.rep >= cell.reps) {
      throw new BoundbookError('SLOT_NOT_PLANNED', `the ledger speaks of a slot outside the plan`, {
        hint: 'Run `boundbook audit` on this ledger.',
        evidence: { queue: key.queue, arm: key.arm, task: key.task, rep: key.rep },
      });
    }
    if (outcome.state === 'settled') cell.values.push(outcome.value);
    else if (outcome.state === 'unresolved') cell.unresolved++;
    if (cell.values.length + cell.unresolved > cell.reps) {
      throw new BoundbookError('INTERNAL', `more outcomes than reps for task ${key.task}`);
    }
  }

  #cell(range: CellRange, evaluationSeed: number, task: string): Cell {
    const cell = this.#cells.get(blockKey({ ...range, evaluationSeed }))?.get(task);
    if (cell === undefined) throw new BoundbookError('INTERNAL', `no cell for task ${task} in the plan`);
    return cell;
  }
}

const EMPTY: TaskTally = { planned: 0, resolved: 0, sum: ZERO, sumOfSquares: ZERO };

function mergeTallies(a: TaskTally, b: TaskTally): TaskTally {
  return {
    planned: a.planned + b.planned,
    resolved: a.resolved + b.resolved,
    sum: add(a.sum, b.sum),
    sumOfSquares: add(a.sumOfSquares, b.sumOfSquares),
  };
}

function blockKey(key: Pick<SlotKey, 'queue' | 'arm' | 'trainingSeed' | 'evaluationSeed'>): string {
  return JSON.stringify([key.queue, key.arm, key.trainingSeed, key.evaluationSeed]);
}
