import { resolve } from 'node:path';
import { isFolder } from '../core/files.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { TaskSets } from '../protocol/tasks.js';
import type { Remark } from './remarks.js';

const MAX_NAMED = 5;

/**
 * Folders of Harbor tasks that are not in the workspace, where `freeze` will look for them. Nothing of them is read: what
 * Harbor's digest of one is, only Harbor says.
 */
export async function taskFolderRemarks(
  root: string,
  { runner, queues }: Protocol,
  { tasks }: Pick<TaskSets, 'tasks'>,
): Promise<readonly Remark[]> {
  if (runner.adapter !== 'harbor') return [];
  const { source, folder } = runner.tasks;
  const path = runner.sources[source];
  if (path === undefined) return [];
  const about = 'task-folders';
  if (!(await isFolder(resolve(root, path)))) {
    return [{ about, message: `the folder ${path} of the Harbor tasks is not there` }];
  }
  const used = new Set(Object.values(queues).map((queue) => queue.tasks));
  const named = [...used].flatMap((set) =>
    [...(tasks.get(set)?.values() ?? [])].map(({ fields }) => String(fields[folder])),
  );
  const missing: string[] = [];
  for (const name of [...new Set(named)].sort()) {
    if (!(await isFolder(resolve(root, path, name)))) missing.push(`${path}/${name}`);
  }
  if (missing.length === 0) return [];
  const first = missing.slice(0, MAX_NAMED).join(', ');
  const more = missing.length > MAX_NAMED ? `, and ${missing.length - MAX_NAMED} more` : '';
  return [{ about, message: `folders of Harbor tasks are not there: ${first}${more}` }];
}
