import { BoundbookError } from '../core/errors.js';
import { readFileBounded } from '../core/files.js';
import type { Protocol } from './schema/protocol.js';
import { TaskFaults } from './task-faults.js';
import { type TaskFile, taskFiles } from './tasks.js';

const MAX_TASK_FILE_BYTES = 1024 * 1024 * 1024;

/**
 * Reads the files of all task sets.
 *
 * @param place where a file lies on this host
 * @returns the bytes by binding name, for `resolveTaskSets`
 * @throws {BoundbookError} TASKS_INVALID with every file that cannot be read.
 */
export async function readTaskFiles(
  protocol: Protocol,
  place: (file: TaskFile) => string,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const faults = new TaskFaults();
  const files = await collectTaskFiles(protocol, place, faults);
  faults.throwIfAny();
  return files;
}

/** Reads the files of all task sets that can be read; every other one is a fault. */
export async function collectTaskFiles(
  protocol: Protocol,
  place: (file: TaskFile) => string,
  faults: TaskFaults,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  for (const file of taskFiles(protocol)) {
    try {
      files.set(file.binding, await readFileBounded(place(file), { maxBytes: MAX_TASK_FILE_BYTES }));
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      faults.add(file.path, null, error.message, error.hint ?? 'Check the path.');
    }
  }
  return files;
}
