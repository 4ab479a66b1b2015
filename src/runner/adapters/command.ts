import { canonicalBytes } from '../../core/canonical-json.js';
import { BoundbookError } from '../../core/errors.js';
import { isAnswerGrader } from '../../grading/answer.js';
import type { ReportSchema } from '../../grading/report-schema.js';
import type { ObjectFolder } from '../../ledger/objects.js';
import type { CommandRunner } from '../../protocol/schema/command-runner.js';
import { STAGES, type Stage } from '../../protocol/schema/signals.js';
import { slotTuple } from '../../slots/slot.js';
import type { SourcePaths } from '../argv.js';
import type { Cgroups } from '../cgroup.js';
import { generateRecord, gradeRecord } from '../drafts.js';
import { renderPrompt } from '../prompt.js';
import type { Watchdog } from '../watchdog.js';
import type { Adapter, GenerateEnd, GradeEnd, LostAttempt, RunningAttempt, Work } from './adapter.js';
import { NOTHING_MORE } from './adapter.js';
import { gradeText } from './answer-grading.js';
import { collectArtifacts, refusedArtifacts } from './artifacts.js';
import { AttemptRooms } from './attempt-rooms.js';
import { collectFile } from './collect.js';
import { CommandStage } from './command-stage.js';
import { type Graded, GradeStage, type ReportGrader } from './grade-stage.js';
import { cutSignals, damagedEnd, damageSignals, leftBy, missingSignals, missingText } from './stage-end.js';
import type { StageRecord } from './stage-record.js';

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
/** Of a stage whose end nobody saw. */
const UNSEEN = { ...NOTHING_MORE, seconds: 0 } as const;

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

  generate(attempt: RunningAttempt, signal: AbortSignal): Promise<GenerateEnd> {
    const { runner, objects } = this.#setting;
    const { artifacts = [], candidate } = runner;
    const request = attempt.request ?? Buffer.alloc(0);
    const task = taskOf(attempt.work);
    const input = { attempt: attempt.attempt, task, request, candidate: null, begins: 'new' } as const;
    return this.#stage('generate').run(input, signal, async (ran) => {
      const { exit, room, damage } = ran;
      if (damage !== null) {
        const rest = await leftBy(ran, refusedArtifacts(artifacts, damage), objects);
        return { kind: 'failure', signals: damageSignals('generate', damage, exit), ...rest };
      }
      const rest = await leftBy(ran, await collectArtifacts(room.outputFile, artifacts, objects), objects);
      const collected = collectFile(room.outputFile, candidate, CANDIDATE_BYTES);
      if (collected.kind === 'file') {
        const { bytes } = collected;
        const cut = cutSignals('generate', exit);
        return { kind: 'candidate', bytes, ...(cut === null ? {} : { cut }), ...rest };
      }
      const cause = collected.kind === 'too_large' ? 'body_too_large' : 'candidate_missing';
      const signals = missingSignals('generate', exit, cause, missingText(candidate, collected));
      return { kind: 'failure', signals, ...rest };
    });
  }

  async grade(attempt: RunningAttempt, candidate: Buffer, signal: AbortSignal): Promise<GradeEnd> {
    const { work } = attempt;
    const { grader } = work.condition;
    if (isAnswerGrader(grader)) return gradeText(grader, work, candidate);
    if (grader.kind !== 'report') throw notGraded(grader.kind);
    const graded = this.#graded(work, attempt.attempt, grader);
    const { request, takenOver } = attempt;
    const begins = request !== null ? 'continued' : takenOver === null ? 'new' : 'taken_over';
    return this.#grading().grade(graded, candidate, begins, signal);
  }

  mark(attempt: string, record: StageRecord): Promise<void> {
    return this.#rooms.markEnd(attempt, record);
  }

  async recover(stage: Stage, lost: LostAttempt): Promise<StageRecord | null> {
    const record = await this.#rooms.endOf(lost.attempt, stage);
    if (record !== null) return record;
    return stage === 'grade' ? this.#unseenReport(lost) : this.#unseenDamage(lost);
  }

  async endLeftovers({ attempt }: Pick<LostAttempt, 'attempt'>): Promise<void> {
    for (const stage of STAGES) await this.#stage(stage).endLeftovers(attempt);
  }

  /** A candidate can't be told from a part of one without its end; a report can. */
  async #unseenReport({ attempt, work, candidate }: LostAttempt): Promise<StageRecord | null> {
    const { grader } = work.condition;
    if (grader.kind !== 'report' || candidate === null) return null;
    const report = await this.#grading().unseen(this.#graded(work, attempt, grader), candidate);
    if (report === null) return null;
    return gradeRecord({ attempt, slot: work.slot.id }, candidate, { kind: 'report', ...report, ...UNSEEN });
  }

  /** A room that was exchanged or removed while nobody looked is no sign that nothing was made in it. */
  async #unseenDamage({ attempt, work }: LostAttempt): Promise<StageRecord | null> {
    const damage = await this.#rooms.damageTo(attempt, 'generate');
    if (damage === null) return null;
    const end = damagedEnd('generate', damage, this.#setting.runner.artifacts ?? [], 0);
    return generateRecord({ attempt, slot: work.slot.id }, end);
  }

  #grading(): GradeStage {
    const { objects } = this.#setting;
    return new GradeStage({ command: this.#stage('grade'), rooms: this.#rooms, objects });
  }

  #graded(work: Work, attempt: string, grader: ReportGrader): Graded {
    return { attempt, task: taskOf(work), grader, schema: this.#setting.schemaOf(work) };
  }

  #stage(stage: Stage): CommandStage {
    const { runner, sources, workFolder, cgroups, markPrefix, watchdog } = this.#setting;
    return new CommandStage({
      stage,
      command: runner[stage],
      artifacts: stage === 'generate' ? (runner.artifacts ?? []) : [],
      graceS: runner.grace_s,
      sources,
      workFolder,
      rooms: this.#rooms,
      cgroups,
      markPrefix,
      watchdog,
    });
  }
}

function taskOf({ slot, fields }: Work): Graded['task'] {
  return { id: slot.task, fields };
}

function notGraded(kind: string): BoundbookError {
  return new BoundbookError('PROTOCOL_INVALID', `the command adapter does not grade by "${kind}"`, {
    hint: 'Use the grader kind report.',
  });
}
