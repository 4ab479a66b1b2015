import { resolve } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import { readFileBounded } from '../core/files.js';
import { inspectProtocol, MAX_PROTOCOL_BYTES, type ProtocolDocument } from '../protocol/read.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { TaskFaults } from '../protocol/task-faults.js';
import { collectTaskFiles } from '../protocol/task-files.js';
import { readTaskSets, resolveTaskSets, type TaskFile, type TaskSets, taskFiles } from '../protocol/tasks.js';

export interface LoadedPlan {
  readonly document: ProtocolDocument;
  readonly sets: TaskSets;
}

/**
 * Reads a protocol and all its task files. Faults of both are thrown together: task files are looked at as far as the
 * protocol names them, even when it has faults elsewhere.
 *
 * @param root the workspace, where relative paths start
 * @throws {BoundbookError} what reading the file, `readProtocol` and `resolveTaskSets` throw.
 */
export async function loadPlan(root: string, path: string): Promise<LoadedPlan> {
  const bytes = await readFileBounded(resolve(root, path), { maxBytes: MAX_PROTOCOL_BYTES });
  const reading = inspectProtocol(bytes, path);
  const place = (file: TaskFile): string => resolve(root, file.path);
  if (!reading.ok) throw await withTaskFaults(reading.error, reading.partial, place);
  const { document } = reading;
  const faults = new TaskFaults();
  const files = await collectTaskFiles(document.protocol, place, faults);
  if (faults.total > 0) checkReadable(document.protocol, files, faults);
  return { document, sets: resolveTaskSets(document.protocol, files) };
}

/** The faults of a protocol, then those of its task files. */
async function withTaskFaults(
  error: BoundbookError,
  partial: Protocol | null,
  place: (file: TaskFile) => string,
): Promise<BoundbookError> {
  if (partial === null) return error;
  const faults = new TaskFaults();
  const files = await collectTaskFiles(partial, place, faults);
  readTaskSets(partial, files, faults, missing(partial, files));
  if (faults.total === 0) return error;
  const { code, message, hint, evidence } = error;
  const count = faults.total === 1 ? 'one' : String(faults.total);
  return new BoundbookError(code, `${message}, and its task files have ${count}`, {
    ...(hint === undefined ? {} : { hint }),
    ...(evidence === undefined ? {} : { evidence }),
    faults: [...error.faults, ...faults.listed],
    cause: error,
  });
}

/** @throws {BoundbookError} TASKS_INVALID with the files that cannot be read, and the faults of those that can. */
function checkReadable(protocol: Protocol, files: ReadonlyMap<string, Uint8Array>, faults: TaskFaults): void {
  readTaskSets(protocol, files, faults, missing(protocol, files));
  faults.throwIfAny();
}

function missing(protocol: Protocol, files: ReadonlyMap<string, Uint8Array>): ReadonlySet<string> {
  const names = taskFiles(protocol).map(({ binding }) => binding);
  return new Set(names.filter((name) => !files.has(name)));
}
