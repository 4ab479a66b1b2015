import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { canonicalBytes } from '../../core/canonical-json.js';
import type { Digest } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { readFileBounded, syncFolder, writeError, writeFileDurable } from '../../core/files.js';
import type { JsonValue } from '../../core/json.js';
import type { Stage } from '../../protocol/schema/signals.js';
import { readStageRecord, type StageRecord, writeStageRecord } from './stage-record.js';

const BEGAN = 'grade.began';
const BEGAN_BYTES = 1000;

/**
 * The folder of each attempt below `ledger/<manifest>/work`, and the durable marks in it by which a crash inside a stage is
 * told from one between the stages:
 *
 * - `generate/`, `generate.input/`: what the first command writes, and what it is given
 * - `generate.ended`: the end of the first stage, written when nothing of it runs any more
 * - `grade/`, `grade.input/`: likewise, made anew when everything else was cleared away
 * - `grade.began`: the second stage began, and what it grades; whatever lies in `grade/` without it is not its work
 * - `grade.ended`: its end
 */
export class AttemptRooms {
  readonly #workFolder: string;

  constructor(workFolder: string) {
    this.#workFolder = workFolder;
  }

  home(attempt: string): string {
    return join(this.#workFolder, attempt);
  }

  /** The output folder of a stage. */
  output(attempt: string, stage: Stage): string {
    return join(this.home(attempt), stage);
  }

  input(attempt: string, stage: Stage): string {
    return join(this.home(attempt), `${stage}.input`);
  }

  /** Empty folders for a stage that nothing has written to before (F-83). */
  async prepare(attempt: string, stage: Stage, inputs: Readonly<Record<string, Buffer>>): Promise<void> {
    const input = this.input(attempt, stage);
    // Attempt ids are no secret: an earlier candidate may have been here.
    if (stage === 'generate') await remove(this.home(attempt));
    else for (const name of [BEGAN, 'grade.ended']) await remove(join(this.home(attempt), name));
    for (const folder of [this.output(attempt, stage), input]) await freshFolder(folder);
    for (const [name, bytes] of Object.entries(inputs)) {
      const path = join(input, name);
      // Inputs are made anew for each stage, so they need not be durable.
      await writeFile(path, bytes, { flag: 'wx' }).catch((error: unknown) => {
        throw writeError(path, error);
      });
    }
  }

  /** Removes what the first command made beside its own folder: nothing of the second stage has been there yet. */
  async clearBeside(attempt: string): Promise<void> {
    const home = this.home(attempt);
    try {
      for (const name of await readdir(home)) {
        if (name === 'generate' || name === 'generate.input') continue;
        await rm(join(home, name), { recursive: true, force: true });
      }
    } catch (error) {
      throw writeError(home, error);
    }
  }

  /** Makes it durable that grading begins. @param isNew nothing of this attempt is durable yet */
  async markGrading(attempt: string, candidate: Digest, isNew: boolean): Promise<void> {
    await writeFileDurable(join(this.home(attempt), BEGAN), began(attempt, candidate));
    if (isNew) await this.#syncHomes();
  }

  /** Whether grading of this candidate began before the crash. */
  async hasBegun(attempt: string, candidate: Digest): Promise<boolean> {
    try {
      const path = join(this.home(attempt), BEGAN);
      const bytes = await readFileBounded(path, { maxBytes: BEGAN_BYTES, followLinks: false });
      return bytes.equals(began(attempt, candidate));
    } catch (error) {
      if (error instanceof BoundbookError) return false;
      throw error;
    }
  }

  async markEnd(attempt: string, record: StageRecord): Promise<void> {
    await writeStageRecord(this.home(attempt), record);
    // The file is durable in its folder, but that folder's own name is not.
    if (record.draft.stage === 'generate') await this.#syncHomes();
  }

  endOf(attempt: string, stage: Stage): Promise<StageRecord | null> {
    return readStageRecord(this.home(attempt), stage, attempt);
  }

  /** Leaves a word for people about a stage of which no entry can tell. */
  async note(attempt: string, name: string, value: JsonValue): Promise<void> {
    await writeFile(join(this.home(attempt), name), canonicalBytes(value)).catch(() => undefined);
  }

  async #syncHomes(): Promise<void> {
    await syncFolder(this.#workFolder).catch((error: unknown) => {
      throw writeError(this.#workFolder, error);
    });
  }
}

function began(attempt: string, candidate: Digest): Buffer {
  return canonicalBytes({ attempt, candidate });
}

async function remove(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch((error: unknown) => {
    throw writeError(path, error);
  });
}

async function freshFolder(folder: string): Promise<void> {
  await remove(folder);
  try {
    await mkdir(folder, { recursive: true });
  } catch (error) {
    throw writeError(folder, error);
  }
}
