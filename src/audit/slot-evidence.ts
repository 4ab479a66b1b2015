import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { Entry, EntryOf } from '../ledger/entries/entry.js';
import type { LedgerFold } from '../ledger/fold.js';
import type { PartialTaskSets } from '../protocol/partial-tasks.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { modelName } from '../slots/model-name.js';
import { type Slot, samplingSeed } from '../slots/slot.js';
import type { EvidenceCheck } from './evidence.js';
import type { Findings } from './finding.js';
import { REMEMBERED } from './memo.js';
import type { PlannedTask, PlannedWork } from './planned-work.js';

/** Brings every entry that names evidence together with what the plan fixes for its slot. */
export class SlotEvidence {
  readonly #protocol: Protocol;
  readonly #tasks: PartialTaskSets;
  readonly #fold: LedgerFold;
  readonly #check: EvidenceCheck;
  readonly #findings: Findings;
  /** By queue, arm and training seed, and by task. */
  readonly #planned = new Map<string, Map<string, PlannedTask>>();
  #numbers = 0;
  /** Work of slots under way. */
  readonly #open = new Map<string, PlannedWork>();

  constructor(
    protocol: Protocol,
    tasks: PartialTaskSets,
    fold: LedgerFold,
    check: EvidenceCheck,
    findings: Findings,
  ) {
    this.#protocol = protocol;
    this.#tasks = tasks;
    this.#fold = fold;
    this.#check = check;
    this.#findings = findings;
  }

  /** Checks an entry, before the fold takes it. */
  check(entry: Entry): void {
    try {
      if (entry.type === 'attempt.started') this.#started(entry);
      else if (entry.type === 'stage.finished') {
        const { slots } = this.#fold;
        const isRegrade = slots.state(entry.slot).regrades > 0;
        const regrade = isRegrade ? { takenOver: slots.takenOver(entry.slot) } : null;
        this.#check.stage(entry, this.#workOf(entry.slot), this.#graded(entry.slot), regrade);
      } else if (entry.type === 'recheck.started') this.#recheckStarted(entry);
      else if (entry.type === 'recheck.finished') this.#rechecked(entry);
      else if (entry.type === 'slot.settled') this.#open.delete(entry.slot);
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      this.#findings.add({
        code: 'REPORT_DIFFERS',
        where: { seq: entry.seq },
        message: `it cannot be recomputed: ${error.message}`,
      });
    }
  }

  #started(entry: EntryOf<'attempt.started'>): void {
    const { queue, arm, training_seed, evaluation_seed, task, rep } = entry.key;
    const key = { queue, arm, trainingSeed: training_seed, evaluationSeed: evaluation_seed, task, rep };
    const work = this.#work({ ...key, id: entry.slot }, entry.sampling_seed);
    if (work === null) return;
    this.#open.set(entry.slot, work);
    this.#check.request(entry, work);
  }

  /** B10: the request is the slot's own. */
  #recheckStarted(entry: EntryOf<'recheck.started'>): void {
    const work = this.#workOf(entry.slot);
    if (work !== null) this.#check.request({ ...entry, attempt: entry.slot, kind: 'first' }, work);
  }

  /** B10: what was kept is read and graded as an attempt's is, without the stop rule. */
  #rechecked({ result, ...entry }: EntryOf<'recheck.finished'>): void {
    const planned = this.#workOf(entry.slot);
    if (planned === null) return;
    const { loop_stop: _rule, ...condition } = planned.condition;
    const work = { ...planned, condition };
    const { seq, prev, time, slot } = entry;
    const frame = { seq, prev, time, slot, type: 'stage.finished', attempt: slot } as const;
    const { objects, usage, finish_reason, seconds, queue_seconds, first_token_seconds } = entry;
    const ended = {
      objects,
      usage,
      finish_reason,
      seconds,
      queue_seconds,
      ...(first_token_seconds === undefined ? {} : { first_token_seconds }),
    };
    if (result.kind === 'failure') {
      this.#check.stage({ ...frame, ...ended, stage: 'generate', result }, work, null, null);
      return;
    }
    const { candidate, report, value } = result;
    const generated = { kind: 'candidate', candidate } as const;
    this.#check.stage({ ...frame, ...ended, stage: 'generate', result: generated }, work, null, null);
    const graded = { kind: 'report', candidate, report, value } as const;
    this.#check.stage({ ...frame, ...NO_EFFORT, stage: 'grade', result: graded }, work, candidate, null);
  }

  #workOf(slot: string): PlannedWork | null {
    const open = this.#open.get(slot);
    if (open !== undefined) return open;
    const key = this.#fold.slots.key(slot);
    return key === null ? null : this.#work({ ...key, id: slot }, samplingSeed(this.#protocol.sampling, key));
  }

  /** @param seed as the entry has it, which the rules of the slot judge */
  #work(slot: Slot, seed: number): PlannedWork | null {
    const planned = this.#plannedTask(slot);
    if (planned === null) return null;
    const { number, model, condition, fields } = planned;
    return { slot, number, model, condition, fields, samplingSeed: seed };
  }

  #plannedTask(slot: Slot): PlannedTask | null {
    const name = `${slot.queue}\0${slot.arm}\0${slot.trainingSeed}`;
    const known = this.#planned.get(name)?.get(slot.task);
    if (known !== undefined) return known;
    const { arms, conditions, queues } = this.#protocol;
    const condition = conditions[arms[slot.arm]?.condition ?? ''];
    const set = queues[slot.queue]?.tasks ?? '';
    const task = this.#tasks.tasks.get(set)?.get(slot.task);
    if (condition === undefined || task === undefined) return null;
    const fields = this.#tasks.bare.has(set) ? null : task.fields;
    const planned = { number: this.#numbers++, model: modelName(this.#protocol, slot), condition, fields };
    if (planned.number % REMEMBERED === 0) this.#planned.clear();
    const tasks = this.#planned.get(name) ?? new Map<string, PlannedTask>();
    this.#planned.set(name, tasks.set(slot.task, planned));
    return planned;
  }

  #graded(slot: string): Digest | null {
    const state = this.#fold.slots.state(slot);
    return state.phase === 'grading' ? state.candidate : null;
  }
}

const NO_EFFORT = { objects: {}, usage: null, finish_reason: null, seconds: 0, queue_seconds: 0 } as const;
