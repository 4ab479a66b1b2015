import { join } from 'node:path';
import { canonicalBytes } from '../../core/canonical-json.js';
import { digestOf } from '../../core/digest.js';
import type { JsonObject } from '../../core/json.js';
import type { Artifact, CommandRunner } from '../../protocol/schema/command-runner.js';
import type { Stage } from '../../protocol/schema/signals.js';
import { fillArgv, type SourcePaths } from '../argv.js';
import type { Cgroups } from '../cgroup.js';
import { endFound } from '../process-group.js';
import { processesIn } from '../process-places.js';
import type { Watchdog } from '../watchdog.js';
import { type Abandoned, secondsSince } from './adapter.js';
import type { AttemptRooms, StageBegins } from './attempt-rooms.js';
import { lostOutput } from './command-ends.js';
import { type DamagedEnd, damagedEnd, type RanStage } from './stage-end.js';
import { runStage, type StageExit } from './stage-process.js';
import { StageRoom } from './stage-room.js';
import { runStop, type StopFailure } from './stop-command.js';

export interface CommandStageSetting {
  readonly stage: Stage;
  readonly command: CommandRunner[Stage];
  /** Files that the command is asked for beside what the stage is for. */
  readonly artifacts: readonly Artifact[];
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
  readonly begins: StageBegins;
}

/** Runs the declared command of one stage, each time in a new room of its attempt. */
export class CommandStage {
  readonly #setting: CommandStageSetting;

  constructor(setting: CommandStageSetting) {
    this.#setting = setting;
  }

  /**
   * @param endOf tells what came of the stage, before its room is closed
   * @throws {BoundbookError} DISK_FULL or FILE_UNWRITABLE for a fault of the host
   */
  async run<T>(
    { attempt, task, request, candidate, begins }: StageInput,
    signal: AbortSignal,
    endOf: (ran: RanStage) => Promise<T>,
  ): Promise<T | Abandoned | DamagedEnd> {
    const { stage, artifacts, rooms } = this.#setting;
    const start = performance.now();
    const room = await rooms.open({
      attempt,
      stage,
      inputs: {
        'request.json': request,
        'task.json': canonicalBytes(task),
        ...(candidate === null ? {} : { candidate }),
      },
      candidate: candidate === null ? null : digestOf(candidate),
      begins,
    });
    if (!(room instanceof StageRoom)) return damagedEnd(stage, room.damage, artifacts, secondsSince(start));
    try {
      const exit = await this.#runIn(room, attempt, signal);
      if (exit === null) return { kind: 'abandoned' };
      const damage = await rooms.leave(attempt, stage, room);
      return await endOf({ exit, room, seconds: secondsSince(start), damage: damage ?? lostOutput(exit) });
    } finally {
      room.close();
    }
  }

  /** @returns null when it was stopped from outside */
  #runIn({ input, output }: StageRoom, attempt: string, signal: AbortSignal): Promise<StageExit | null> {
    const { stage, command, graceS, sources, rooms, cgroups, watchdog } = this.#setting;
    const container = containerName(attempt, stage);
    const paths = {
      request: join(input, 'request.json'),
      task: join(input, 'task.json'),
      candidate: stage === 'generate' ? undefined : join(input, 'candidate'),
      output,
      container,
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
        folder: rooms.home(attempt),
        stop: this.#stopOf(attempt),
        cgroup: cgroups?.make(container) ?? null,
        watchdog,
      },
      signal,
    );
  }

  /** Ends what an attempt may have left running outside of every process of its session. */
  async endLeftovers(attempt: string): Promise<void> {
    await this.#stopOf(attempt)?.();
    const home = this.#setting.rooms.home(attempt);
    await endFound(() => processesIn(home));
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
