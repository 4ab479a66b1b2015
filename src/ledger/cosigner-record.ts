import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { BoundbookError, systemCode } from '../core/errors.js';
import { createFileDurable, makeFolder, readError, readFileBounded } from '../core/files.js';
import { type Checkpoint, checkpointOf } from './checkpoint.js';

/**
 * What a cosigner's key has cosigned: one folder for each origin, the notes in it numbered in order. It lies beside the
 * key and is never taken from anywhere else.
 *
 * A new state is a new file whose number nobody else could take in the meantime. So of two processes that cosign for
 * one origin from the same last state, one is refused: else both could sign, each for another future.
 */

const MAX_NOTE_BYTES = 1_000_000;
const DIGITS = 8;

/** The newest note that a key cosigned for an origin. */
export interface LastCosigned {
  /** Number of its file. */
  readonly number: number;
  readonly checkpoint: Checkpoint;
  readonly note: Buffer;
}

export class CosignerRecord {
  readonly #root: string;

  /** @param keyFile the cosigner's private key */
  constructor(keyFile: string) {
    this.#root = `${keyFile}.cosigned`;
  }

  /** The folder. */
  get path(): string {
    return this.#root;
  }

  /**
   * The last note for an origin; null when there is none.
   *
   * @throws {BoundbookError} NOTE_INVALID when the record was edited; FILE_UNREADABLE.
   */
  async last(origin: string): Promise<LastCosigned | null> {
    const numbers = (await namesIn(this.#folder(origin))).flatMap((name) =>
      /^[0-9]{8}\.note$/.test(name) ? [Number.parseInt(name, 10)] : [],
    );
    if (numbers.length === 0) return null;
    const number = Math.max(...numbers);
    const path = join(this.#folder(origin), fileName(number));
    const note = await readFileBounded(path, { maxBytes: MAX_NOTE_BYTES });
    const checkpoint = checkpointOf(note);
    if (checkpoint.origin === origin) return { number, checkpoint, note };
    throw new BoundbookError('NOTE_INVALID', `${path} is a note of another ledger: ${checkpoint.origin}`, {
      hint: 'The record of a cosigner must not be edited. Restore it from a copy.',
    });
  }

  /**
   * Notes durably what is about to be cosigned, after the last state that was looked at.
   *
   * @throws {BoundbookError} LEDGER_BUSY when another process noted a state in the meantime; FILE_UNWRITABLE, DISK_FULL.
   */
  async advance(origin: string, last: LastCosigned | null, note: Uint8Array): Promise<void> {
    const folder = this.#folder(origin);
    const number = (last?.number ?? 0) + 1;
    await makeFolder(folder);
    try {
      await createFileDurable(join(folder, fileName(number)), note, 0o444);
    } catch (error) {
      if (!(error instanceof BoundbookError) || error.code !== 'FILE_EXISTS') throw error;
      throw new BoundbookError('LEDGER_BUSY', 'another process has cosigned for this ledger meanwhile', {
        hint: 'Run the command again: it then starts from what was cosigned now.',
        cause: error,
      });
    }
  }

  #folder(origin: string): string {
    return join(this.#root, createHash('sha256').update(origin).digest('hex').slice(0, 32));
  }
}

function fileName(number: number): string {
  return `${String(number).padStart(DIGITS, '0')}.note`;
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw readError(folder, error);
  }
}
