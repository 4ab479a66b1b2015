import { step } from '../attempts/machine.js';
import type { SlotEvent } from '../attempts/slot-event.js';
import {
  adjudicable,
  attemptId,
  awaitsVerdict,
  PLANNED,
  type SlotRules,
  type SlotState,
} from '../attempts/slot-state.js';
import type { Violation } from '../attempts/violation.js';
import type { SlotKey } from '../slots/slot.js';
import { CARRIED_FORM, SETTLED_FORM } from './closed-records.js';
import { addParts, type EffortParts, NO_PARTS, splitEffort, stageEffort } from './costs.js';
import type { Entry, EntryOf } from './entries/entry.js';
import { startEvent, toSlotEvent } from './entries/slot-event.js';
import { type PlanContext, PlanIndex, slotRules } from './plan-index.js';
import {
  type CarriedSlot,
  carriedState,
  type LiveSlot,
  type LiveSnapshot,
  SettledSlot,
} from './slot-records.js';
import { SlotTable } from './slot-table.js';

export interface StateCounts {
  readonly planned: number;
  /** Nothing was started yet. */
  readonly pending: number;
  /** Started and not closed. */
  readonly open: number;
  readonly settled: number;
  readonly unresolved: number;
}

export interface QueueCounts extends StateCounts {
  readonly queue: string;
  readonly role: 'confirmatory' | 'exploratory';
}

/** A slot that an attempt was started for. */
export interface TouchedSlot {
  readonly slot: string;
  readonly key: SlotKey;
  readonly state: SlotState;
}

export interface OpenSlot extends TouchedSlot {
  readonly rules: SlotRules;
  /** The session that runs the present attempt: the one that started it, or the one that recovered it. */
  readonly session: string | null;
  /** The session that last went on with the grading of the present attempt; null when none did. */
  readonly takenOver: string | null;
}

/** A slot's outcome, without its history. */
export type SlotOutcome = { readonly key: SlotKey } & (
  | { readonly state: 'settled'; readonly value: number }
  | { readonly state: 'unresolved' | 'pending' }
);

/** Slots that were closed in the superseded plan's ledger, and the attempts that were started for them there. */
export interface CarriedCounts {
  readonly settled: number;
  readonly unresolved: number;
  readonly attempts: number;
}

type Bucket = 'open' | 'settled' | 'unresolved';

/** What of a {@link SlotBook} does not follow from the plan and its slots, one member for each of its fields. */
export interface SlotBookSnapshot {
  readonly counts: readonly (readonly [string, Readonly<Record<Bucket, number>>])[];
  readonly carriedCounts: CarriedCounts;
  /** Of closed slots, by arm. */
  readonly effort: readonly (readonly [arm: string, parts: EffortParts])[];
}

/** Slots that are settled for good, and those that were closed in the superseded plan's ledger. */
export interface ClosedSlots {
  readonly settled: SlotTable<SettledSlot>;
  readonly carried: SlotTable<CarriedSlot>;
}

const STATES = ['planned', 'pending', 'open', 'settled', 'unresolved'] as const;

/** The touched slots of a ledger: their states, counts and effort. A settled slot takes some 80 bytes. */
export class SlotBook {
  readonly #context: PlanContext;
  readonly #index: PlanIndex;
  readonly #planned: ReadonlyMap<string, number>;
  readonly #live = new Map<string, LiveSlot>();
  readonly #settled = new SlotTable<SettledSlot>(SETTLED_FORM);
  readonly #carried = new SlotTable<CarriedSlot>(CARRIED_FORM);
  readonly #counts = new Map<string, Record<Bucket, number>>();
  readonly #effort = new Map<string, EffortParts>();
  #carriedCounts: CarriedCounts = { settled: 0, unresolved: 0, attempts: 0 };

  constructor(context: PlanContext) {
    this.#context = context;
    this.#index = new PlanIndex(context.protocol, context.taskIds);
    this.#planned = this.#index.plannedByQueue();
    for (const queue of this.#planned.keys()) this.#counts.set(queue, { open: 0, settled: 0, unresolved: 0 });
  }

  /** Takes over a slot that was closed elsewhere, when it is planned and nothing is known of it yet (P22). */
  carry(entry: EntryOf<'slot.carried'>): Violation | null {
    const { slot, closed_by: closedBy, attempts, outcome } = entry;
    if (this.isTouched(slot)) return forbid('law 3', `slot ${slot} is closed or under way already`);
    const live = this.#plan(entry);
    if ('clause' in live) return live;
    const violation = carriedViolation(entry, live.rules);
    if (violation !== null) return violation;
    this.#carried.add(slot, { index: live.index, closedBy, attempts, outcome });
    this.#carriedCounts = {
      ...this.#carriedCounts,
      [outcome.kind]: this.#carriedCounts[outcome.kind] + 1,
      attempts: this.#carriedCounts.attempts + attempts,
    };
    this.#count(live.queue, null, outcome.kind);
    return null;
  }

  /** Starts an attempt, when the slot is planned and the attempt is due. */
  start(entry: EntryOf<'attempt.started'>): Violation | null {
    const touched = this.#live.get(entry.slot);
    const closed = touched === undefined ? this.#refuseClosed(entry.slot, entry) : null;
    if (closed !== null) return closed;
    const live = touched ?? this.#plan(entry);
    if ('clause' in live) return live;
    if (touched !== undefined && this.#index.indexOf(toKey(entry)) !== live.index)
      return forbid('P6', `slot ${entry.slot} has another key`);
    const violation = stepLive(live, startEvent(entry));
    if (violation !== null) return violation;
    live.changed = entry.seq;
    live.session = entry.session;
    live.takenOver = null;
    if (touched === undefined) {
      this.#live.set(entry.slot, live);
      this.#count(live.queue, null, 'open');
    }
    return null;
  }

  /** Takes any other entry that names a slot. */
  proceed(slot: string, entry: Entry, event: SlotEvent): Violation | null {
    const live = this.#live.get(slot);
    if (live === undefined) {
      const closed = this.#refuseClosed(slot, entry);
      return closed ?? forbid('law 2', `no attempt was ever started for slot ${slot}`);
    }
    const before = bucketOf(live.state);
    const violation = stepLive(live, event);
    if (violation !== null) return violation;
    live.changed = entry.seq;
    if (entry.type === 'stage.finished') live.stages.push(stageEffort(entry));
    if (entry.type === 'attempt.recovered') {
      live.session = entry.session;
      if (entry.found === 'candidate') live.takenOver = entry.session;
    }
    const after = bucketOf(live.state);
    if (before !== after) this.#count(live.queue, before, after);
    this.#retire(slot, live);
    return null;
  }

  /** The state of a slot; planned when nothing was started for it. */
  state(slot: string): SlotState {
    const live = this.#live.get(slot);
    if (live !== undefined) return live.state;
    const carried = this.#carried.get(slot);
    if (carried !== undefined) return carriedState(slot, carried);
    return this.#settled.get(slot)?.toState(slot) ?? PLANNED;
  }

  /** What was carried over for a slot; null for a slot that is this ledger's own. */
  carriedSlot(slot: string): CarriedSlot | null {
    return this.#carried.get(slot) ?? null;
  }

  /** Ids of carried slots, in the order in which they were carried. */
  carriedIds(): Generator<string> {
    return this.#carried.idsAfter(0);
  }

  get carried(): CarriedCounts {
    return this.#carriedCounts;
  }

  /** The session that runs a slot's present attempt; null when the slot is not under way. */
  sessionOf(slot: string): string | null {
    return this.#live.get(slot)?.session ?? null;
  }

  /** The session that last went on with the grading of a slot's present attempt; null when none did. */
  takenOver(slot: string): string | null {
    return this.#live.get(slot)?.takenOver ?? null;
  }

  /** The key of a touched slot; null for any other. */
  key(slot: string): SlotKey | null {
    const record = this.#live.get(slot) ?? this.#settled.get(slot) ?? this.#carried.get(slot);
    return record === undefined ? null : this.#index.keyAt(record.index);
  }

  /** The settled value of a slot; null when it is unresolved, open or pending. */
  value(slot: string): number | null {
    const settled = this.#settled.get(slot);
    if (settled !== undefined) return settled.value;
    const carried = this.#carried.get(slot);
    if (carried !== undefined) return carried.outcome.kind === 'settled' ? carried.outcome.value : null;
    const state = this.#live.get(slot)?.state;
    return state?.phase === 'settled' ? state.value : null;
  }

  /** Whether anything is known of a slot, here or carried over: the cheap question of whoever looks for work. */
  isTouched(slot: string): boolean {
    return this.#settled.has(slot) || this.#live.has(slot) || this.#carried.has(slot);
  }

  /** Whether nothing lawful can happen to a slot any more. An unresolved one may still be judged, and is not closed. */
  isClosed(slot: string): boolean {
    return this.#settled.has(slot) || this.#carried.has(slot);
  }

  /** {@link isClosed} as of now by number in the plan, cheap enough for whoever goes through a whole plan. */
  closedByNumber(): (number: number) => boolean {
    const closed = new Uint8Array(this.#index.count);
    for (const table of [this.#settled, this.#carried])
      for (const index of table.indices()) closed[index] = 1;
    return (number) => closed[number] === 1;
  }

  /** Slots of this ledger's own that a report settled, of some arms, in no particular order. */
  *settledByReport(arms: ReadonlySet<string>): Generator<string> {
    for (const slot of this.#settled.idsAfter(0)) {
      const settled = this.#settled.get(slot);
      if (
        settled !== undefined &&
        settled.report !== null &&
        arms.has(this.#index.keyAt(settled.index)?.arm ?? '')
      )
        yield slot;
    }
    for (const [slot, { arm, state }] of this.#live) {
      if (state.phase === 'settled' && state.basis.kind === 'report' && arms.has(arm)) yield slot;
    }
  }

  /** Slots that were started and are not closed: work to finish, or to recover. */
  *open(): Generator<OpenSlot> {
    for (const [slot, { index, state, rules, session, takenOver }] of this.#live) {
      const key = bucketOf(state) === 'open' ? this.#index.keyAt(index) : null;
      if (key !== null) yield { slot, key, state, rules, session, takenOver };
    }
  }

  /** Unresolved slots of this ledger's own; carried ones are closed for good. */
  *unresolved(): Generator<TouchedSlot> {
    for (const [slot, { index, state }] of this.#live) {
      const key = state.phase === 'unresolved' ? this.#index.keyAt(index) : null;
      if (key !== null) yield { slot, key, state };
    }
  }

  /**
   * Failed attempts on which an adjudicator may give a verdict, in the order in which their slots were started.
   *
   * @param revises whether those that an adjudicator judged before are among them
   */
  *judgeable(revises: boolean): Generator<{ readonly slot: string; readonly attempt: string }> {
    for (const [slot, { state }] of this.#live) {
      const failure = revises || awaitsVerdict(state) ? adjudicable(state) : null;
      if (failure !== null) yield { slot, attempt: failure.attempt };
    }
  }

  /** What became of every touched slot; an open one is still pending. */
  *outcomes(): Generator<SlotOutcome> {
    for (const { index, outcome } of this.#carried.values()) {
      const key = this.#index.keyAt(index);
      if (key === null) continue;
      if (outcome.kind === 'settled') yield { key, state: 'settled', value: outcome.value };
      else yield { key, state: 'unresolved' };
    }
    for (const { index, value } of this.#settled.values()) {
      const key = this.#index.keyAt(index);
      if (key !== null) yield { key, state: 'settled', value };
    }
    for (const { index, state } of this.#live.values()) {
      const key = this.#index.keyAt(index);
      if (key === null) continue;
      if (state.phase === 'settled') yield { key, state: 'settled', value: state.value };
      else yield { key, state: state.phase === 'unresolved' ? 'unresolved' : 'pending' };
    }
  }

  /** Counts by queue, in the order of the queues' names. No arm in sight (law 8). */
  counts(): readonly QueueCounts[] {
    return [...this.#planned].map(([queue, planned]) => {
      const { open, settled, unresolved } = this.#counts.get(queue) ?? { open: 0, settled: 0, unresolved: 0 };
      const role = this.#context.protocol.queues[queue]?.role ?? 'exploratory';
      return {
        queue,
        role,
        planned,
        pending: planned - open - settled - unresolved,
        open,
        settled,
        unresolved,
      };
    });
  }

  /** The sum of {@link counts}. */
  total(): StateCounts {
    const sum = { planned: 0, pending: 0, open: 0, settled: 0, unresolved: 0 };
    for (const each of this.counts()) for (const field of STATES) sum[field] += each[field];
    return sum;
  }

  /** P21: effort on stages by what became of it, for every arm of the plan, ascending. */
  effort(): readonly (readonly [arm: string, parts: EffortParts])[] {
    const effort = new Map(this.#effort);
    for (const { arm, state, stages } of this.#live.values()) addTo(effort, arm, splitEffort(state, stages));
    const arms = Object.keys(this.#context.protocol.arms).sort();
    return arms.map((arm) => [arm, effort.get(arm) ?? NO_PARTS]);
  }

  /** The slots that nothing can happen to any more. */
  get closed(): ClosedSlots {
    return { settled: this.#settled, carried: this.#carried };
  }

  /** Slots that can still change and for which an entry at this position or later was taken, in order of their start. */
  *liveSince(seq: number): Generator<readonly [slot: string, live: LiveSnapshot]> {
    for (const [slot, { queue: _queue, arm: _arm, rules: _rules, ...live }] of this.#live) {
      if (live.changed >= seq) yield [slot, live];
    }
  }

  get liveCount(): number {
    return this.#live.size;
  }

  snapshot(): SlotBookSnapshot {
    return {
      counts: [...this.#counts],
      carriedCounts: this.#carriedCounts,
      effort: [...this.#effort],
    };
  }

  /**
   * Puts an empty book into the state of another one. What is closed is put into {@link closed} apart.
   *
   * @param live all slots that can still change, in order of their start
   */
  restore(state: SlotBookSnapshot, live: Iterable<readonly [slot: string, live: LiveSnapshot]>): void {
    for (const [queue, count] of state.counts) this.#counts.set(queue, { ...count });
    this.#carriedCounts = state.carriedCounts;
    for (const [arm, parts] of state.effort) this.#effort.set(arm, parts);
    for (const [slot, { stages, ...rest }] of live) {
      const key = this.#index.keyAt(rest.index);
      if (key === null) throw new RangeError(`the plan has no slot ${rest.index}`);
      const rules = slotRules(this.#context.protocol, key);
      this.#live.set(slot, { ...rest, queue: key.queue, arm: key.arm, rules, stages: [...stages] });
    }
  }

  #plan(entry: EntryOf<'attempt.started' | 'slot.carried'>): LiveSlot | Violation {
    const key = toKey(entry);
    const index = this.#index.indexOf(key);
    if (index === null) return forbid('law 1', `slot ${entry.slot} is not in the plan`);
    const rules = this.#index.rulesOf(key) ?? slotRules(this.#context.protocol, key);
    if (rules.slot !== entry.slot)
      return forbid('P6', `the slot of this key is ${rules.slot}, not ${entry.slot}`);
    const { seq } = entry;
    return {
      index,
      queue: key.queue,
      arm: key.arm,
      rules,
      since: seq,
      changed: seq,
      state: PLANNED,
      session: null,
      takenOver: null,
      stages: [],
    };
  }

  /** Why nothing follows for a slot that is closed; null for any other. */
  #refuseClosed(slot: string, entry: Entry): Violation | null {
    if (this.#carried.has(slot)) return refuseCarried(slot);
    const settled = this.#settled.get(slot);
    return settled === undefined ? null : this.#refuse(settled, slot, entry);
  }

  /** Nothing is lawful for a slot that is settled for good; the state machine says which rule forbids it. */
  #refuse(settled: SettledSlot, slot: string, entry: Entry): Violation | null {
    const key = this.#index.keyAt(settled.index);
    const named = toSlotEvent(entry);
    if (key === null || named === null) return null;
    const result = step(settled.toState(slot), named.event, slotRules(this.#context.protocol, key));
    return result.ok ? null : result.violation;
  }

  /** Keeps the lean form of a slot that is settled for good. */
  #retire(slot: string, live: LiveSlot): void {
    const settled = SettledSlot.of(live.index, live.state);
    if (settled === null) return;
    addTo(this.#effort, live.arm, splitEffort(live.state, live.stages));
    this.#live.delete(slot);
    this.#settled.add(slot, settled);
  }

  #count(queue: string, from: Bucket | null, to: Bucket): void {
    const counts = this.#counts.get(queue);
    if (counts === undefined) return;
    if (from !== null) counts[from]--;
    counts[to]++;
  }
}

/** The parts of a carried outcome must fit each other and the plan; what it was is for the other ledger to say. */
function carriedViolation(
  { slot, attempts, outcome }: EntryOf<'slot.carried'>,
  { replacements, regrades, reward }: SlotRules,
): Violation | null {
  if (attempts > 1 + replacements + regrades) {
    return forbid('P13', `the plan allows ${1 + replacements + regrades} attempts, not ${attempts}`);
  }
  if (outcome.kind === 'unresolved') return null;
  const { value, basis } = outcome;
  const last = attemptId(slot, attempts);
  if (basis.attempt !== last) return forbid('law 3', `the last of ${attempts} attempts is ${last}`);
  if (basis.kind === 'model_failure') {
    return value === 0 ? null : forbid('P14', `a model failure with nothing to grade counts 0, not ${value}`);
  }
  return value >= reward.min && value <= reward.max
    ? null
    : forbid('P11', `the reward ${value} lies outside [${reward.min}, ${reward.max}]`);
}

function addTo(effort: Map<string, EffortParts>, arm: string, parts: EffortParts): void {
  effort.set(arm, addParts(effort.get(arm) ?? NO_PARTS, parts));
}

function refuseCarried(slot: string): Violation {
  return forbid('P22', `slot ${slot} was closed under the superseded plan and carried: nothing follows here`);
}

function stepLive(live: LiveSlot, event: SlotEvent): Violation | null {
  const result = step(live.state, event, live.rules);
  if (!result.ok) return result.violation;
  live.state = result.state;
  return null;
}

function bucketOf({ phase }: SlotState): Bucket {
  return phase === 'settled' || phase === 'unresolved' ? phase : 'open';
}

function toKey({ key }: EntryOf<'attempt.started' | 'slot.carried'>): SlotKey {
  const { queue, arm, training_seed, evaluation_seed, task, rep } = key;
  return { queue, arm, trainingSeed: training_seed, evaluationSeed: evaluation_seed, task, rep };
}

function forbid(clause: string, message: string): Violation {
  return { clause, message };
}
