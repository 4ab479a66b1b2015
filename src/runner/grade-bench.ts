import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, sha256Hex } from '../core/digest.js';
import { systemCode } from '../core/errors.js';
import { makeFolder, readError, writeError } from '../core/files.js';
import type { JsonObject } from '../core/json.js';
import type { ReportSchema } from '../grading/report-schema.js';
import type { DraftOf } from '../ledger/entries/entry.js';
import type { LedgerObject, ObjectFolder } from '../ledger/objects.js';
import type { CommandGrader } from '../protocol/schema/command-grader.js';
import { AttemptRooms } from './adapters/attempt-rooms.js';
import { CommandStage } from './adapters/command-stage.js';
import { GradeStage } from './adapters/grade-stage.js';
import type { SourcePaths } from './argv.js';
import { CgroupFolder } from './cgroup.js';
import { gradeRecord } from './drafts.js';
import { endMarked } from './process-group.js';
import { fateOf, ownIdentity, type ProcessIdentity } from './process-identity.js';
import { Watchdog } from './watchdog.js';

export interface GradeBenchSetting {
  /** Name of the regrading. */
  readonly regrading: string;
  readonly grader: CommandGrader;
  readonly sources: {
    /** The verified place of each declared path. */
    readonly paths: SourcePaths;
    readonly schema: { readonly check: ReportSchema } | null;
  };
  /** The ledger's folder. */
  readonly folder: string;
  readonly objects: ObjectFolder;
}

type Recorded = DraftOf<'regrading.recorded'>;

/** Regradings that are at work in this process. */
const active = new Set<string>();

/**
 * Runs the command of a corrected grader on outputs that were graded before, each as the grade stage of an attempt (B6).
 *
 * @throws {BoundbookError} when its control group cannot be used
 */
export async function openGradeBench(setting: GradeBenchSetting): Promise<GradeBench> {
  const { cgroup } = setting.grader;
  return new GradeBench(setting, cgroup === undefined ? null : CgroupFolder.open(cgroup));
}

export class GradeBench {
  readonly process: ProcessIdentity = ownIdentity();
  readonly #setting: GradeBenchSetting;
  readonly #home: string;
  readonly #watchdog: Watchdog;
  readonly #command: CommandStage;
  readonly #rooms: AttemptRooms;
  readonly #stage: GradeStage;
  #isActive = false;

  constructor(setting: GradeBenchSetting, cgroups: CgroupFolder | null) {
    const { regrading, grader, sources, folder, objects } = setting;
    this.#setting = setting;
    this.#home = join(folder, 'work', `regrading-${regrading}`);
    this.#rooms = new AttemptRooms(this.#home);
    this.#watchdog = new Watchdog(grader.grace_s * 1000);
    this.#command = new CommandStage({
      stage: 'grade',
      command: grader.grade,
      artifacts: [],
      graceS: grader.grace_s,
      sources: sources.paths,
      workFolder: this.#home,
      rooms: this.#rooms,
      cgroups,
      markPrefix: regrading,
      watchdog: this.#watchdog,
    });
    this.#stage = new GradeStage({ command: this.#command, rooms: this.#rooms, objects });
  }

  /** Whether a process is still at work on the regrading. */
  isHeld(by: ProcessIdentity): boolean {
    const { boot_id, pid, started } = this.process;
    if (fateOf(by, boot_id) !== 'alive') return false;
    return by.pid !== pid || by.started !== started || active.has(this.#setting.regrading);
  }

  /** Ends and removes what a process left that is gone (F-115). @throws {BoundbookError} PROCESS_NOT_ENDED */
  async clear(): Promise<void> {
    const { regrading } = this.#setting;
    active.add(regrading);
    this.#isActive = true;
    await endMarked(`${regrading}.`);
    await makeFolder(this.#home);
    for (const attempt of await roomsIn(this.#home)) await this.#command.endLeftovers(attempt);
    await remove(this.#home);
    await makeFolder(this.#home);
  }

  /** @returns null when it was cut */
  async grade(
    slot: string,
    task: { readonly id: string; readonly fields: JsonObject },
    candidate: Buffer,
    cut: AbortSignal,
  ): Promise<(Pick<Recorded, 'result' | 'stage'> & { readonly objects: readonly LedgerObject[] }) | null> {
    const { grader, sources } = this.#setting;
    const attempt = this.#attemptOf(slot);
    const graded = { attempt, task, grader, schema: sources.schema?.check ?? null };
    const end = await this.#stage.grade(graded, candidate, 'new', cut);
    if (end.kind === 'abandoned') return null;
    const { draft, objects } = gradeRecord({ attempt, slot }, digestOf(candidate), end);
    const { result, finish_reason, seconds } = draft;
    const stage = { objects: draft.objects, finish_reason, seconds };
    if (result.kind === 'failure')
      return { result: { kind: 'failed', signals: result.signals }, stage, objects };
    if (result.kind !== 'report') return null;
    return { result: { kind: 'graded', value: result.value, report: result.report }, stage, objects };
  }

  /** Removes what the grading of an output left, once it is recorded. */
  forget(slot: string): Promise<void> {
    return remove(this.#rooms.home(this.#attemptOf(slot)));
  }

  async close(): Promise<void> {
    this.#watchdog.close();
    if (!this.#isActive) return;
    active.delete(this.#setting.regrading);
    await remove(this.#home);
  }

  /** A name that no attempt has, and that another regrading of the same slot does not have. */
  #attemptOf(slot: string): string {
    return sha256Hex(`boundbook/regrading/1\0${this.#setting.regrading}${slot}`).slice(0, 32);
  }
}

async function roomsIn(folder: string): Promise<readonly string[]> {
  try {
    const found = await readdir(folder, { withFileTypes: true });
    return found.flatMap((item) =>
      item.isDirectory() && /^[0-9a-f]{32}$/.test(item.name) ? [item.name] : [],
    );
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw readError(folder, error);
  }
}

async function remove(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch((error: unknown) => {
    throw writeError(path, error);
  });
}
