import { resolve } from 'node:path';
import { readFileBounded } from '../core/files.js';
import { MAX_PROTOCOL_BYTES, type ProtocolDocument, readProtocol } from '../protocol/read.js';
import { readTaskFiles } from '../protocol/task-files.js';
import { resolveTaskSets, type TaskSets } from '../protocol/tasks.js';

export interface LoadedPlan {
  readonly document: ProtocolDocument;
  readonly sets: TaskSets;
}

/**
 * Reads a protocol and all its task files.
 *
 * @param root the workspace, where relative paths start
 * @throws {BoundbookError} what reading the file, `readProtocol` and `resolveTaskSets` throw.
 */
export async function loadPlan(root: string, path: string): Promise<LoadedPlan> {
  const bytes = await readFileBounded(resolve(root, path), { maxBytes: MAX_PROTOCOL_BYTES });
  const document = readProtocol(bytes, path);
  const files = await readTaskFiles(document.protocol, (file) => resolve(root, file.path));
  return { document, sets: resolveTaskSets(document.protocol, files) };
}
