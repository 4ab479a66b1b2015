import { type Digest, digestOf } from '../core/digest.js';
import { type AnswerGrader, gradeAnswer, isAnswerGrader } from '../grading/answer.js';
import { expectedTests } from '../grading/reference.js';
import { answerReport } from '../grading/report.js';
import type { ReportSchema } from '../grading/report-schema.js';
import { faultText, type ReportVerdict, validateReport } from '../grading/validate-report.js';
import type { EntryOf } from '../ledger/entries/entry.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { Findings, Place } from './finding.js';
import { Memo, REMEMBERED } from './memo.js';
import type { ObjectShelf } from './objects.js';
import type { PlannedWork } from './planned-work.js';
import type { Unchecked } from './unchecked.js';

/** What grading a candidate comes to. */
interface Grade {
  readonly report: Digest;
  readonly value: number;
  readonly outcome: string;
}

export interface GradingSetting {
  readonly protocol: Protocol;
  /** The declared report schema of a condition. */
  readonly schemaOf: (condition: string) => ReportSchema | null;
  readonly shelf: ObjectShelf;
  readonly findings: Findings;
  readonly unchecked: Unchecked;
}

type ReportResult = Extract<EntryOf<'stage.finished'>['result'], { kind: 'report' }>;

/** Recomputes reports from candidates and values from reports; a command's report is held against the rules for reports. */
export class GradingCheck {
  readonly #setting: GradingSetting;
  readonly #grades = new Memo<string, Grade | null>(REMEMBERED);
  #lastAnswer: { readonly candidate: Digest; readonly text: string } | null = null;
  /** Values that were recomputed from candidates. */
  regraded = 0;

  constructor(setting: GradingSetting) {
    this.#setting = setting;
  }

  /** Remembers the text of a candidate that was just read in the service's answer. */
  answered(candidate: Digest, text: string): void {
    this.#lastAnswer = { candidate, text };
  }

  report(result: ReportResult, work: PlannedWork, where: Place): void {
    const { grader } = work.condition;
    const { shelf, unchecked } = this.#setting;
    const hidden = work.fields === null || this.#isHidden(result.candidate);
    if (isAnswerGrader(grader) && !hidden) {
      this.#regrade(grader, result, work, where);
      return;
    }
    if (isAnswerGrader(grader)) unchecked.add('grade');
    const report = shelf.read(result.report, { ...where, pointer: '/result/report' });
    if (report !== null) this.#stated(report, result, work, where);
    else if (shelf.isRedacted(result.report)) unchecked.add('report');
  }

  /** What a report is worth by the rules for reports, as far as they can be applied. */
  validate(report: Buffer, candidate: Digest, work: PlannedWork): ReportVerdict {
    const { grader } = work.condition;
    const expected = { task: work.slot.task, candidate };
    if (grader.kind !== 'report') {
      // The report of an answer has the form of a command's.
      const reward = { min: 0, max: 1 };
      return validateReport(report, { ...expected, tests: ['answer'], reward, schema: null });
    }
    const { protocol, schemaOf, unchecked } = this.#setting;
    if (grader.expected_tests !== undefined && work.fields === null) unchecked.add('expected_tests');
    return validateReport(report, {
      ...expected,
      tests: work.fields === null ? null : expectedTests(grader, work.fields),
      reward: grader.reward,
      schema: schemaOf(protocol.arms[work.slot.arm]?.condition ?? ''),
    });
  }

  #isHidden(candidate: Digest): boolean {
    return this.#lastAnswer?.candidate !== candidate && this.#setting.shelf.isRedacted(candidate);
  }

  #regrade(grader: AnswerGrader, result: ReportResult, work: PlannedWork, where: Place): void {
    this.regraded++;
    const place = { ...where, pointer: '/result/candidate' };
    const grade = this.#grades.get(`${work.number} ${result.candidate}`, () =>
      this.#grade(grader, result.candidate, work, place),
    );
    if (grade === null) return;
    if (grade.report !== result.report) {
      this.#setting.findings.add({
        code: 'REPORT_DIFFERS',
        where: { ...where, pointer: '/result/report', object: result.report },
        message: `grading the candidate gives the report ${grade.report} with reward ${grade.value}`,
        evidence: {
          expected: grade.report,
          actual: result.report,
          candidate: result.candidate,
          outcome: grade.outcome,
        },
        outcome: true,
      });
    }
    this.#value(result.value, grade.value, where);
  }

  /** Grades a candidate again; null when it is not there. */
  #grade(grader: AnswerGrader, candidate: Digest, work: PlannedWork, where: Place): Grade | null {
    const answer = this.#answerOf(candidate, where);
    if (answer === null || work.fields === null) return null;
    const grade = gradeAnswer(grader, work.fields, answer);
    const report = digestOf(answerReport(grader, work.slot.task, candidate, grade));
    return { report, value: grade.value, outcome: grade.outcome };
  }

  /** The text of a candidate: mostly the one that was met just before, in the service's answer. */
  #answerOf(candidate: Digest, where: Place): string | null {
    if (this.#lastAnswer?.candidate === candidate) return this.#lastAnswer.text;
    return this.#setting.shelf.read(candidate, where)?.toString('utf8') ?? null;
  }

  /** A report that is taken at its word: it must be valid, and the value its reward. */
  #stated(report: Buffer, result: ReportResult, work: PlannedWork, where: Place): void {
    const verdict = this.validate(report, result.candidate, work);
    if (verdict.ok) this.#value(result.value, verdict.value, where);
    else {
      this.#setting.findings.add({
        code: 'REPORT_DIFFERS',
        where: { ...where, pointer: '/result/report', object: result.report },
        message: `the report is not valid: ${faultText(verdict.faults)}`,
        evidence: verdict.faults.map(({ kind, message }) => ({ kind, message })),
        outcome: true,
      });
    }
  }

  #value(actual: number, expected: number, where: Place): void {
    if (actual === expected) return;
    this.#setting.findings.add({
      code: 'VALUE_DIFFERS',
      where: { ...where, pointer: '/result/value' },
      message: `the entry says ${actual}, the report gives ${expected}`,
      evidence: { expected, actual },
      outcome: true,
    });
  }
}
