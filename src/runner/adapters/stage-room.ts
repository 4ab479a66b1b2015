import { randomBytes } from 'node:crypto';
import { type BigIntStats, closeSync, constants, fstatSync, lstatSync, openSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readError } from '../../core/files.js';
import type { Stage } from '../../protocol/schema/signals.js';
import { damageCode } from './room-damage.js';

/** What tells one folder from every other one that is there at the same time, on one boot of one host: `device:inode`. */
export type FolderIdentity = string;

interface Part {
  readonly what: string;
  readonly path: string;
  readonly file: number;
  /** Permissions that its owner cannot do without. */
  readonly needs: number;
}

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * The folders of one stage, made new under a name that nobody could know: `input/` is what the command is given, `output/`
 * what it writes to. They are held open while the stage runs, so that what is read afterwards is read from the very folder
 * that was made, and that it was exchanged can be told for certain.
 */
export class StageRoom {
  readonly name: string;
  readonly output: string;
  readonly input: string;
  readonly #parts: readonly Part[];

  private constructor(name: string, path: string, parts: readonly Part[]) {
    this.name = name;
    this.output = join(path, 'output');
    this.input = join(path, 'input');
    this.#parts = parts;
  }

  /** @throws what the system says */
  static async make(
    home: string,
    stage: Stage,
    inputs: Readonly<Record<string, Buffer>>,
  ): Promise<StageRoom> {
    const name = `${stage}-${randomBytes(8).toString('hex')}`;
    const path = join(home, name);
    const output = join(path, 'output');
    const input = join(path, 'input');
    await mkdir(path);
    await mkdir(output);
    await mkdir(input);
    // Inputs are made anew for each stage, so they need not be durable.
    for (const [file, bytes] of Object.entries(inputs))
      await writeFile(join(input, file), bytes, { flag: 'wx' });
    const parts: Part[] = [];
    try {
      parts.push({
        what: 'the folder of the attempt',
        path: home,
        file: openSync(home, FOLDER),
        needs: 0o700,
      });
      parts.push({ what: 'the folder of the stage', path, file: openSync(path, FOLDER), needs: 0o500 });
      parts.push({ what: 'the output folder', path: output, file: openSync(output, FOLDER), needs: 0o500 });
    } catch (error) {
      for (const { file } of parts) closeSync(file);
      throw error;
    }
    return new StageRoom(name, path, parts);
  }

  /** The output folder that was made, as an open file, wherever it lies by now. */
  get outputFile(): number {
    return this.#parts[2]?.file ?? -1;
  }

  /** Of the folders of the stage and of its output. */
  get identities(): [FolderIdentity, FolderIdentity] {
    const [, room = '', output = ''] = this.#parts.map(({ file }) => identityOfFile(file));
    return [room, output];
  }

  /** What is not as it was made, in words; null when everything is. @throws {BoundbookError} FILE_UNREADABLE for a fault of the disk */
  damage(): string | null {
    for (const { what, path, file, needs } of this.#parts) {
      const found = folderDamage(path, identityOfFile(file), needs);
      if (found !== null) return `${what} ${found}`;
    }
    return null;
  }

  close(): void {
    for (const { file } of this.#parts) closeSync(file);
  }
}

/**
 * How a folder differs from the one that was made; null when it does not.
 *
 * @throws {BoundbookError} FILE_UNREADABLE for a fault of the disk
 */
export function folderDamage(path: string, made: FolderIdentity, needs: number): string | null {
  let stat: BigIntStats;
  try {
    stat = lstatSync(path, { bigint: true });
  } catch (error) {
    if (damageCode(error) === null) throw readError(path, error);
    return 'is gone';
  }
  if (!stat.isDirectory()) return 'is no folder any more';
  if (identityOf(stat) !== made) return 'is not the one that was made';
  return (Number(stat.mode) & needs) === needs ? null : 'was closed to its owner';
}

function identityOfFile(file: number): FolderIdentity {
  return identityOf(fstatSync(file, { bigint: true }));
}

function identityOf({ dev, ino }: BigIntStats): FolderIdentity {
  return `${dev}:${ino}`;
}
