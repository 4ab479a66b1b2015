import type { FailureSignals } from '../attempts/signals.js';
import { isUnfinished, UNFINISHED } from '../attempts/unfinished.js';
import { type Digest, digestOf } from '../core/digest.js';
import { isAnswerGrader } from '../grading/answer.js';
import type { EntryOf } from '../ledger/entries/entry.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { Question, Usage } from '../runner/adapters/openai-answer.js';
import { questionOf } from '../runner/adapters/openai-request.js';
import { readResponse } from '../runner/adapters/openai-stream.js';
import { AnsweringSystems } from './answering-systems.js';
import { CaptureCheck } from './capture-evidence.js';
import { differences, shorten, shown } from './difference.js';
import { contradictionIn } from './failed-answer.js';
import type { Findings, Place } from './finding.js';
import { GradingCheck, type GradingSetting } from './grading-evidence.js';
import type { ObjectShelf } from './objects.js';
import type { PlannedWork } from './planned-work.js';
import { RequestCheck, type StartedRequest } from './request-evidence.js';
import { type RegradeOf, TrialCheck } from './trial-evidence.js';
import { Unchecked } from './unchecked.js';

const MAX_DIFFERENCES = 20;
const MAX_DOUBTFUL = 1000;

export interface EvidenceSetting extends Omit<GradingSetting, 'unchecked'> {
  readonly manifest: Digest;
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
  readonly #shelf: ObjectShelf;
  readonly #findings: Findings;
  readonly #requests: RequestCheck;
  readonly #grading: GradingCheck;
  readonly #captures: CaptureCheck | null;
  readonly #trials: TrialCheck | null;
  /** What redaction kept from being checked. */
  readonly unchecked = new Unchecked();
  /** Failures of the connection under which a whole answer was kept: possible, and worth a look. */
  readonly doubtful: number[] = [];
  readonly systems = new AnsweringSystems();

  constructor(setting: EvidenceSetting) {
    this.#protocol = setting.protocol;
    this.#requests = new RequestCheck({ ...setting, unchecked: this.unchecked });
    this.#grading = new GradingCheck({ ...setting, unchecked: this.unchecked });
    const { runner } = setting.protocol;
    this.#trials =
      runner.adapter === 'harbor' ? new TrialCheck({ ...setting, runner, unchecked: this.unchecked }) : null;
    this.#shelf = setting.shelf;
    this.#findings = setting.findings;
    this.#captures =
      runner.adapter === 'command'
        ? new CaptureCheck(runner, setting.shelf, setting.findings, this.unchecked)
        : null;
  }

  /** Values that were recomputed from candidates. */
  get regraded(): number {
    return this.#grading.regraded;
  }

  /** Checks the request of a started attempt (P17, P18). */
  request(entry: StartedRequest, work: PlannedWork): void {
    this.#requests.check(entry, work);
  }

  /**
   * Checks the end of a stage.
   *
   * @param work what the plan fixes for its slot; null when the slot is not known
   * @param candidate what was being graded, if anything was
   * @param regrade null when the attempt is none
   */
  stage(
    entry: StageEntry,
    work: PlannedWork | null,
    candidate: Digest | null,
    regrade: RegradeOf | null,
  ): void {
    const where = { seq: entry.seq, slot: entry.slot };
    const { result } = entry;
    this.#form(entry, where);
    this.#captures?.check(entry);
    this.#unfinished(entry, where);
    if (work !== null) {
      this.#saysOfNoAnswer(entry, work, where);
      if (this.#trials !== null) {
        this.#streamsNothing(entry, result.kind === 'failure' ? result.signals : null, where);
        this.#trials.check(entry, work, candidate, regrade, where);
      } else if (result.kind === 'candidate') this.#candidate(entry, result, work, where);
      else if (result.kind === 'report') {
        this.#streamsNothing(entry, null, where);
        this.#grading.report(result, work, where);
      } else this.#failure(entry, result, work, candidate, where);
    }
  }

  /** P14: what lay in the place of a candidate goes to grading, unless the rules call what cut its command infrastructure. */
  #unfinished({ stage, result, objects }: StageEntry, where: Place): void {
    if (objects[UNFINISHED] === undefined) return;
    const { runner, attempts } = this.#protocol;
    const isLawful =
      runner.adapter === 'command' &&
      stage === 'generate' &&
      result.kind === 'failure' &&
      isUnfinished(attempts.rules, result.signals);
    if (isLawful) return;
    this.#findings.add({
      code: 'FAILURE_DIFFERS',
      where: { ...where, pointer: `/objects/${UNFINISHED}` },
      message: 'a candidate was left out that should have been graded, or none that could be',
      outcome: true,
    });
  }

  /** Only an answer says how it ended and what it cost; a process says how it ended. */
  #saysOfNoAnswer(entry: StageEntry, { condition }: PlannedWork, where: Place): void {
    const service = this.#protocol.runner.adapter === 'openai';
    if (service && entry.result.kind === 'candidate') return;
    const process = !service && (entry.stage === 'generate' || !isAnswerGrader(condition.grader));
    this.#said(entry, process ? entry.finish_reason : null, null, where);
  }

  #streamsNothing(entry: StageEntry, signals: FailureSignals | null, where: Place): void {
    this.#firstToken(entry, null, where);
    if (signals?.first_token === undefined) return;
    this.#findings.add({
      code: 'FAILURE_DIFFERS',
      where: { ...where, pointer: '/result/signals/first_token' },
      message: 'the signals speak of a token where nothing is streamed',
      evidence: { expected: null, actual: signals.first_token },
    });
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

  #candidate(entry: StageEntry, { candidate }: Result<'candidate'>, work: PlannedWork, where: Place): void {
    const place = { ...where, pointer: '/result/candidate' };
    const { runner } = this.#protocol;
    const { response } = entry.objects;
    if (runner.adapter !== 'openai') this.#streamsNothing(entry, null, where);
    if (runner.adapter !== 'openai' || response === undefined) return;
    const bytes = this.#shelf.read(response, { ...where, pointer: '/objects/response' });
    if (this.#shelf.isRedacted(response)) this.unchecked.add('candidate');
    if (bytes === null) return;
    this.systems.take(work.model, entry.seq, bytes);
    const { answer: reading, firstToken, stoppedAt } = readResponse(bytes, questionOf(runner, work));
    this.#firstToken(entry, firstToken, where);
    if (stoppedAt !== null && stoppedAt !== bytes.length) {
      this.#findings.add({
        code: 'CANDIDATE_DIFFERS',
        where: { ...place, object: response },
        message: `the stop rule fires at byte ${stoppedAt} of the kept stream, which goes on to byte ${bytes.length}`,
        evidence: { expected: stoppedAt, actual: bytes.length },
      });
      return;
    }
    const actual = reading.ok ? digestOf(reading.text) : null;
    if (reading.ok && actual === candidate) {
      this.#grading.answered(candidate, reading.text);
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
    if (finish_reason === finishReason && isSameUsage(usage, counted)) return;
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

  /** When the first token came was measured; that one came is in the kept stream. */
  #firstToken(
    { first_token_seconds: measured, seconds }: StageEntry,
    came: boolean | null,
    where: Place,
  ): void {
    const isDue = came === true;
    if (isDue === (measured !== undefined) && (measured ?? 0) <= seconds) return;
    this.#findings.add({
      code: 'ANSWER_DIFFERS',
      where: { ...where, pointer: '/first_token_seconds' },
      message: isDue
        ? `the kept stream has a first token; the entry says ${measured ?? 'nothing'} of its ${seconds} s`
        : 'a time of a first token where none was kept',
      evidence: { expected: isDue, actual: measured ?? null },
    });
  }

  /** A failure that hides an answer or a report is the way to another try (P11, P13). */
  #failure(
    entry: StageEntry,
    { signals }: Result<'failure'>,
    work: PlannedWork,
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
      if (bytes !== null) this.systems.take(work.model, entry.seq, bytes);
      if (bytes !== null) this.#failedAnswer(bytes, entry, signals, questionOf(runner, work), place);
      else if (response !== undefined && this.#shelf.isRedacted(response)) this.unchecked.add('failure');
    } else this.#streamsNothing(entry, signals, where);
    if (entry.stage === 'grade' && isAnswerGrader(work.condition.grader)) {
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
    if (this.#shelf.isRedacted(rejected)) this.unchecked.add('failure');
    if (bytes === null || candidate === null || !this.#grading.validate(bytes, candidate, work).ok) return;
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
    entry: StageEntry,
    signals: Result<'failure'>['signals'],
    question: Question,
    where: Place,
  ): void {
    this.#firstToken(entry, question.stream ? signals.first_token === true : null, where);
    const contradiction = contradictionIn(signals, bytes, question);
    if (contradiction !== null) {
      const { what, expected, actual } = contradiction;
      this.#findings.add({
        code: 'FAILURE_DIFFERS',
        where,
        message: `${what} is ${shown(actual)} in the entry; the kept answer shows ${shown(expected)}`,
        evidence: { expected, actual },
        outcome: true,
      });
    } else if (isWhole(signals, () => readResponse(bytes, question).answer.ok)) {
      if (this.doubtful.length < MAX_DOUBTFUL) this.doubtful.push(where.seq ?? 0);
    }
  }
}

function isSameUsage(a: Usage | null, b: Usage | null): boolean {
  if (a === null || b === null) return a === b;
  return a.prompt_tokens === b.prompt_tokens && a.completion_tokens === b.completion_tokens;
}

/** Whether a whole answer was kept although its connection failed: possible, and worth a look. */
function isWhole({ http_status, cause }: FailureSignals, isAnswer: () => boolean): boolean {
  return (http_status === 200 || http_status === null) && cause !== 'body_too_large' && isAnswer();
}
