import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { canonicalBytes } from '../../core/canonical-json.js';
import { type Digest, digestOf } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { syncFolder, writeError } from '../../core/files.js';
import type { JsonValue } from '../../core/json.js';
import type { ObjectFolder } from '../../ledger/objects.js';
import type { HarborRunner } from '../../protocol/schema/harbor-runner.js';
import type { Stage } from '../../protocol/schema/signals.js';
import { slotTuple } from '../../slots/slot.js';
import { fillArgv, type SourcePaths } from '../argv.js';
import { generateRecord, gradeRecord } from '../drafts.js';
import type { Watchdog } from '../watchdog.js';
import type { Adapter, GenerateEnd, GradeEnd, LostAttempt, RunningAttempt, Work } from './adapter.js';
import { NOTHING_MORE, secondsSince } from './adapter.js';
import { CAPTURE, captureOf } from './capture.js';
import { endOfStage } from './command-ends.js';
import { type Regrade, trialConfig, trialExpectations, trialName } from './harbor-config.js';
import { collectTrial, type TrialEvidence } from './harbor-evidence.js';
import {
  gradeOfFirst,
  gradeOfRegrade,
  isNoEnd,
  readTrial,
  type TrialGrade,
  verifierSeconds,
} from './harbor-trial.js';
import { damageCode } from './room-damage.js';
import { runStage, type StageExit } from './stage-process.js';
import { readStageRecord, type StageRecord, writeStageRecord } from './stage-record.js';
import { runStop, type StopFailure } from './stop-command.js';

export interface HarborSetting {
  readonly runner: HarborRunner;
  readonly manifest: Digest;
  readonly sources: SourcePaths;
  /** The verified folder of a source, by its name. */
  readonly sourceFolder: (name: string) => string;
  /** Weights and tokenizer of a model, exactly as the gate verified them. */
  readonly modelPaths: (model: string) => { readonly weights: string; readonly tokenizer: string | null };
  /** `ledger/<manifest>/work`: one folder for each attempt. */
  readonly workFolder: string;
  /** Where large output goes. */
  readonly objects: ObjectFolder;
  readonly markPrefix: string;
  readonly watchdog: Watchdog | null;
}

/** A trial of an attempt: the one that makes its candidate, or the one that grades a candidate again. */
type Kind = 'trial' | 'regrade';

/** What a trial's name is made of. */
type Named = Pick<LostAttempt, 'attempt' | 'takenOver'>;

interface Ran {
  readonly evidence: TrialEvidence;
  /** What its process left, and how long it took. */
  readonly end: Rest;
}

/**
 * Runs one Harbor trial for each attempt, in a fresh folder under a fresh name: agent and verifier in one process, so
 * that both stages are read from what that one trial left. A regrade is a trial of its own, whose agent does nothing but
 * apply the candidate.
 */
export class HarborAdapter implements Adapter {
  readonly gradesAtOnce = true;
  readonly #setting: HarborSetting;
  /** Trials that have ended and whose grading is not recorded yet. */
  readonly #ended = new Map<string, Ran>();

  constructor(setting: HarborSetting) {
    this.#setting = setting;
  }

  request(work: Work, attempt: string): Buffer {
    const { runner, manifest, modelPaths } = this.#setting;
    return canonicalBytes(trialRequest(runner, manifest, work, attempt, modelPaths(work.model)));
  }

  async generate(attempt: RunningAttempt, signal: AbortSignal): Promise<GenerateEnd> {
    const ran = await this.#run('trial', attempt, null, signal);
    if (ran === null) return { kind: 'abandoned' };
    const reading = this.#read(attempt, ran.evidence, null);
    const verifying = reading.kind === 'made' ? verifierSeconds(ran.evidence.bytes.result) : 0;
    const rest = { ...ran.end, seconds: Math.max(0, ran.end.seconds - verifying) };
    if (reading.kind === 'failure') return { kind: 'failure', signals: reading.signals, ...rest };
    this.#ended.set(attempt.attempt, ran);
    return { kind: 'candidate', bytes: candidateBytes(ran.evidence), ...rest };
  }

  async grade(attempt: RunningAttempt, candidate: Buffer, signal: AbortSignal): Promise<GradeEnd> {
    const digest = digestOf(candidate);
    if (attempt.kind === 'regrade') {
      const ran = await this.#run('regrade', attempt, candidate, signal);
      if (ran === null) return { kind: 'abandoned' };
      const regrade = { candidate: digest, takenOver: attempt.takenOver };
      return gradeEnd(gradeOfRegrade(this.#read(attempt, ran.evidence, regrade)), ran.end);
    }
    const ran = this.#ended.get(attempt.attempt);
    this.#ended.delete(attempt.attempt);
    const evidence = ran?.evidence ?? this.#collect('trial', attempt, null);
    const grade = gradeOfFirst(this.#read(attempt, evidence, null), digest);
    return gradeEnd(grade, { ...unseenEnd(evidence), finishReason: ran?.end.finishReason ?? null });
  }

  async mark(attempt: string, record: StageRecord): Promise<void> {
    try {
      await writeStageRecord(this.#home(attempt), record);
    } catch (error) {
      // A trial that removed its own folder ends by itself alone: its entry follows, and only a crash before it asks here.
      if (damageCode(error) === null) throw error;
    }
    // The file is durable in its folder, but that folder's own name is not.
    await syncFolder(this.#setting.workFolder).catch((error: unknown) => {
      throw writeError(this.#setting.workFolder, error);
    });
  }

  async recover(stage: Stage, lost: LostAttempt): Promise<StageRecord | null> {
    const record = await readStageRecord(this.#home(lost.attempt), stage, lost.attempt);
    return record ?? this.#unseen(stage, lost);
  }

  async endLeftovers(lost: Named): Promise<void> {
    await this.#stopOf(lost)?.();
  }

  /**
   * Harbor writes a result at the very end of a trial: one that is whole and of this trial is the trial's end, although
   * nobody saw it, and what it says counts (law 3). Without one it ends as a lost attempt does.
   */
  #unseen(stage: Stage, lost: LostAttempt): StageRecord | null {
    const { attempt, work, candidate } = lost;
    const names = { attempt, slot: work.slot.id };
    if (stage === 'generate') {
      const evidence = this.#collect('trial', lost, null);
      const reading = this.#read(lost, evidence, null);
      if (isNoEnd(reading)) return null;
      const rest = { ...NOTHING_MORE, objects: evidence.objects, seconds: 0 };
      return reading.kind === 'failure'
        ? generateRecord(names, { ...reading, ...rest })
        : generateRecord(names, { kind: 'candidate', bytes: candidateBytes(evidence), ...rest });
    }
    const grade = candidate === null ? null : this.#unseenGrade(lost, candidate);
    return candidate === null || grade === null ? null : gradeRecord(names, candidate, grade);
  }

  #unseenGrade(lost: LostAttempt, candidate: Digest): Ended | null {
    const first = this.#collect('trial', lost, null);
    const reading = this.#read(lost, first, null);
    if (!isNoEnd(reading)) return gradeEnd(gradeOfFirst(reading, candidate), unseenEnd(first));
    const again = this.#collect('regrade', lost, null);
    const regraded = this.#read(lost, again, { candidate, takenOver: lost.takenOver });
    return isNoEnd(regraded) ? null : gradeEnd(gradeOfRegrade(regraded), unseenEnd(again));
  }

  #read(
    { attempt, work }: Pick<RunningAttempt, 'attempt' | 'work'>,
    evidence: TrialEvidence,
    regrade: Regrade | null,
  ) {
    const { runner, manifest } = this.#setting;
    return readTrial(evidence, trialExpectations(runner, manifest, attempt, work, regrade));
  }

  #collect(kind: Kind, named: Named, exit: StageExit | null): TrialEvidence {
    const { runner } = this.#setting;
    const { output_bytes } = kind === 'trial' ? runner.trial : (runner.regrade ?? runner.trial);
    const trial = this.#nameOf(kind, named);
    return collectTrial(this.#trials(kind, named.attempt), trial, runner.candidate.file, output_bytes, exit);
  }

  #nameOf(kind: Kind, { attempt, takenOver }: Named): string {
    return trialName(this.#setting.manifest, attempt, kind === 'trial' ? null : takenOver);
  }

  #home(attempt: string): string {
    return join(this.#setting.workFolder, attempt);
  }

  #trials(kind: Kind, attempt: string): string {
    return join(this.#home(attempt), kind);
  }

  /** Runs a trial where nothing has written before (F-83); null when it was stopped from outside. */
  async #run(
    kind: Kind,
    running: RunningAttempt,
    candidate: Buffer | null,
    signal: AbortSignal,
  ): Promise<Ran | null> {
    const { runner, markPrefix, watchdog, objects } = this.#setting;
    const { attempt, work } = running;
    const command = kind === 'trial' ? runner.trial : runner.regrade;
    if (command === undefined) throw noRegrade();
    const trials = this.#trials(kind, attempt);
    const input = `${trials}.input`;
    // Attempt ids are no secret: an earlier candidate may have been here.
    await freshFolders(this.#home(attempt), trials, input);
    const paths = {
      ...this.#values(running.work),
      trial: this.#nameOf(kind, running),
      config: join(input, 'trial.json'),
      trials,
      task: this.#taskFolder(work),
      candidate: candidate === null ? undefined : join(input, 'candidate'),
    };
    if (candidate !== null) await writeInput(join(input, 'candidate'), candidate);
    const config = trialConfig(runner, work, paths.candidate ?? null) as Readonly<Record<string, JsonValue>>;
    const whole = { ...config, trial_name: paths.trial, trials_dir: trials, task: { path: paths.task } };
    await writeInput(paths.config, canonicalBytes(whole));
    const start = performance.now();
    const stage = {
      argv: fillArgv(command.argv, paths, this.#setting.sources),
      cwd: trials,
      env: command.env ?? [],
      mark: `${markPrefix}.${attempt}-${kind}`,
      wallMs: command.wall_s * 1000,
      graceMs: runner.grace_s * 1000,
      outputBytes: command.output_bytes,
      spoolFolder: input,
      stop: this.#stopOf(running),
      watchdog,
    };
    const exit = await runStage(stage, signal);
    if (exit === null) return null;
    const end = await endOfStage(exit, secondsSince(start), objects);
    const capture = captureOf(exit, {});
    const evidence = this.#collect(kind, running, exit);
    const kept = { ...end.objects, ...(capture === null ? {} : { [CAPTURE]: capture }), ...evidence.objects };
    return { evidence, end: { ...end, objects: kept } };
  }

  /** Ends what the last trial of an attempt may leave outside of its processes: its containers. */
  #stopOf(named: Named): (() => Promise<StopFailure | null>) | null {
    const { runner, markPrefix, watchdog, sources, workFolder } = this.#setting;
    const { stop, trial } = runner;
    if (stop === undefined) return null;
    return () =>
      runStop({
        argv: fillArgv(stop.argv, { trial: this.#nameOf('regrade', named) }, sources),
        cwd: workFolder,
        env: trial.env ?? [],
        mark: `${markPrefix}.${named.attempt}-stop`,
        limitMs: stop.wall_s * 1000,
        watchdog,
      });
  }

  #values({ model }: Work) {
    const { weights, tokenizer } = this.#setting.modelPaths(model);
    return { weights, tokenizer: tokenizer ?? undefined };
  }

  #taskFolder({ fields }: Work): string {
    const { tasks } = this.#setting.runner;
    return join(this.#setting.sourceFolder(tasks.source), String(fields[tasks.folder]));
  }
}

/** The request of an attempt, as the ledger has it: all that the plan fixes of its trial. */
export function trialRequest(
  runner: HarborRunner,
  manifest: Digest,
  work: Work,
  attempt: string,
  places: { readonly weights: JsonValue; readonly tokenizer: JsonValue },
): object {
  const { trial, taskDigest, config } = trialExpectations(runner, manifest, attempt, work, null);
  return {
    boundbook: 1,
    stage: 'trial',
    attempt,
    slot: { id: work.slot.id, tuple: slotTuple(work.slot) },
    model: { ...places, name: work.model },
    task: { id: work.slot.task, fields: work.fields, digest: taskDigest },
    trial,
    config,
    sampling_seed: work.samplingSeed,
  };
}

type Ended = Exclude<GradeEnd, { kind: 'abandoned' }>;
type Rest = Omit<Extract<GradeEnd, { kind: 'failure' }>, 'kind' | 'signals'>;

function gradeEnd(grade: TrialGrade, rest: Rest): Ended {
  return { ...grade, ...rest };
}

/** What is kept of the grading in a trial whose process this stage did not run. */
function unseenEnd(evidence: TrialEvidence): Rest {
  return { ...NOTHING_MORE, objects: evidence.objects, seconds: verifierSeconds(evidence.bytes.result) };
}

/** An absent file that is no failure is an empty patch. */
function candidateBytes({ bytes }: TrialEvidence): Buffer {
  return bytes.candidate ?? Buffer.alloc(0);
}

function noRegrade(): BoundbookError {
  return new BoundbookError(
    'PROTOCOL_INVALID',
    'a regrade is due, and the runner declares no regrade trial',
    {
      hint: 'Declare runner.regrade, or set attempts.regrades to 0, and freeze again.',
    },
  );
}

/** Inputs are made anew for each trial, so they need not be durable. */
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
