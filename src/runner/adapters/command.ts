import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { failureSignals } from '../../attempts/signals.js';
import { canonicalBytes } from '../../core/canonical-json.js';
import { type Digest, digestOf } from '../../core/digest.js';
import { syncFolder, writeError } from '../../core/files.js';
import { expectedTests } from '../../grading/reference.js';
import type { ReportSchema } from '../../grading/report-schema.js';
import { faultText, validateReport } from '../../grading/validate-report.js';
import type { CommandRunner, Stage } from '../../protocol/schema.js';
import { slotTuple } from '../../slots/slot.js';
import { fillArgv, type SourcePaths } from '../argv.js';
import { gradeRecord } from '../drafts.js';
import { renderPrompt } from '../prompt.js';
import type { Watchdog } from '../watchdog.js';
import type { Adapter, GenerateEnd, GradeEnd, LostAttempt, RunningAttempt, Work } from './adapter.js';
import { NOTHING_MORE, secondsSince } from './adapter.js';
import { gradeText } from './answer-grading.js';
import { collectFile } from './collect.js';
import { endOfStage, exitSignals } from './command-ends.js';
import { runStage, type StageExit } from './stage-process.js';
import { readStageRecord, type StageRecord, writeStageRecord } from './stage-record.js';

export interface CommandSetting {
  readonly runner: CommandRunner;
  readonly sources: SourcePaths;
  /** Weights and tokenizer of a model, exactly as the gate verified them. */
  readonly modelPaths: (model: string) => { readonly weights: string; readonly tokenizer: string | null };
  /** The declared report schema of a condition, by its name in the protocol. */
  readonly schemaOf: (work: Work) => ReportSchema | null;
  /** `ledger/<manifest>/work`: one folder for each attempt. */
  readonly workFolder: string;
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

  constructor(setting: CommandSetting) {
    this.#setting = setting;
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
    const start = performance.now();
    const exit = await this.#run('generate', attempt, attempt.request ?? Buffer.alloc(0), null, signal);
    if (exit === null) return { kind: 'abandoned' };
    const rest = endOfStage(exit, secondsSince(start));
    const folder = this.#folder(attempt.attempt, 'generate');
    const collected = collectFile(folder, this.#setting.runner.candidate, CANDIDATE_BYTES);
    // P14: a candidate that is there goes on to grading, however the process ended.
    if (collected.kind === 'file') return { kind: 'candidate', bytes: collected.bytes, ...rest };
    const signals = exitSignals(exit) ?? {
      phase: 'collect' as const,
      cause: collected.kind === 'too_large' ? ('body_too_large' as const) : ('candidate_missing' as const),
      exit_status: exit.exit_status,
      text: missingText(this.#setting.runner.candidate, collected),
    };
    return { kind: 'failure', signals: failureSignals({ stage: 'generate', ...signals }), ...rest };
  }

  async grade(attempt: RunningAttempt, candidate: Buffer, signal: AbortSignal): Promise<GradeEnd> {
    const { work } = attempt;
    const { grader } = work.condition;
    if (grader.kind !== 'report') return gradeText(grader, work, candidate);
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
    const rest = endOfStage(exit, secondsSince(start));
    const collected = collectFile(this.#folder(attempt.attempt, 'grade'), REPORT, REPORT_BYTES);
    if (collected.kind !== 'file') {
      const signals = exitSignals(exit) ?? {
        phase: 'collect' as const,
        cause: collected.kind === 'absent' ? ('report_missing' as const) : ('report_invalid' as const),
        exit_status: exit.exit_status,
        text: missingText(REPORT, collected),
      };
      return { kind: 'failure', signals: failureSignals({ stage: 'grade', ...signals }), ...rest };
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
    });
    return {
      kind: 'failure',
      signals,
      ...rest,
      objects: { ...rest.objects, rejected_report: collected.bytes },
    };
  }

  async mark(attempt: string, record: StageRecord): Promise<void> {
    await writeStageRecord(this.#home(attempt), record);
    // The file is durable in its folder, but that folder's own name is not.
    await syncFolder(this.#setting.workFolder).catch((error: unknown) => {
      throw writeError(this.#setting.workFolder, error);
    });
  }

  async recover(stage: Stage, lost: LostAttempt): Promise<StageRecord | null> {
    const record = await readStageRecord(this.#home(lost.attempt), stage, lost.attempt);
    return record ?? (stage === 'grade' ? this.#unseenReport(lost) : null);
  }

  /**
   * A report counts however its process ended, so one that is valid counts although nobody saw the end (law 3). A
   * candidate can't be told from a part of one without it.
   */
  #unseenReport({ attempt, work, candidate }: LostAttempt): StageRecord | null {
    const { grader } = work.condition;
    if (grader.kind !== 'report' || candidate === null) return null;
    const collected = collectFile(this.#folder(attempt, 'grade'), REPORT, REPORT_BYTES);
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

  #home(attempt: string): string {
    return join(this.#setting.workFolder, attempt);
  }

  /** The output folder of a stage. */
  #folder(attempt: string, stage: Stage): string {
    return join(this.#home(attempt), stage);
  }

  /** Runs a stage in a fresh folder that nothing has written to before (F-83). */
  async #run(
    stage: Stage,
    { attempt, work }: RunningAttempt,
    request: Buffer,
    candidate: Buffer | null,
    signal: AbortSignal,
  ): Promise<StageExit | null> {
    const { runner, sources, markPrefix, watchdog } = this.#setting;
    const output = this.#folder(attempt, stage);
    const input = `${output}.input`;
    const paths = {
      request: join(input, 'request.json'),
      task: join(input, 'task.json'),
      candidate: candidate === null ? undefined : join(input, 'candidate'),
      output,
    };
    await freshFolders(output, input);
    await writeInput(paths.request, request);
    await writeInput(paths.task, canonicalBytes({ id: work.slot.task, fields: work.fields }));
    if (candidate !== null) await writeInput(join(input, 'candidate'), candidate);
    const command = runner[stage];
    return runStage(
      {
        argv: fillArgv(command.argv, paths, sources),
        cwd: output,
        env: command.env ?? [],
        mark: `${markPrefix}.${attempt}-${stage}`,
        wallMs: command.wall_s * 1000,
        graceMs: runner.grace_s * 1000,
        outputBytes: command.output_bytes,
        watchdog,
      },
      signal,
    );
  }
}

/** Inputs are made anew for each stage, so they need not be durable. */
async function writeInput(path: string, bytes: Buffer): Promise<void> {
  await writeFile(path, bytes, { flag: 'wx' }).catch((error: unknown) => {
    throw writeError(path, error);
  });
}

async function freshFolders(...folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    try {
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder, { recursive: true });
    } catch (error) {
      throw writeError(folder, error);
    }
  }
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
