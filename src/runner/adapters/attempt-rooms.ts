import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, rename, rm, rmdir, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { canonicalBytes } from '../../core/canonical-json.js';
import type { Digest } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { syncFolder, writeError, writeFileDurable } from '../../core/files.js';
import type { JsonValue } from '../../core/json.js';
import type { Stage } from '../../protocol/schema/signals.js';
import { bootId } from '../process-identity.js';
import { damageCode, type RoomDamage } from './room-damage.js';
import { beganName, readBeginning, type StageBeginning } from './stage-beginning.js';
import { readStageRecord, type StageRecord, writeStageRecord } from './stage-record.js';
import { folderDamage, StageRoom } from './stage-room.js';

/** A stage's room to be made. */
export interface RoomRequest {
  readonly attempt: string;
  readonly stage: Stage;
  /** Files of the input folder. */
  readonly inputs: Readonly<Record<string, Buffer>>;
  /** What is to be graded; null while it is made. */
  readonly candidate: Digest | null;
  readonly begins: StageBegins;
}

/**
 * `new`: nothing of this attempt can be there; `taken_over`: a session that is gone began this stage or the one before;
 * `continued`: this session ended the one before.
 */
export type StageBegins = 'new' | 'taken_over' | 'continued';

/**
 * The folder of each attempt below `ledger/<manifest>/work`, and the durable marks in it by which a crash inside a stage is
 * told from one between the stages:
 *
 * - `generate-<random>/`, `grade-<random>/`: the room of a stage, made when it begins
 * - `generate.began`, `grade.began`: in which room it began, and what is graded there; a room that is not named is not its work
 * - `generate.ended`, `grade.ended`: its end, written when nothing of it runs any more
 *
 * A candidate is a program of the same user: it can remove, exchange, lock or fill all of that. What it does to its own
 * attempt is {@link RoomDamage}, a value. What the disk does is thrown.
 */
export class AttemptRooms {
  readonly #workFolder: string;
  /** The folder of all attempts as the first one found it. */
  #held: { readonly dev: bigint; readonly ino: bigint } | null = null;

  constructor(workFolder: string) {
    this.#workFolder = workFolder;
  }

  home(attempt: string): string {
    return join(this.#workFolder, attempt);
  }

  /**
   * Empty folders for a stage that nothing has written to before (F-83), and the mark that it begins.
   *
   * @throws {BoundbookError} DISK_FULL or FILE_UNWRITABLE for a fault of the host; FILE_NOT_REGULAR or FILE_CHANGED when
   * the folder of all attempts is a link, or another one than before
   */
  async open(request: RoomRequest): Promise<StageRoom | RoomDamage> {
    await this.#hold();
    const home = this.home(request.attempt);
    let room: StageRoom | null = null;
    try {
      await this.#prepareHome(home, request);
      room = await StageRoom.make(home, request.stage, request.inputs);
      await this.#markBeginning(request, room);
      return room;
    } catch (error) {
      room?.close();
      return this.#damage(home, error);
    }
  }

  /**
   * Removes what a command that generates made beside its own room: nothing else has been there yet.
   *
   * @returns what it did to the room itself; null for nothing
   * @throws {BoundbookError} as {@link open}
   */
  async leave(attempt: string, stage: Stage, room: StageRoom): Promise<string | null> {
    const damage = room.damage();
    if (damage !== null || stage === 'grade') return damage;
    const home = this.home(attempt);
    const own = new Set([room.name, beganName('generate')]);
    try {
      for (const name of await readdir(home)) {
        if (!own.has(name)) await putAway(join(home, name), home);
      }
      return null;
    } catch (error) {
      return (await this.#damage(home, error)).damage;
    }
  }

  /** Makes the end of a stage durable, in a new folder where the attempt's own is of no use any more. */
  async markEnd(attempt: string, record: StageRecord): Promise<void> {
    const home = this.home(attempt);
    const repairs = [() => mkdir(home, { recursive: true }), () => this.#renew(home)];
    for (let tries = 0; ; tries++) {
      try {
        await this.#writeEnd(home, record);
        return;
      } catch (error) {
        await this.#damage(home, error);
        // It only bridges the time until the ledger has the entry.
        if (tries === repairs.length) return;
        await repairs[tries]?.().catch(() => undefined);
      }
    }
  }

  endOf(attempt: string, stage: Stage): Promise<StageRecord | null> {
    return readStageRecord(this.home(attempt), stage, attempt);
  }

  /**
   * The output folder, below that of the attempt, in which the grading of this candidate began before the crash; null when
   * it had not begun, or its folder was exchanged.
   */
  async gradedIn(attempt: string, candidate: Digest): Promise<string | null> {
    const began = await readBeginning(this.home(attempt), 'grade', attempt);
    if (began === null || began.candidate !== candidate) return null;
    if (this.#damageSince(attempt, began) !== null) return null;
    return join(began.room, 'output');
  }

  /** What became of the room that a stage began in before the crash; null when nothing is known against it. */
  async damageTo(attempt: string, stage: Stage): Promise<string | null> {
    const began = await readBeginning(this.home(attempt), stage, attempt);
    return began === null ? null : this.#damageSince(attempt, began);
  }

  /** Leaves a word for people about a stage of which no entry can tell. */
  async note(attempt: string, name: string, value: JsonValue): Promise<void> {
    await writeFile(join(this.home(attempt), name), canonicalBytes(value)).catch(() => undefined);
  }

  /** Folders are told from each other by numbers that hold on one boot. */
  #damageSince(attempt: string, { boot_id, room, folders }: StageBeginning): string | null {
    if (boot_id !== bootId()) return null;
    const paths = [join(this.home(attempt), room), join(this.home(attempt), room, 'output')];
    const names = ['the folder of the stage', 'the output folder'];
    for (const [i, made] of folders.entries()) {
      const found = folderDamage(paths[i] ?? '', made, 0o500);
      if (found !== null) return `${names[i]} ${found}`;
    }
    return null;
  }

  /** A candidate that exchanges the folder of all attempts would have every later one run where it likes. */
  async #hold(): Promise<void> {
    const folder = this.#workFolder;
    if (this.#held === null) await mkdir(folder, { recursive: true }).catch(() => undefined);
    const found = await lstat(folder, { bigint: true }).catch(() => null);
    if (found?.isDirectory() === true) {
      this.#held ??= { dev: found.dev, ino: found.ino };
      if (found.dev === this.#held.dev && found.ino === this.#held.ino) return;
    }
    const hint =
      'Something that ran here removed it or put another in its place. Find out what, then run again.';
    if (this.#held !== null)
      throw new BoundbookError('FILE_CHANGED', `${folder} is not the folder that this run began with`, {
        hint,
      });
    throw new BoundbookError('FILE_NOT_REGULAR', `${folder} is no folder of its own`, {
      hint: 'Attempts run below it: remove the link, or whatever stands there. A workspace may lie on another disk as a whole.',
    });
  }

  async #prepareHome(home: string, { stage, begins }: RoomRequest): Promise<void> {
    const found = await lstat(home).catch((error: unknown) => {
      if (damageCode(error) !== 'ENOENT') throw error;
      return null;
    });
    const isFolder = found?.isDirectory() === true && (found.mode & 0o700) === 0o700;
    // Attempt ids are no secret: an earlier candidate may have been here.
    if (found !== null && (begins === 'new' || !isFolder)) await putAway(home, this.#workFolder);
    await mkdir(home, { recursive: true });
    if (stage === 'grade') await putAway(join(home, 'grade.ended'), home);
  }

  async #renew(home: string): Promise<void> {
    await putAway(home, this.#workFolder);
    await mkdir(home, { recursive: true });
  }

  async #markBeginning(request: RoomRequest, room: StageRoom): Promise<void> {
    const { attempt, stage, candidate, begins } = request;
    const home = this.home(attempt);
    const began: StageBeginning = {
      attempt,
      candidate,
      boot_id: bootId(),
      room: room.name,
      folders: room.identities,
    };
    const path = join(home, beganName(stage));
    if (stage === 'generate') {
      // It tells of this boot alone, which the system's memory outlives.
      await writeFile(path, canonicalBytes({ ...began }), { flag: 'wx' });
      return;
    }
    await putAway(path, home);
    await writeFileDurable(path, canonicalBytes({ ...began }));
    if (begins !== 'continued') await syncFolder(this.#workFolder);
  }

  async #writeEnd(home: string, record: StageRecord): Promise<void> {
    await writeStageRecord(home, record);
    // The file is durable in its folder, but that folder's own name is not.
    if (record.draft.stage === 'generate') await syncFolder(this.#workFolder);
  }

  /**
   * Takes an error for damage to one attempt only while the folder of all attempts is of use.
   *
   * @throws {BoundbookError} DISK_FULL or FILE_UNWRITABLE
   */
  async #damage(home: string, error: unknown): Promise<RoomDamage> {
    const code = damageCode(error);
    if (code === null) throw writeError(home, error);
    const probe = join(this.#workFolder, randomName('probe'));
    try {
      await mkdir(probe, { recursive: true });
      await rmdir(probe);
    } catch {
      throw writeError(home, error);
    }
    return { damage: `the folder of the attempt cannot be used (${code})` };
  }
}

/** Removes a name, or gives it another one in a folder where what lies below it cannot be removed. */
async function putAway(path: string, aside: string): Promise<void> {
  try {
    await unlink(path);
    return;
  } catch (error) {
    if (damageCode(error) === 'ENOENT') return;
  }
  try {
    await rm(path, { recursive: true, force: true });
  } catch (error) {
    if (damageCode(error) === null) throw error;
    await rename(path, join(aside, randomName('aside')));
  }
}

function randomName(what: string): string {
  return `${what}-${randomBytes(8).toString('hex')}`;
}
