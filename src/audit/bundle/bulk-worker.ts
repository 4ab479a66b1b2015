import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { BoundbookError } from '../../core/errors.js';
import type { JsonValue } from '../../core/json.js';
import { type BulkJob, type BulkVerdict, checkBulk } from './bulk-check.js';

/** Enough for what the thread holds on to at once: what it makes is short-lived. */
const YOUNG_MEGABYTES = 8;

/** What the thread says at its end. */
export type BulkMessage =
  | { readonly verdict: BulkVerdict }
  | {
      readonly error: Pick<BoundbookError, 'code' | 'message' | 'faults'> & {
        readonly hint: string | null;
        readonly evidence: JsonValue;
      };
    };

/**
 * Checks the large files of a bundle while the entries are replayed: in a thread beside it where there can be one, else when
 * the verdict is asked for.
 */
export class BulkWorker {
  readonly #job: BulkJob;
  readonly #worker: Worker | null;
  /** What the thread said; null when there was none, or it could not do it. */
  readonly said: Promise<BulkMessage | null>;

  /** @throws {BoundbookError} never for a thread that cannot be had; system errors of the folder for temporary files. */
  constructor(job: Omit<BulkJob, 'scratch'>) {
    this.#job = { ...job, scratch: mkdtempSync(join(tmpdir(), 'boundbook-audit-')) };
    this.#worker = startThread(this.#job);
    this.said = this.#worker === null ? Promise.resolve(null) : messageOf(this.#worker);
  }

  /** @throws {BoundbookError} as {@link checkBulk} */
  async verdict(): Promise<BulkVerdict> {
    const message = await this.said;
    // Whatever kept a thread from it: here it is done by the same code, or fails with the error itself.
    if (message === null) return checkBulk(this.#job);
    if ('verdict' in message) return message.verdict;
    const { code, message: text, hint, evidence, faults } = message.error;
    const details = {
      ...(hint === null ? {} : { hint }),
      ...(evidence === null ? {} : { evidence }),
      faults,
    };
    throw new BoundbookError(code, text, details);
  }

  /** Ends the thread. The job's files may be closed then. */
  async close(): Promise<void> {
    await this.#worker?.terminate();
    rmSync(this.#job.scratch, { recursive: true, force: true });
  }
}

/** null where there are no threads, or this program runs from its TypeScript sources, which a thread cannot load. */
function startThread(job: BulkJob): Worker | null {
  const program = new URL('bulk-thread.js', import.meta.url);
  if (!import.meta.url.endsWith('.js')) return null;
  try {
    return new Worker(program, {
      workerData: job,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEGABYTES },
    });
  } catch {
    return null;
  }
}

function messageOf(worker: Worker): Promise<BulkMessage | null> {
  return new Promise((resolve) => {
    worker.once('message', resolve);
    worker.once('error', () => resolve(null));
    worker.once('exit', () => resolve(null));
  });
}
