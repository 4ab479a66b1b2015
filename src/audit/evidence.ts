import type { FailureSignals } from '../attempts/signals.js';
import { type Digest, digestOf } from '../core/digest.js';
import { type AnswerGrader, gradeAnswer } from '../grading/answer.js';
import { expectedTests } from '../grading/reference.js';
import { answerReport } from '../grading/report.js';
import type { ReportSchema } from '../grading/report-schema.js';
import { faultText, validateReport } from '../grading/validate-report.js';
import type { EntryOf } from '../ledger/entries.js';
import type { OpenaiRunner, Protocol } from '../protocol/schema.js';
import type { Work } from '../runner/adapters/adapter.js';
import { readAnswer, type Usage } from '../runner/adapters/openai-answer.js';
import { differences, shorten, shown } from './difference.js';
import { contradictionIn } from './failed-answer.js';
import type { Findings, Place } from './finding.js';
import { Memo, REMEMBERED } from './memo.js';
import type { ObjectShelf } from './objects.js';
import { planKey } from './plan-key.js';
import { RequestCheck, type RequestSetting } from './request-evidence.js';

const MAX_DIFFERENCES = 20;
const MAX_DOUBTFUL = 1000;

/** What grading a candidate comes to. */
interface Grade {
  readonly report: Digest;
  readonly value: number;
  readonly outcome: string;
}

export interface EvidenceSetting extends RequestSetting {
  /** The declared report schema of a condition. */
  readonly schemaOf: (condition: string) => ReportSchema | null;
}

type StageEntry = EntryOf<'stage.finished'>;
type Result<K extends StageEntry['result']['kind']> = Extract<StageEntry['result'], { kind: K }>;

/**
 * Recomputes what the objects of an attempt must be: the request from the plan, the candidate from the service's answer,
 * the report from the candidate, the value from the report. What a command did cannot be repeated; its report is checked
 * against the rules for reports.
 */
export class EvidenceCheck {
  readonly #protocol: Protocol;
  readonly #schemaOf: (condition: string) => ReportSchema | null;
  readonly #shelf: ObjectShelf;
  readonly #findings: Findings;
  readonly #requests: RequestCheck;
  readonly #grades = new Memo<Grade | null>(REMEMBERED);
  #lastAnswer: { readonly candidate: Digest; readonly text: string } | null = null;
  /** Values that were recomputed from candidates. */
  regraded = 0;
  /** Failures of the connection under which a whole answer was kept: possible, and worth a look. */
  readonly doubtful: number[] = [];

  constructor(setting: EvidenceSetting) {
    this.#protocol = setting.protocol;
    this.#requests = new RequestCheck(setting);
    this.#schemaOf = setting.schemaOf;
    this.#shelf = setting.shelf;
    this.#findings = setting.findings;
  }

  /** Checks the request of a started attempt (P17, P18). */
  request(entry: EntryOf<'attempt.started'>, work: Work): void {
    this.#requests.check(entry, work);
  }

  /**
   * Checks the end of a stage.
   *
   * @param work what the plan fixes for its slot; null when the slot is not known
   * @param candidate what was being graded, if anything was
   */
  stage(entry: StageEntry, work: Work | null, candidate: Digest | null): void {
    const where = { seq: entry.seq, slot: entry.slot };
    const { result } = entry;
    this.#form(entry, where);
    if (work !== null) {
      this.#saysOfNoAnswer(entry, work, where);
      if (result.kind === 'candidate') this.#candidate(entry, result, work, where);
      else if (result.kind === 'report') this.#report(result, work, where);
      else this.#failure(entry, result, work, candidate, where);
    }
  }

  /** Only an answer says how it ended and what it cost; a process says how it ended. */
  #saysOfNoAnswer(entry: StageEntry, { condition }: Work, where: Place): void {
    const service = this.#protocol.runner.adapter === 'openai';
    if (service && entry.result.kind === 'candidate') return;
    const process = !service && (entry.stage === 'generate' || condition.grader.kind === 'report');
    this.#said(entry, process ? entry.finish_reason : null, null, where);
  }

  #form({ stage, result, objects }: StageEntry, where: Place): void {
    const due =
      result.kind === 'failure' ? result.signals.stage : result.kind === 'report' ? 'grade' : 'generate';
    if (stage !== due) {
      const message = `the stage ${stage} cannot end in a ${result.kind} of ${due}`;
      this.#findings.add({ code: 'STAGE_CONTRADICTS', where: { ...where, pointer: '/stage' }, message });
    }
    if (
      result.kind === 'candidate' &&
      this.#protocol.runner.adapter === 'openai' &&
      objects.response === undefined
    ) {
      const message = 'a candidate of a service without the answer that it came in';
      this.#findings.add({ code: 'CANDIDATE_DIFFERS', where: { ...where, pointer: '/objects' }, message });
    }
  }

  #candidate(entry: StageEntry, { candidate }: Result<'candidate'>, work: Work, where: Place): void {
    const place = { ...where, pointer: '/result/candidate' };
    const { runner } = this.#protocol;
    const { response } = entry.objects;
    if (runner.adapter !== 'openai' || response === undefined) return;
    const bytes = this.#shelf.read(response, { ...where, pointer: '/objects/response' });
    if (bytes === null) return;
    const reading = readAnswer(bytes, runner.endpoint, work.model);
    const actual = reading.ok ? digestOf(reading.text) : null;
    if (reading.ok && actual === candidate) {
      this.#lastAnswer = { candidate, text: reading.text };
      this.#said(entry, reading.finishReason?.toWellFormed() ?? null, reading.usage, where);
      return;
    }
    this.#findings.add({
      code: 'CANDIDATE_DIFFERS',
      where: { ...place, object: response },
      message: reading.ok
        ? `the answer gives the candidate ${actual}, the entry names ${candidate}`
        : `the answer holds no candidate (${reading.cause}), the entry names ${candidate}`,
      evidence: { expected: actual, actual: candidate },
    });
  }

  /** How the answer ended and what it cost, as the report counts them (P21). */
  #said(
    { finish_reason, usage }: StageEntry,
    finishReason: string | null,
    counted: Usage | null,
    where: Place,
  ): void {
    const found = { finish_reason, usage: usage === null ? null : { ...usage } };
    const due = { finish_reason: finishReason, usage: counted === null ? null : { ...counted } };
    for (const { pointer, expected, actual } of differences(due, found, MAX_DIFFERENCES)) {
      this.#findings.add({
        code: 'ANSWER_DIFFERS',
        where: { ...where, pointer },
        message: `the entry says ${shown(actual)} at ${pointer}; the answer gives ${shown(expected)}`,
        evidence: { expected: shorten(expected), actual: shorten(actual) },
        outcome: true,
      });
    }
  }

  #report(result: Result<'report'>, work: Work, where: Place): void {
    const { grader } = work.condition;
    const named = { ...where, pointer: '/result/report' };
    if (grader.kind === 'report') {
      const report = this.#shelf.read(result.report, named);
      if (report !== null) this.#commandReport(report, result, work, where);
      return;
    }
    this.regraded++;
    const place = { ...where, pointer: '/result/candidate' };
    const grade = this.#grades.get(`${planKey(work)}\0${result.candidate}`, () =>
      this.#grade(grader, result.candidate, work, place),
    );
    if (grade === null) return;
    if (grade.report !== result.report) {
      this.#findings.add({
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
  #grade(grader: AnswerGrader, candidate: Digest, work: Work, where: Place): Grade | null {
    const answer = this.#answerOf(candidate, where);
    if (answer === null) return null;
    const grade = gradeAnswer(grader, work.fields, answer);
    const report = digestOf(answerReport(grader, work.slot.task, candidate, grade));
    return { report, value: grade.value, outcome: grade.outcome };
  }

  /** The text of a candidate: mostly the one that was met just before, in the service's answer. */
  #answerOf(candidate: Digest, where: Place): string | null {
    if (this.#lastAnswer?.candidate === candidate) return this.#lastAnswer.text;
    return this.#shelf.read(candidate, where)?.toString('utf8') ?? null;
  }

  #commandReport(report: Buffer, result: Result<'report'>, work: Work, where: Place): void {
    const verdict = this.#validate(report, result.candidate, work);
    if (verdict === null) return;
    if (verdict.ok) this.#value(result.value, verdict.value, where);
    else {
      this.#findings.add({
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
    this.#findings.add({
      code: 'VALUE_DIFFERS',
      where: { ...where, pointer: '/result/value' },
      message: `the entry says ${actual}, the report gives ${expected}`,
      evidence: { expected, actual },
      outcome: true,
    });
  }

  /** A failure that hides an answer or a report is the way to another try (P11, P13). */
  #failure(
    entry: StageEntry,
    { signals }: Result<'failure'>,
    work: Work,
    candidate: Digest | null,
    where: Place,
  ): void {
    const { runner } = this.#protocol;
    const { response, rejected_report: rejected } = entry.objects;
    const place = { ...where, pointer: '/result/signals' };
    if (runner.adapter === 'openai' && entry.stage === 'generate') {
      const bytes =
        response === undefined
          ? Buffer.alloc(0)
          : this.#shelf.read(response, { ...where, pointer: '/objects/response' });
      if (bytes !== null) this.#failedAnswer(bytes, signals, runner.endpoint, work.model, place);
    }
    if (entry.stage === 'grade' && work.condition.grader.kind !== 'report') {
      // Plan and references were checked: grading an answer in this process cannot fail.
      this.#findings.add({
        code: 'FAILURE_DIFFERS',
        clause: 'P11',
        where: place,
        message: 'grading the candidate gives a report: it should have settled the slot',
        outcome: true,
      });
    }
    if (rejected === undefined || work.condition.grader.kind !== 'report') return;
    const bytes = this.#shelf.read(rejected, { ...where, pointer: '/objects/rejected_report' });
    if (bytes === null || candidate === null || this.#validate(bytes, candidate, work)?.ok !== true) return;
    this.#findings.add({
      code: 'FAILURE_DIFFERS',
      clause: 'P11',
      where: { ...place, object: rejected },
      message: 'the rejected report is valid: it should have settled the slot',
      outcome: true,
    });
  }

  #failedAnswer(
    bytes: Buffer,
    signals: Result<'failure'>['signals'],
    endpoint: OpenaiRunner['endpoint'],
    model: string,
    where: Place,
  ): void {
    const contradiction = contradictionIn(signals, bytes, endpoint, model);
    if (contradiction !== null) {
      const { what, expected, actual } = contradiction;
      this.#findings.add({
        code: 'FAILURE_DIFFERS',
        where,
        message: `${what} is ${shown(actual)} in the entry; the kept answer shows ${shown(expected)}`,
        evidence: { expected, actual },
        outcome: true,
      });
    } else if (isWhole(signals, () => readAnswer(bytes, endpoint, model).ok)) {
      if (this.doubtful.length < MAX_DOUBTFUL) this.doubtful.push(where.seq ?? 0);
    }
  }

  #validate(report: Buffer, candidate: Digest, work: Work) {
    const { grader } = work.condition;
    if (grader.kind !== 'report') return null;
    return validateReport(report, {
      task: work.slot.task,
      candidate,
      tests: expectedTests(grader, work.fields),
      reward: grader.reward,
      schema: this.#schemaOf(this.#protocol.arms[work.slot.arm]?.condition ?? ''),
    });
  }
}

/** Whether a whole answer was kept although its connection failed: possible, and worth a look. */
function isWhole({ http_status, cause }: FailureSignals, isAnswer: () => boolean): boolean {
  return (http_status === 200 || http_status === null) && cause !== 'body_too_large' && isAnswer();
}
