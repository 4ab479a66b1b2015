import { nextAction } from '../attempts/next-action.js';
import type { SlotRules } from '../attempts/slot-state.js';
import type { LedgerFold } from '../ledger/fold.js';
import { slotRules } from '../ledger/plan-index.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { Task } from '../protocol/tasks.js';
import { modelName } from '../slots/model-name.js';
import type { Slot } from '../slots/slot.js';
import type { Work } from './adapters/adapter.js';

/** A slot that is taken up, with everything that the plan fixes for it. */
export interface Job {
  readonly work: Work;
  readonly rules: SlotRules;
}

/** The tasks of every task set by id. */
export type Tasks = ReadonlyMap<string, ReadonlyMap<string, Task>>;

/** Everything that the plan fixes for a slot; null for one that it does not hold. */
export function jobOf(protocol: Protocol, tasks: Tasks, slot: Slot): Job | null {
  const condition = protocol.conditions[protocol.arms[slot.arm]?.condition ?? ''];
  const fields = tasks.get(protocol.queues[slot.queue]?.tasks ?? '')?.get(slot.task)?.fields;
  if (condition === undefined || fields === undefined) return null;
  const rules = slotRules(protocol, slot);
  const work = {
    slot,
    model: modelName(protocol, slot),
    condition,
    fields,
    samplingSeed: rules.samplingSeed,
  };
  return { work, rules };
}

export interface PlanQueueSetting {
  /** In plan order. */
  readonly slots: Iterator<Slot>;
  readonly protocol: Protocol;
  readonly tasks: Tasks;
  readonly fold: LedgerFold;
  /** How many slots this session may take up; infinite without a limit. */
  readonly limit: number;
  /** What must be up for a slot; slots of one station can be worked on at the same time. */
  readonly stationOf: (work: Work) => string;
}

/**
 * Hands out the slots that are due, in plan order, as long as they need the same station (a model's service): the
 * order of the plan decides when models change.
 */
export class PlanQueue {
  readonly #setting: PlanQueueSetting;
  #left: number;
  #next: Job | null = null;

  constructor(setting: PlanQueueSetting) {
    this.#setting = setting;
    this.#left = setting.limit;
  }

  /** Whether the limit ended the queue while slots were left. */
  get limited(): boolean {
    return this.#left <= 0 && this.#peek() !== null;
  }

  /** The station that the next due slot needs; null when nothing is due any more or the limit is reached. */
  nextStation(): string | null {
    const job = this.#left > 0 ? this.#peek() : null;
    return job === null ? null : this.#setting.stationOf(job.work);
  }

  /** The next due slot, when it needs this station. */
  take(station: string): Job | null {
    const job = this.#left > 0 ? this.#peek() : null;
    if (job === null || this.#setting.stationOf(job.work) !== station) return null;
    this.#next = null;
    this.#left--;
    return job;
  }

  /** A job that {@link take} handed out turned out to be another process's: it does not count against the limit. */
  giveBack(): void {
    this.#left++;
  }

  #peek(): Job | null {
    const { slots, protocol, tasks } = this.#setting;
    while (this.#next === null) {
      const { done, value } = slots.next();
      if (done === true) return null;
      this.#next = this.#isDue(value) ? jobOf(protocol, tasks, value) : null;
    }
    return this.#next;
  }

  /** Whether something may be started for a slot, or recorded about it, without asking who is at work on it. */
  #isDue(slot: Slot): boolean {
    const { fold, protocol } = this.#setting;
    if (!fold.slots.isTouched(slot.id)) return true;
    if (fold.slots.isClosed(slot.id)) return false;
    const due = nextAction(fold.slots.state(slot.id), slotRules(protocol, slot));
    return due?.do === 'start' || due?.do === 'settle' || due?.do === 'unresolve';
  }
}
