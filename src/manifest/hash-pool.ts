import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { FileStamp } from './stamp.js';

const READ_BYTES = 1 << 20;
const REPORT_BYTES = 64 << 20;
/** Below this a second thread costs more than it saves. */
const WORTH_A_THREAD = 8 << 20;
const MAX_THREADS = 16;

/**
 * What each thread runs. Plain JavaScript in a string: the threads must start from the compiled program and from
 * TypeScript sources alike, and no file beside it then has to be found or copied.
 */
const WORKER_SOURCE = `
'use strict';
const { parentPort, workerData } = require('node:worker_threads');
const { createHash } = require('node:crypto');
const { closeSync, constants, fstatSync, openSync, readSync } = require('node:fs');

const buffer = Buffer.allocUnsafeSlow(workerData.readBytes);
const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

function stamp(fd) {
  const stat = fstatSync(fd, { bigint: true });
  if (!stat.isFile()) throw Object.assign(new Error('not a regular file'), { code: 'not a regular file' });
  return { size: Number(stat.size), mtimeNs: stat.mtimeNs, ctimeNs: stat.ctimeNs, ino: stat.ino };
}

function digest(path) {
  const fd = openSync(path, flags);
  try {
    const before = stamp(fd);
    const hash = createHash('sha256');
    let bytes = 0;
    let unreported = 0;
    for (let count; (count = readSync(fd, buffer, 0, buffer.length, null)) > 0; ) {
      hash.update(count === buffer.length ? buffer : buffer.subarray(0, count));
      bytes += count;
      unreported += count;
      if (unreported >= workerData.reportBytes) {
        parentPort.postMessage({ read: unreported });
        unreported = 0;
      }
      // A file that grows for ever is not followed for ever.
      if (bytes > before.size) break;
    }
    return { read: unreported, bytes, before, after: stamp(fd), digest: 'sha256:' + hash.digest('hex') };
  } finally {
    closeSync(fd);
  }
}

parentPort.on('message', (path) => {
  if (path === null) return parentPort.close();
  try {
    parentPort.postMessage({ read: 0, result: digest(path) });
  } catch (error) {
    parentPort.postMessage({ read: 0, result: { error: String(error.code || error.message) } });
  }
});
`;

/** A digest with the file's stamps before and after reading, or the system's error code. */
export type HashResult =
  | {
      readonly digest: Digest;
      readonly bytes: number;
      readonly before: FileStamp;
      readonly after: FileStamp;
    }
  | { readonly error: string };

export interface HashOptions {
  readonly signal?: AbortSignal;
  /** Called now and then with the bytes read so far and the bytes there are. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** A message of a worker: bytes read since the last one, and the result when the file is done. */
interface Message {
  readonly read: number;
  readonly result?: HashResult & { readonly read?: number };
}

interface Job {
  readonly index: number;
  readonly path: string;
}

/**
 * SHA-256 of regular files, read by as many threads as there are processors, the largest files first so that no thread
 * is left with a large one at the end. Memory is one buffer a thread.
 *
 * @returns one result a file, in the given order.
 * @throws {BoundbookError} STOPPED when the signal aborts.
 */
export async function digestFiles(
  files: readonly { readonly absolute: string; readonly size: number }[],
  options: HashOptions = {},
): Promise<readonly HashResult[]> {
  if (files.length === 0) return [];
  const total = files.reduce((sum, file) => sum + file.size, 0);
  const queue = [...files.keys()].sort((a, b) => (files[b]?.size ?? 0) - (files[a]?.size ?? 0));
  const results = new Array<HashResult>(files.length);
  let done = 0;
  const onRead = (bytes: number): void => {
    done += bytes;
    if (bytes > 0) options.onProgress?.(done, total);
  };
  const useful = Math.ceil(total / WORTH_A_THREAD) || 1;
  const threads = Math.min(availableParallelism(), files.length, useful, MAX_THREADS);
  let taken = 0;
  const next = (): Job | null => {
    const index = queue[taken++];
    const file = index === undefined ? undefined : files[index];
    return index === undefined || file === undefined ? null : { index, path: file.absolute };
  };
  const workerData = { readBytes: READ_BYTES, reportBytes: REPORT_BYTES };
  const workers = Array.from(
    { length: threads },
    () => new Worker(WORKER_SOURCE, { eval: true, workerData }),
  );
  try {
    await Promise.all(workers.map((worker) => serve(worker, next, results, onRead, options.signal)));
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
  return results;
}

/** Feeds one worker until no file is left. */
function serve(
  worker: Worker,
  next: () => Job | null,
  results: HashResult[],
  onRead: (bytes: number) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let current: number | null = null;
    const stop = (): void =>
      reject(
        new BoundbookError('STOPPED', 'stopped while files were hashed', { hint: 'Nothing was written.' }),
      );
    if (signal?.aborted === true) return stop();
    signal?.addEventListener('abort', stop, { once: true });
    const feed = (): void => {
      const job = next();
      current = job?.index ?? null;
      worker.postMessage(job?.path ?? null);
    };
    worker.on('message', (message: Message) => {
      try {
        onRead(message.read + (message.result?.read ?? 0));
      } catch (error) {
        return reject(error);
      }
      if (message.result === undefined || current === null) return;
      results[current] = message.result;
      feed();
    });
    worker.once('error', reject);
    worker.once('exit', () => {
      signal?.removeEventListener('abort', stop);
      if (current === null) resolve();
      else reject(new BoundbookError('INTERNAL', 'a hashing thread ended before its file was done'));
    });
    feed();
  });
}
