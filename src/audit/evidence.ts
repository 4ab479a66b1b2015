import { canonicalBytes } from '../core/canonical-json.js';
import { type Digest, digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { JsonValue } from '../core/json.js';
import { parseStrictJson } from '../core/strict-json.js';
import { type AnswerGrader, gradeAnswer } from '../grading/answer.js';
import { expectedTests } from '../grading/reference.js';
import { answerReport } from '../grading/report.js';
import type { ReportSchema } from '../grading/report-schema.js';
import { faultText, validateReport } from '../grading/validate-report.js';
import type { EntryOf } from '../ledger/entries.js';
import type { Protocol } from '../protocol/schema.js';
import type { Work } from '../runner/adapters/adapter.js';
import { readAnswer } from '../runner/adapters/openai-answer.js';
import { buildRequest } from '../runner/adapters/openai-request.js';
import { renderPrompt } from '../runner/prompt.js';
import { slotTuple } from '../slots/slot.js';
import { differences, shorten } from './difference.js';
import type { Findings, Place } from './finding.js';
import { Memo } from './memo.js';
import type { ObjectShelf } from './objects.js';

const MAX_DIFFERENCES = 20;
const MAX_DOUBTFUL = 1000;
/** How many tasks' requests and candidates' grades are kept, since reps and equal answers meet them again. */
const REMEMBERED = 16_384;

/** What grading a candidate comes to. */
interface Grade {
  readonly report: Digest;
  readonly value: number;
  readonly outcome: string;
}

export interface EvidenceSetting {
  readonly protocol: Protocol;
  /** The declared report schema of a condition. */
  readonly schemaOf: (condition: string) => ReportSchema | null;
  readonly shelf: ObjectShelf;
  readonly findings: Findings;
}

type StageEntry = EntryOf<'stage.finished'>;
type Result<K extends StageEntry['result']['kind']> = Extract<StageEntry['result'], { kind: K }>;

/**
 * Recomputes what an attempt's objects must be: the request from the plan, the candidate from the service's answer, the
 * report from the candidate, the value from the report. What a command did cannot be repeated; its report is checked
 * against the rules for reports.
 */
export class EvidenceCheck {
  readonly #protocol: Protocol;
  readonly #schemaOf: (condition: string) => ReportSchema | null;
  readonly #shelf: ObjectShelf;
  readonly #findings: Findings;
  readonly #requests = new Memo<readonly [string, string] | null>(REMEMBERED);
  readonly #grades = new Memo<Grade | null>(REMEMBERED);
  #lastAnswer: { readonly candidate: Digest; readonly text: string } | null = null;
  /** Values that were recomputed from candidates. */
  regraded = 0;
  /** Failures of the connection under which a whole answer was kept: possible, and worth a look. */
  readonly doubtful: number[] = [];

  constructor(setting: EvidenceSetting) {
    this.#protocol = setting.protocol;
    this.#schemaOf = setting.schemaOf;
    this.#shelf = setting.shelf;
    this.#findings = setting.findings;
  }

  /** Checks the request of a started attempt (P17, P18). */
  request(entry: EntryOf<'attempt.started'>, work: Work): void {
    const where = { seq: entry.seq, slot: entry.slot, pointer: '/request' };
    if ((entry.request === null) !== (entry.kind === 'regrade')) {
      const message =
        entry.request === null ? 'an attempt that generates names no request' : 'a regrade sends no request';
      this.#findings.add({ code: 'REQUEST_DIFFERS', where, message });
    }
    if (entry.request === null) return;
    const bytes = this.#shelf.read(entry.request, where);
    if (bytes === null) return;
    const expected = this.#expectedRequest(entry, work, bytes);
    if (digestOf(expected) === entry.request) return;
    const place = { ...where, object: entry.request };
    const found = parseOrNull(bytes);
    const wanted = parseOrNull(Buffer.from(expected));
    const lines = found === null || wanted === null ? [] : differences(wanted, found, MAX_DIFFERENCES);
    if (lines.length === 0) {
      this.#findings.add({ code: 'REQUEST_DIFFERS', where: place, message: 'the request has another form' });
    }
    for (const { pointer, expected: due, actual } of lines) {
      this.#findings.add({
        code: 'REQUEST_DIFFERS',
        clause: /\/(seed|sampling_seed)$/.test(pointer) ? 'P18' : 'P17',
        where: { ...place, pointer: `/request${pointer}` },
        message: `the request says ${text(actual)} at ${pointer}; the plan fixes ${text(due)}`,
        evidence: { expected: shorten(due), actual: shorten(actual) },
      });
    }
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
      if (result.kind === 'candidate') this.#candidate(entry, result, work, where);
      else if (result.kind === 'report') this.#report(result, work, where);
      else this.#failure(entry, result, work, candidate, where);
    }
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

  #expectedRequest(entry: EntryOf<'attempt.started'>, work: Work, bytes: Buffer): Buffer | string {
    const { runner } = this.#protocol;
    const { condition, model, fields, samplingSeed } = work;
    if (runner.adapter === 'openai') {
      const { endpoint } = runner;
      // The slots of one task differ in nothing but the seed.
      const parts = this.#requests.get(planKey(work), () =>
        aroundSeed(buildRequest(endpoint, condition, model, fields, 0).toString('utf8')),
      );
      return parts === null
        ? buildRequest(endpoint, condition, model, fields, samplingSeed)
        : parts[0] + samplingSeed + parts[1];
    }
    return canonicalBytes({
      boundbook: 1,
      stage: 'generate',
      attempt: entry.attempt,
      slot: { id: entry.slot, tuple: slotTuple(work.slot) },
      model: { ...placesIn(bytes), name: model },
      task: { id: work.slot.task, fields },
      prompt: { ...renderPrompt(condition, fields) },
      decoding: condition.decoding,
      reasoning: condition.reasoning ?? null,
      execution: condition.execution ?? {},
      sampling_seed: samplingSeed,
    });
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
    if (runner.adapter === 'openai' && response !== undefined && entry.stage === 'generate') {
      const bytes = this.#shelf.read(response, { ...where, pointer: '/objects/response' });
      if (bytes !== null) this.#failedAnswer(bytes, signals, runner.endpoint, work.model, place);
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
    endpoint: 'chat' | 'completions',
    model: string,
    where: Place,
  ): void {
    const ownStatus = signals.http_status === 200 || signals.http_status === null;
    if (!ownStatus || signals.cause === 'body_too_large') return;
    const reading = readAnswer(bytes, endpoint, model);
    const fromBody = signals.cause.startsWith('body_');
    if (reading.ok && !fromBody) {
      if (this.doubtful.length < MAX_DOUBTFUL) this.doubtful.push(where.seq ?? 0);
      return;
    }
    const shown = reading.ok ? 'a complete answer' : reading.cause;
    if (!fromBody || shown === signals.cause) return;
    this.#findings.add({
      code: 'FAILURE_DIFFERS',
      where,
      message: `the kept answer shows ${shown}, the entry says ${signals.cause}`,
      evidence: { expected: shown, actual: signals.cause },
      outcome: true,
    });
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

/** What a request and a grade depend on, seed and candidate apart. Ids hold no control characters. */
function planKey({ slot }: Work): string {
  return `${slot.queue}\0${slot.arm}\0${slot.trainingSeed}\0${slot.task}`;
}

/**
 * The text before and after the seed of a request that was built with seed 0; null when that is not plain. A quote inside
 * a string is escaped, so that the text of a prompt cannot stand for the member.
 */
function aroundSeed(request: string): readonly [string, string] | null {
  const [before, after, more] = request.split('"seed":0,');
  return before === undefined || after === undefined || more !== undefined
    ? null
    : [`${before}"seed":`, `,${after}`];
}

/** Where weights and tokenizer lay on the host that ran it, as the request says: no part of the plan. */
function placesIn(bytes: Buffer): { readonly weights: JsonValue; readonly tokenizer: JsonValue } {
  const request = objectOrNull(parseOrNull(bytes));
  const model = objectOrNull(request?.model ?? null);
  const place = (value: JsonValue | undefined): JsonValue => (typeof value === 'string' ? value : null);
  return { weights: place(model?.weights), tokenizer: place(model?.tokenizer) };
}

function objectOrNull(value: JsonValue): Readonly<Record<string, JsonValue | undefined>> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, JsonValue | undefined>>)
    : null;
}

function parseOrNull(bytes: Uint8Array): JsonValue {
  try {
    return parseStrictJson(bytes, 'the object');
  } catch (error) {
    if (error instanceof BoundbookError) return null;
    throw error;
  }
}

function text(value: JsonValue | undefined): string {
  return value === undefined ? 'nothing' : JSON.stringify(shorten(value));
}
