import { join } from 'node:path';
import { failureSignals } from '../../attempts/signals.js';
import { canonicalBytes } from '../../core/canonical-json.js';
import { type Digest, digestOf } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { isAnswerGrader } from '../../grading/answer.js';
import { expectedTests } from '../../grading/reference.js';
import type { ReportSchema } from '../../grading/report-schema.js';
import { faultText, validateReport } from '../../grading/validate-report.js';
import type { ObjectFolder } from '../../ledger/objects.js';
import type { CommandRunner } from '../../protocol/schema/command-runner.js';
import { STAGES, type Stage } from '../../protocol/schema/signals.js';
import { slotTuple } from '../../slots/slot.js';
import { fillArgv, type SourcePaths } from '../argv.js';
import type { Cgroups } from '../cgroup.js';
import { gradeRecord } from '../drafts.js';
import { renderPrompt } from '../prompt.js';
import type { Watchdog } from '../watchdog.js';
import type { Adapter, GenerateEnd, GradeEnd, LostAttempt, RunningAttempt, Work } from './adapter.js';
import { NOTHING_MORE, secondsSince } from './adapter.js';
import { gradeText } from './answer-grading.js';
import { collectArtifacts } from './artifacts.js';
import { AttemptRooms } from './attempt-rooms.js';
import { CAPTURE, captureOf } from './capture.js';
import { collectFile } from './collect.js';
import { endOfStage, exitSignals, memorySignals } from './command-ends.js';
import { runStage, type StageExit } from './stage-process.js';
import type { StageRecord } from './stage-record.js';
import { runStop, type StopFailure } from './stop-command.js';

export interface CommandSetting {
  readonly runner: CommandRunner;
  readonly sources: SourcePaths;
  /** Weights and tokenizer of a model, exactly as the gate verified them. */
  readonly modelPaths: (model: string) => { readonly weights: string; readonly tokenizer: string | null };
  /** The declared report schema of a condition, by its name in the protocol. */
  readonly schemaOf: (work: Work) => ReportSchema | null;
  /** `ledger/<manifest>/work`: one folder for each attempt. */
  readonly workFolder: string;
  /** Where large output goes. */
  readonly objects: ObjectFolder;
  /** Control groups for the stages, where the protocol declares them. */
  readonly cgroups: Cgroups | null;
  readonly markPrefix: string;
  readonly watchdog: Watchdog | null;
}

const CANDIDATE_BYTES = 256 * 2 ** 20;
const REPORT_BYTES = 16 * 2 ** 20;
const REPORT = 'report.json';
/** Of a stage whose end nobody saw. */
const UNSEEN = { ...NOTHING_MORE, seconds: 0 } as const;

type ReportGrader = Extract<Work['condition']['grader'], { kind: 'report' }>;

/** Runs two commands for each attempt: one that makes a candidate, one that grades it in a place of its own. */
export class CommandAdapter implements Adapter {
  readonly gradesAtOnce = false;
  readonly #setting: CommandSetting;
  readonly #rooms: AttemptRooms;

  constructor(setting: CommandSetting) {
    this.#setting = setting;
    this.#rooms = new AttemptRooms(setting.workFolder);
  }

  request(work: Work, attempt: string): Buffer {
    const { slot, condition, fields, model, samplingSeed } = work;
    const { weights, tokenizer } = this.#setting.modelPaths(model);
    return canonicalBytes({
      boundbook: 1,
      stage: 'generate',
      attempt,
      slot: { id: slot.id, tuple: slotTuple(slot) },
      model: { name: model, weights, tokenizer },
      task: { id: slot.task, fields },
      prompt: { ...renderPrompt(condition, fields) },
      decoding: condition.decoding,
      reasoning: condition.reasoning ?? null,
      execution: condition.execution ?? {},
      sampling_seed: samplingSeed,
    });
  }

  async generate(attempt: RunningAttempt, signal: AbortSignal): Promise<GenerateEnd> {
    const { runner, objects } = this.#setting;
    const id = attempt.attempt;
    const start = performance.now();
    const exit = await this.#run('generate', attempt, attempt.request ?? Buffer.alloc(0), null, signal);
    if (exit === null) return { kind: 'abandoned' };
    await this.#rooms.clearBeside(id);
    const folder = this.#rooms.output(id, 'generate');
    const artifacts = await collectArtifacts(folder, runner.artifacts ?? [], objects);
    const end = await endOfStage(exit, secondsSince(start), objects);
    const capture = captureOf(exit, artifacts.words);
    const kept = {
      ...end.objects,
      ...artifacts.objects,
      ...(capture === null ? {} : { [CAPTURE]: capture }),
    };
    const rest = { ...end, objects: kept };
    const collected = collectFile(folder, runner.candidate, CANDIDATE_BYTES);
    // P14: a candidate that is there goes on to grading, however the process ended.
    if (collected.kind === 'file') return { kind: 'candidate', bytes: collected.bytes, ...rest };
    const observed = exitSignals(exit) ?? {
      phase: 'collect' as const,
      cause: collected.kind === 'too_large' ? ('body_too_large' as const) : ('candidate_missing' as const),
      exit_status: exit.exit_status,
      text: missingText(runner.candidate, collected),
    };
    const signals = failureSignals({ stage: 'generate', ...observed, ...memorySignals(exit) });
    return { kind: 'failure', signals, ...rest };
  }

  async grade(attempt: RunningAttempt, candidate: Buffer, signal: AbortSignal): Promise<GradeEnd> {
    const { work } = attempt;
    const { grader } = work.condition;
    if (isAnswerGrader(grader)) return gradeText(grader, work, candidate);
    if (grader.kind !== 'report') throw notGraded(grader.kind);
    const start = performance.now();
    const digest = digestOf(candidate);
    // The grader is told nothing of arm, model or seed: it has no use for them.
    const request = canonicalBytes({
      boundbook: 1,
      stage: 'grade',
      attempt: attempt.attempt,
      task: { id: work.slot.task, fields: work.fields },
      candidate: digest,
      expected_tests: expectedTests(grader, work.fields),
      reward: grader.reward,
    });
    const exit = await this.#run('grade', attempt, request, candidate, signal);
    if (exit === null) return { kind: 'abandoned' };
    const end = await endOfStage(exit, secondsSince(start), this.#setting.objects);
    const capture = captureOf(exit, {});
    const rest = { ...end, objects: { ...end.objects, ...(capture === null ? {} : { [CAPTURE]: capture }) } };
    const collected = collectFile(this.#rooms.output(attempt.attempt, 'grade'), REPORT, REPORT_BYTES);
    if (collected.kind !== 'file') {
      const observed = exitSignals(exit) ?? {
        phase: 'collect' as const,
        cause: collected.kind === 'absent' ? ('report_missing' as const) : ('report_invalid' as const),
        exit_status: exit.exit_status,
        text: missingText(REPORT, collected),
      };
      const signals = failureSignals({ stage: 'grade', ...observed, ...memorySignals(exit) });
      return { kind: 'failure', signals, ...rest };
    }
    const verdict = this.#validate(collected.bytes, grader, work, digest);
    if (verdict.ok) return { kind: 'report', bytes: collected.bytes, value: verdict.value, ...rest };
    const signals = failureSignals({
      stage: 'grade',
      phase: 'collect',
      cause: 'report_invalid',
      exit_status: exit.exit_status,
      signal: exit.signal,
      text: faultText(verdict.faults),
      ...memorySignals(exit),
    });
    return {
      kind: 'failure',
      signals,
      ...rest,
      objects: { ...rest.objects, rejected_report: collected.bytes },
    };
  }

  mark(attempt: string, record: StageRecord): Promise<void> {
    return this.#rooms.markEnd(attempt, record);
  }

  async recover(stage: Stage, lost: LostAttempt): Promise<StageRecord | null> {
    const record = await this.#rooms.endOf(lost.attempt, stage);
    return record ?? (stage === 'grade' ? await this.#unseenReport(lost) : null);
  }

  async endLeftovers({ attempt }: Pick<LostAttempt, 'attempt'>): Promise<void> {
    for (const stage of STAGES) {
      await this.#stopOf(stage, attempt)?.();
      await this.#setting.cgroups?.clear(containerName(attempt, stage));
    }
  }

  /**
   * A report counts however its process ended, so one that is valid counts although nobody saw the end (law 3). A
   * candidate can't be told from a part of one without it. One that was there before grading began is nobody's.
   */
  async #unseenReport({ attempt, work, candidate }: LostAttempt): Promise<StageRecord | null> {
    const { grader } = work.condition;
    if (grader.kind !== 'report' || candidate === null) return null;
    if (!(await this.#rooms.hasBegun(attempt, candidate))) return null;
    const collected = collectFile(this.#rooms.output(attempt, 'grade'), REPORT, REPORT_BYTES);
    if (collected.kind !== 'file') return null;
    const verdict = this.#validate(collected.bytes, grader, work, candidate);
    if (!verdict.ok) return null;
    const { bytes } = collected;
    const names = { attempt, slot: work.slot.id };
    return gradeRecord(names, candidate, { kind: 'report', bytes, value: verdict.value, ...UNSEEN });
  }

  #validate(bytes: Buffer, grader: ReportGrader, work: Work, candidate: Digest) {
    return validateReport(bytes, {
      task: work.slot.task,
      candidate,
      tests: expectedTests(grader, work.fields),
      reward: grader.reward,
      schema: this.#setting.schemaOf(work),
    });
  }

  async #run(
    stage: Stage,
    running: RunningAttempt,
    request: Buffer,
    candidate: Buffer | null,
    signal: AbortSignal,
  ): Promise<StageExit | null> {
    const { runner, sources, cgroups, watchdog } = this.#setting;
    const { attempt, work } = running;
    const output = this.#rooms.output(attempt, stage);
    const input = this.#rooms.input(attempt, stage);
    await this.#rooms.prepare(attempt, stage, {
      'request.json': request,
      'task.json': canonicalBytes({ id: work.slot.task, fields: work.fields }),
      ...(candidate === null ? {} : { candidate }),
    });
    if (candidate !== null) {
      await this.#rooms.markGrading(attempt, digestOf(candidate), running.request === null);
    }
    const paths = {
      request: join(input, 'request.json'),
      task: join(input, 'task.json'),
      candidate: candidate === null ? undefined : join(input, 'candidate'),
      output,
      container: containerName(attempt, stage),
    };
    const command = runner[stage];
    return runStage(
      {
        argv: fillArgv(command.argv, paths, sources),
        cwd: output,
        env: command.env ?? [],
        mark: this.#mark(attempt, stage),
        wallMs: command.wall_s * 1000,
        idleMs: command.idle_s === undefined ? null : command.idle_s * 1000,
        graceMs: runner.grace_s * 1000,
        outputBytes: command.output_bytes,
        spoolFolder: this.#rooms.home(attempt),
        stop: this.#stopOf(stage, attempt),
        cgroup: cgroups?.make(containerName(attempt, stage)) ?? null,
        watchdog,
      },
      signal,
    );
  }

  #mark(attempt: string, stage: string): string {
    return `${this.#setting.markPrefix}.${attempt}-${stage}`;
  }

  /** Runs the stop command of a stage; null when none is declared. */
  #stopOf(stage: Stage, attempt: string): (() => Promise<StopFailure | null>) | null {
    const { runner, sources, workFolder, watchdog } = this.#setting;
    const { stop, env = [] } = runner[stage];
    if (stop === undefined) return null;
    return async () => {
      const failure = await runStop({
        argv: fillArgv(stop, { container: containerName(attempt, stage) }, sources),
        cwd: workFolder,
        env,
        mark: this.#mark(attempt, `${stage}-stop`),
        limitMs: runner.grace_s * 1000,
        watchdog,
      });
      if (failure !== null) await this.#rooms.note(attempt, `${stage}.stop-failed`, { ...failure });
      return failure;
    };
  }
}

function notGraded(kind: string): BoundbookError {
  return new BoundbookError('PROTOCOL_INVALID', `the command adapter does not grade by "${kind}"`, {
    hint: 'Use the grader kind report.',
  });
}

/** The name by which a container, or a control group, of a stage is found again. */
function containerName(attempt: string, stage: Stage): string {
  return `boundbook-${attempt}-${stage}`;
}

function missingText(name: string, collected: Exclude<ReturnType<typeof collectFile>, { kind: 'file' }>) {
  switch (collected.kind) {
    case 'absent':
      return `no file ${name}`;
    case 'refused':
      return collected.reason;
    case 'too_large':
      return `${name} has ${collected.size} bytes`;
  }
}
