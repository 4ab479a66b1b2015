import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { z } from 'zod';
import type { Verdict } from '../attempts/adjudication.js';
import { canonicalBytes } from '../core/canonical-json.js';
import { BoundbookError, systemCode } from '../core/errors.js';
import { exists, makeFolder, readFileBounded, writeError, writeFileDurable } from '../core/files.js';

/** Below a ledger's folder: what is secret while a round is open. */
export const ADJUDICATION_FOLDER = 'adjudication';
const ROUND_FILE = 'round.json';
const LOCK_FILE = '.lock';
const MAX_BYTES = 64 * 1024 * 1024;

const hex = (digits: number) => z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`));
const roundSchema = z.strictObject({
  round: hex(32),
  secret: hex(64),
  /** By alias. Durable before its commitment is in the ledger. */
  verdicts: z.record(
    hex(16),
    z.strictObject({
      verdict: z.enum(['infrastructure', 'model', 'undetermined']),
      reason: z.string().min(1).max(4000),
      nonce: hex(64),
    }),
  ),
});

/** The secret of a round, and the verdicts that are committed and not opened yet. */
export interface SealedRound {
  readonly round: string;
  readonly secret: string;
  readonly verdicts: Readonly<Record<string, Verdict>>;
}

/** Where a ledger keeps the round that is open. Only who holds it reads or writes there. */
export class RoundFile {
  readonly #path: string;
  readonly #lock: Database.Database;

  private constructor(path: string, lock: Database.Database) {
    this.#path = path;
    this.#lock = lock;
  }

  /**
   * One adjudicator at a time. The lock is the kernel's and ends with the process.
   *
   * @throws {BoundbookError} LEDGER_BUSY when another one is at work; FILE_UNWRITABLE.
   */
  static async hold(ledger: string): Promise<RoundFile> {
    const folder = join(ledger, ADJUDICATION_FOLDER);
    await makeFolder(folder);
    const path = join(folder, LOCK_FILE);
    let lock: Database.Database | null = null;
    try {
      lock = new Database(path, { timeout: 0 });
      lock.exec('BEGIN EXCLUSIVE');
    } catch (error) {
      lock?.close();
      if (systemCode(error)?.startsWith('SQLITE_BUSY') !== true) throw writeError(path, error);
      throw new BoundbookError('LEDGER_BUSY', 'another adjudicator is at work on this ledger', {
        hint: 'Wait for the other `boundbook adjudicate` to end, on the terminal or in the browser.',
        cause: error,
      });
    }
    return new RoundFile(join(folder, ROUND_FILE), lock);
  }

  /** null when no round is kept. @throws {BoundbookError} ADJUDICATION_REFUSED for a file that is no round. */
  async read(): Promise<SealedRound | null> {
    if (!(await exists(this.#path))) return null;
    const bytes = await readFileBounded(this.#path, { maxBytes: MAX_BYTES });
    try {
      return roundSchema.parse(JSON.parse(bytes.toString('utf8')));
    } catch (error) {
      throw new BoundbookError('ADJUDICATION_REFUSED', `${this.#path} does not hold a round`, {
        hint: 'Put the file back as it was, or give the round up with `boundbook adjudicate --abandon REASON`.',
        cause: error,
      });
    }
  }

  async write(round: SealedRound): Promise<void> {
    await writeFileDurable(this.#path, canonicalBytes(round), 0o600);
  }

  remove(): void {
    try {
      unlinkSync(this.#path);
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw writeError(this.#path, error);
    }
  }

  release(): void {
    this.#lock.close();
  }
}
