import { parentPort, workerData } from 'node:worker_threads';
import { BoundbookError } from '../../core/errors.js';
import { type BulkJob, checkBulk } from './bulk-check.js';
import type { BulkMessage } from './bulk-worker.js';

/** The program of the thread that `bulk-worker.ts` starts: one job, one message. */

function answer(job: BulkJob): BulkMessage {
  try {
    return { verdict: checkBulk(job) };
  } catch (error) {
    if (!(error instanceof BoundbookError)) throw error;
    // An error loses its kind on its way from one thread to another.
    const { code, message, hint, evidence, faults } = error;
    return { error: { code, message, hint: hint ?? null, evidence: evidence ?? null, faults } };
  }
}

parentPort?.postMessage(answer(workerData as BulkJob));
