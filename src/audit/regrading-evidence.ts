import { digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { parseStrictJson } from '../core/strict-json.js';
import { type AnswerGrader, isAnswerGrader } from '../grading/answer.js';
import { isCut, regradeAnswer } from '../grading/regrade.js';
import type { Entry, EntryOf } from '../ledger/entries/entry.js';
import type { LedgerFold } from '../ledger/fold.js';
import type { PartialTaskSets } from '../protocol/partial-tasks.js';
import { graderSchema } from '../protocol/schema/grader.js';
import type { Findings } from './finding.js';
import type { ObjectShelf } from './objects.js';
import type { Unchecked } from './unchecked.js';

export interface RegradingSetting {
  readonly fold: LedgerFold;
  readonly tasks: PartialTaskSets;
  readonly shelf: ObjectShelf;
  readonly findings: Findings;
  readonly unchecked: Unchecked;
}

/** Grades outputs with a corrected grader again, as whoever recorded it did (B6). */
export class RegradingCheck {
  readonly #setting: RegradingSetting;
  /** Slots whose output a limit cut. */
  readonly #cut = new Set<string>();
  #grader: AnswerGrader | null = null;

  constructor(setting: RegradingSetting) {
    this.#setting = setting;
  }

  check(entry: Entry): void {
    switch (entry.type) {
      case 'stage.finished':
        if (entry.result.kind === 'candidate' && isCut(entry.finish_reason)) this.#cut.add(entry.slot);
        break;
      case 'regrading.opened':
        this.#grader = this.#graderOf(entry);
        break;
      case 'regrading.recorded':
        this.#recorded(entry);
        break;
      default:
    }
  }

  /** null when it is not at hand. */
  #graderOf({ seq, grader }: EntryOf<'regrading.opened'>): AnswerGrader | null {
    const { shelf } = this.#setting;
    const bytes = shelf.read(grader, { seq, pointer: '/grader' });
    if (bytes === null) {
      if (shelf.isRedacted(grader)) this.#setting.unchecked.add('grade');
      return null;
    }
    try {
      const reading = graderSchema.safeParse(parseStrictJson(bytes, 'the grader'));
      if (reading.success && isAnswerGrader(reading.data)) return reading.data;
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
    }
    this.#differs(seq, '/grader', 'the object is no grader that reads an answer');
    return null;
  }

  #recorded({ seq, slot, candidate, before, result }: EntryOf<'regrading.recorded'>): void {
    const { shelf, unchecked } = this.#setting;
    const report = shelf.read(before.report, { seq, pointer: '/before/report' });
    if (report !== null && candidateIn(report) !== candidate)
      this.#differs(seq, '/candidate', 'it is not the candidate of the report that the slot settled on');
    const grader = this.#grader;
    if (grader === null) return;
    const bytes = shelf.read(candidate, { seq, pointer: '/candidate' });
    const task = this.#taskOf(slot);
    if (bytes === null || task === null) {
      if (shelf.isRedacted(candidate) || task === null) unchecked.add('grade');
      return;
    }
    const finishReason = this.#cut.has(slot) ? 'length' : null;
    try {
      const due = regradeAnswer({ grader, ...task, candidate: bytes, finishReason });
      const same =
        due.kind === 'truncated' || result.kind === 'truncated'
          ? due.kind === result.kind
          : due.value === result.value && digestOf(due.report) === result.report;
      if (same) return;
      const words = due.kind === 'truncated' ? 'finds it truncated' : `gives ${due.value}`;
      this.#differs(seq, '/result', `grading the candidate again ${words}`);
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      this.#differs(seq, '/result', `it cannot be graded again: ${error.message}`);
    }
  }

  /** null when the task's file is redacted, or the slot is not known. */
  #taskOf(slot: string) {
    const { fold, tasks } = this.#setting;
    const key = fold.slots.key(slot);
    const set = key === null ? undefined : fold.context.protocol.queues[key.queue]?.tasks;
    if (key === null || set === undefined || tasks.bare.has(set)) return null;
    const fields = tasks.tasks.get(set)?.get(key.task)?.fields;
    return fields === undefined ? null : { task: key.task, fields };
  }

  #differs(seq: number, pointer: string, message: string): void {
    const where = { seq, pointer };
    this.#setting.findings.add({ code: 'REGRADING_DIFFERS', where, message, outcome: true });
  }
}

function candidateIn(report: Buffer): unknown {
  const value = parseStrictJson(report, 'the report');
  return typeof value === 'object' && value !== null && 'candidate' in value ? value.candidate : null;
}
