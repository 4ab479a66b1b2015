import { join } from 'node:path';
import { canonicalBytes } from '../../core/canonical-json.js';
import { digestOf } from '../../core/digest.js';
import type { JsonObject } from '../../core/json.js';
import type { CommandRunner } from '../../protocol/schema/command-runner.js';
import type { Stage } from '../../protocol/schema/signals.js';
import { fillArgv, type SourcePaths } from '../argv.js';
import type { Cgroups } from '../cgroup.js';
import type { Watchdog } from '../watchdog.js';
import type { AttemptRooms } from './attempt-rooms.js';
import { runStage, type StageExit } from './stage-process.js';
import { runStop, type StopFailure } from './stop-command.js';

export interface CommandStageSetting {
  readonly stage: Stage;
  readonly command: CommandRunner[Stage];
  /** Seconds between SIGTERM and SIGKILL, and for a stop command. */
  readonly graceS: number;
  readonly sources: SourcePaths;
  /** Where the stop command runs. */
  readonly workFolder: string;
  readonly rooms: AttemptRooms;
  /** Control groups, where they are declared. */
  readonly cgroups: Cgroups | null;
  readonly markPrefix: string;
  readonly watchdog: Watchdog | null;
}

/** What the command of a stage is given. */
export interface StageInput {
  readonly attempt: string;
  readonly task: { readonly id: string; readonly fields: JsonObject };
  readonly request: Buffer;
  /** What is to be graded; null while a candidate is made. */
  readonly candidate: Buffer | null;
  /** Nothing of this attempt is durable yet. */
  readonly isNew: boolean;
}

/** Runs the declared command of one stage, each time in empty folders of its attempt. */
export class CommandStage {
  readonly #setting: CommandStageSetting;

  constructor(setting: CommandStageSetting) {
    this.#setting = setting;
  }

  /** @returns null when it was stopped from outside */
  async run(input: StageInput, signal: AbortSignal): Promise<StageExit | null> {
    const { stage, command, graceS, sources, rooms, cgroups, watchdog } = this.#setting;
    const { attempt, task, request, candidate } = input;
    const output = rooms.output(attempt, stage);
    const folder = rooms.input(attempt, stage);
    await rooms.prepare(attempt, stage, {
      'request.json': request,
      'task.json': canonicalBytes(task),
      ...(candidate === null ? {} : { candidate }),
    });
    if (candidate !== null) await rooms.markGrading(attempt, digestOf(candidate), input.isNew);
    const paths = {
      request: join(folder, 'request.json'),
      task: join(folder, 'task.json'),
      candidate: candidate === null ? undefined : join(folder, 'candidate'),
      output,
      container: containerName(attempt, stage),
    };
    return runStage(
      {
        argv: fillArgv(command.argv, paths, sources),
        cwd: output,
        env: command.env ?? [],
        mark: this.#mark(attempt, stage),
        wallMs: command.wall_s * 1000,
        idleMs: command.idle_s === undefined ? null : command.idle_s * 1000,
        graceMs: graceS * 1000,
        outputBytes: command.output_bytes,
        spoolFolder: rooms.home(attempt),
        stop: this.#stopOf(attempt),
        cgroup: cgroups?.make(containerName(attempt, stage)) ?? null,
        watchdog,
      },
      signal,
    );
  }

  /** Ends what an attempt may have left running outside of every process of its session. */
  async endLeftovers(attempt: string): Promise<void> {
    await this.#stopOf(attempt)?.();
    await this.#setting.cgroups?.clear(containerName(attempt, this.#setting.stage));
  }

  #mark(attempt: string, what: string): string {
    return `${this.#setting.markPrefix}.${attempt}-${what}`;
  }

  /** Runs the stop command; null when none is declared. */
  #stopOf(attempt: string): (() => Promise<StopFailure | null>) | null {
    const { stage, command, graceS, sources, workFolder, watchdog } = this.#setting;
    const { stop, env = [] } = command;
    if (stop === undefined) return null;
    return async () => {
      const failure = await runStop({
        argv: fillArgv(stop, { container: containerName(attempt, stage) }, sources),
        cwd: workFolder,
        env,
        mark: this.#mark(attempt, `${stage}-stop`),
        limitMs: graceS * 1000,
        watchdog,
      });
      if (failure !== null) {
        await this.#setting.rooms.note(attempt, `${stage}.stop-failed`, { ...failure });
      }
      return failure;
    };
  }
}

/** The name by which a container, or a control group, of a stage is found again. */
function containerName(attempt: string, stage: Stage): string {
  return `boundbook-${attempt}-${stage}`;
}
