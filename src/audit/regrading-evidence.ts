import { type Digest, digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { parseStrictJson } from '../core/strict-json.js';
import { type AnswerGrader, isAnswerGrader } from '../grading/answer.js';
import { expectedTests } from '../grading/reference.js';
import { isCut, regradeAnswer } from '../grading/regrade.js';
import { compileReportSchema, type ReportSchema } from '../grading/report-schema.js';
import { faultText, type ReportVerdict, validateReport } from '../grading/validate-report.js';
import type { Entry, EntryOf } from '../ledger/entries/entry.js';
import type { LedgerFold } from '../ledger/fold.js';
import type { RegradingCommand } from '../ledger/regradings.js';
import type { PartialTaskSets } from '../protocol/partial-tasks.js';

import { type CommandGrader, commandGraderSchema } from '../protocol/schema/command-grader.js';
import { graderSchema } from '../protocol/schema/grader.js';
import { CaptureCheck } from './capture-evidence.js';

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

interface CommandGrading {
  readonly kind: 'command';
  readonly grader: CommandGrader;
  readonly captures: CaptureCheck;
  readonly schema: ReportSchema | null;
}

type Grading = { readonly kind: 'answer'; readonly grader: AnswerGrader } | CommandGrading;

interface RegradedTask {
  readonly task: string;
  readonly fields: JsonObject | null;
}

/** Grades outputs with a corrected grader again, as whoever recorded it did; a command's reports are judged (B6). */
export class RegradingCheck {
  readonly #setting: RegradingSetting;
  /** Slots whose output a limit cut. */
  readonly #cut = new Set<string>();
  #grading: Grading | null = null;

  constructor(setting: RegradingSetting) {
    this.#setting = setting;
  }

  check(entry: Entry): void {
    switch (entry.type) {
      case 'stage.finished':
        if (entry.result.kind === 'candidate' && isCut(entry.finish_reason)) this.#cut.add(entry.slot);
        break;
      case 'regrading.opened':
        this.#grading = this.#graderOf(entry);
        break;
      case 'regrading.recorded':
        this.#recorded(entry);
        break;
      default:
    }
  }

  /** null when it is not at hand, or none. */
  #graderOf({ seq, grader, command }: EntryOf<'regrading.opened'>): Grading | null {
    const { shelf } = this.#setting;
    const bytes = shelf.read(grader, { seq, pointer: '/grader' });
    if (bytes === null) {
      if (shelf.isRedacted(grader)) this.#setting.unchecked.add('grade');
      return null;
    }
    try {
      const value = parseStrictJson(bytes, 'the grader');
      if (command !== undefined) {
        const reading = commandGraderSchema.safeParse(value);
        if (reading.success) return this.#commandOf(seq, reading.data, command);
      } else {
        const reading = graderSchema.safeParse(value);
        if (reading.success && isAnswerGrader(reading.data)) return { kind: 'answer', grader: reading.data };
      }
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
    }
    const due = command === undefined ? 'that reads an answer' : 'that is a command';
    this.#differs(seq, '/grader', `the object is no grader ${due}`);
    return null;
  }

  #commandOf(seq: number, grader: CommandGrader, { sources, schema }: RegradingCommand): Grading {
    const { shelf, findings, unchecked } = this.#setting;
    const named = Object.keys(sources).sort().join('\n') === Object.keys(grader.sources).sort().join('\n');
    if (!named || (schema === undefined) !== (grader.report_schema === undefined))
      this.#differs(seq, '/command', 'its files are not those that the grader names');
    const captures = new CaptureCheck(
      { generate: grader.grade, grade: grader.grade },
      shelf,
      findings,
      unchecked,
    );
    const bytes = schema === undefined ? null : shelf.read(schema, { seq, pointer: '/command/schema' });
    const check = bytes === null ? null : this.#schemaOf(seq, bytes);
    return { kind: 'command', grader, captures, schema: check };
  }

  #schemaOf(seq: number, bytes: Buffer): ReportSchema | null {
    try {
      return compileReportSchema(bytes, 'the schema');
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      this.#differs(seq, '/command/schema', error.message);
      return null;
    }
  }

  #recorded(entry: EntryOf<'regrading.recorded'>): void {
    const { seq, candidate, before } = entry;
    const report = this.#setting.shelf.read(before.report, { seq, pointer: '/before/report' });
    if (report !== null && candidateIn(report) !== candidate)
      this.#differs(seq, '/candidate', 'it is not the candidate of the report that the slot settled on');
    const grading = this.#grading;
    if (grading?.kind === 'answer') this.#read(entry, grading.grader);
    else if (grading?.kind === 'command') this.#ran(entry, grading);
  }

  #read({ seq, slot, candidate, result }: EntryOf<'regrading.recorded'>, grader: AnswerGrader): void {
    const { shelf, unchecked } = this.#setting;
    const bytes = shelf.read(candidate, { seq, pointer: '/candidate' });
    const task = this.#taskOf(slot);
    if (bytes === null || task?.fields == null) {
      if (shelf.isRedacted(candidate) || task?.fields == null) unchecked.add('grade');
      return;
    }
    const { fields } = task;
    const finishReason = this.#cut.has(slot) ? 'length' : null;
    try {
      const due = regradeAnswer({ grader, task: task.task, fields, candidate: bytes, finishReason });
      const same =
        due.kind === 'graded' && result.kind === 'graded'
          ? due.value === result.value && digestOf(due.report) === result.report
          : due.kind === result.kind;
      if (same) return;
      const words = due.kind === 'truncated' ? 'finds it truncated' : `gives ${due.value}`;
      this.#differs(seq, '/result', `grading the candidate again ${words}`);
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      this.#differs(seq, '/result', `it cannot be graded again: ${error.message}`);
    }
  }

  /** What a command did cannot be repeated; its report is held against the rules for reports. */
  #ran(entry: EntryOf<'regrading.recorded'>, grading: CommandGrading): void {
    const { shelf, unchecked } = this.#setting;
    const { seq, slot, candidate, result, stage } = entry;
    if (stage !== undefined) grading.captures.check({ seq, slot, stage: 'grade', objects: stage.objects });
    shelf.read(candidate, { seq, pointer: '/candidate' });
    if (result.kind === 'truncated') return;
    if (result.kind === 'failed' && result.signals.stage !== 'grade')
      this.#differs(seq, '/result/signals/stage', 'it failed in another stage than grading');
    const rejected = stage?.objects.rejected_report;
    if (result.kind === 'graded' && rejected !== undefined)
      this.#differs(seq, '/stage/objects/rejected_report', 'a valid report is not rejected');
    const digest = result.kind === 'graded' ? result.report : rejected;
    const pointer = result.kind === 'graded' ? '/result/report' : '/stage/objects/rejected_report';
    const report = digest === undefined ? null : shelf.read(digest, { seq, pointer });
    const task = this.#taskOf(slot);
    if (report === null || task === null) {
      if (digest !== undefined && shelf.isRedacted(digest)) unchecked.add('report');
      return;
    }
    const verdict = this.#verdict(report, candidate, grading, task);
    if (result.kind === 'failed') {
      if (verdict.ok) this.#differs(seq, '/result', 'the rejected report is valid');
    } else if (!verdict.ok) {
      this.#differs(seq, '/result', `the report is not valid: ${faultText(verdict.faults)}`);
    } else if (verdict.value !== result.value) {
      this.#differs(seq, '/result', `the report gives ${verdict.value}`);
    }
  }

  #verdict(
    report: Buffer,
    candidate: Digest,
    { grader, schema }: CommandGrading,
    { task, fields }: RegradedTask,
  ): ReportVerdict {
    const { reward } = grader;
    if (fields === null && grader.expected_tests !== undefined) this.#setting.unchecked.add('expected_tests');
    try {
      const tests = fields === null ? null : expectedTests(grader, fields);
      return validateReport(report, { task, candidate, tests, reward, schema });
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      return { ok: false, faults: [{ kind: 'other_tests', message: error.message }] };
    }
  }

  /** null when the slot is not known; without its fields when the task's file is redacted. */
  #taskOf(slot: string): RegradedTask | null {
    const { fold, tasks } = this.#setting;
    const key = fold.slots.key(slot);
    const set = key === null ? undefined : fold.context.protocol.queues[key.queue]?.tasks;
    if (key === null || set === undefined) return null;
    if (tasks.bare.has(set)) return { task: key.task, fields: null };
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
