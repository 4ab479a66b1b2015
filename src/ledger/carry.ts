import type { SlotState } from '../attempts/slot-state.js';
import { BoundbookError } from '../core/errors.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { expandSlots } from '../slots/plan.js';
import { ConditionComparison, type PlannedTasks } from './carry-conditions.js';
import type { DraftOf, Entry } from './entries/entry.js';
import type { LedgerFold } from './fold.js';

/** Where each slot of a ledger was closed: filled entry by entry. */
export class Closings {
  readonly #positions = new Map<string, number>();

  take(entry: Entry): void {
    if (entry.type === 'slot.settled' || entry.type === 'slot.unresolved' || entry.type === 'slot.carried')
      this.#positions.set(entry.slot, entry.seq);
  }

  /** Position of the last entry that closed a slot. */
  of(slot: string): number | undefined {
    return this.#positions.get(slot);
  }
}

/** A superseded plan and the state of its ledger. */
export interface Predecessor extends PlannedTasks {
  readonly fold: LedgerFold;
  readonly closings: Closings;
  /** The ledgers that it carries from itself, and so on. */
  readonly earlier: readonly LedgerFold[];
}

/** What becomes of the slots of a superseded plan's ledger under the next revision (P22). */
export interface CarryPlan {
  /** Ids of slots closed there and planned here under the same conditions, in the order of the expansion. */
  readonly carried: readonly string[];
  /** Closed there and planned here under other conditions: executed again. */
  readonly again: number;
  /** How many of {@link again} differ in what. */
  readonly because: ReadonlyMap<string, number>;
  /** Closed there and not planned here. */
  readonly dropped: number;
  /** Ids of slots started there, not closed there, and planned here. */
  readonly unfinished: readonly string[];
  /** Ids of slots started in an earlier ledger, given up by the plan between, and planned here again. */
  readonly revived: readonly string[];
}

/**
 * Decides for every slot of the next revision what the superseded plan's ledger means for it. Pure: the runner carries by
 * it, the audit judges by it.
 */
export function planCarry(before: Predecessor, after: PlannedTasks): CarryPlan {
  const { fold } = before;
  const { protocol } = after.manifest;
  const comparison = new ConditionComparison(before, after);
  const carried: string[] = [];
  const because = new Map<string, number>();
  const unfinished: string[] = [];
  const revived: string[] = [];
  let again = 0;
  for (const { id, ...key } of expandSlots(protocol, after.tasks.ids)) {
    if (!fold.slots.isTouched(id)) {
      if (before.earlier.some(({ slots }) => slots.isTouched(id))) revived.push(id);
      continue;
    }
    const state = fold.slots.state(id);
    if (!isClosed(fold, id, state)) {
      unfinished.push(id);
      continue;
    }
    const differences = [...comparison.differences(key)];
    if (requiresVerdicts(protocol) && lacksVerdict(fold, id, state)) differences.push('adjudication');
    for (const name of differences) because.set(name, (because.get(name) ?? 0) + 1);
    if (differences.length === 0) carried.push(id);
    else again++;
  }
  const dropped = countClosed(fold) - carried.length - again;
  return { carried, again, because, dropped, unfinished, revived };
}

/** Why a plan cannot go on from a superseded one, since slots would be drawn twice; null when it can. */
export function carryObstacle({
  unfinished,
  revived,
}: CarryPlan): { readonly message: string; readonly hint: string; readonly slots: readonly string[] } | null {
  if (unfinished.length > 0) {
    return {
      message: `${unfinished.length} slots are under way: started, and not closed`,
      hint: '`boundbook run --limit 0` recovers and finishes what was started and takes up nothing new. Where the protocol requires adjudication, an undetermined slot is closed by a verdict.',
      slots: unfinished.slice(0, 20),
    };
  }
  if (revived.length === 0) return null;
  return {
    message: `${revived.length} slots were run under an earlier revision and given up by a later one`,
    hint: 'What was given up is not drawn again. A queue of another name is another sample, with slots of its own.',
    slots: revived.slice(0, 20),
  };
}

/**
 * The entry that carries a closed slot, word for word what the superseded plan's ledger says of it.
 *
 * @throws {BoundbookError} INTERNAL for a slot that is not closed there.
 */
export function carriedDraft({ fold, closings }: Predecessor, slot: string): DraftOf<'slot.carried'> {
  const state = fold.slots.state(slot);
  const key = fold.slots.key(slot);
  const closedBy = closings.of(slot);
  if (key === null || closedBy === undefined || (state.phase !== 'settled' && state.phase !== 'unresolved'))
    throw new BoundbookError('INTERNAL', `slot ${slot} is not closed and cannot be carried`);
  const { queue, arm, trainingSeed, evaluationSeed, task, rep } = key;
  return {
    type: 'slot.carried',
    slot,
    key: { queue, arm, training_seed: trainingSeed, evaluation_seed: evaluationSeed, task, rep },
    closed_by: closedBy,
    attempts: state.attempts.length,
    outcome:
      state.phase === 'settled'
        ? { kind: 'settled', value: state.value, basis: { ...state.basis } }
        : { kind: 'unresolved', reason: state.reason },
  };
}

/** Whether nothing can become of a slot any more: settled, or unresolved with the verdict that the protocol requires. */
function isClosed(fold: LedgerFold, id: string, state: SlotState): boolean {
  if (state.phase === 'settled') return true;
  const isDue = requiresVerdicts(fold.context.protocol) && lacksVerdict(fold, id, state);
  return state.phase === 'unresolved' && !isDue;
}

function countClosed(fold: LedgerFold): number {
  const { settled, unresolved } = fold.slots.total();
  if (!requiresVerdicts(fold.context.protocol)) return settled + unresolved;
  let due = 0;
  for (const { slot, state } of fold.slots.unresolved()) if (lacksVerdict(fold, slot, state)) due++;
  return settled + unresolved - due;
}

function lacksVerdict(fold: LedgerFold, id: string, state: SlotState): boolean {
  if (state.phase !== 'unresolved' || state.reason !== 'undetermined') return false;
  // Into a plan that requires verdicts, nothing is carried without one.
  const isOwn = fold.slots.carriedSlot(id) === null;
  return isOwn ? state.by === 'rule' : !requiresVerdicts(fold.context.protocol);
}

function requiresVerdicts({ attempts }: Protocol): boolean {
  return attempts.adjudication === 'required';
}
