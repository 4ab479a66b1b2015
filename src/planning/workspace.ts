import { join } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import { createFileDurable, exists, makeFolder } from '../core/files.js';
import { STARTERS, type StarterName } from './starter.js';

const FOLDERS = ['protocol', 'tasks', 'manifests', 'ledger'] as const;

/**
 * Writes the example protocol, its task file and the folders of a workspace. Folders that exist are kept; files are
 * never overwritten, and with one in the way nothing is written at all.
 *
 * @returns what was created, relative to the folder
 * @throws {BoundbookError} FILE_EXISTS, FILE_UNWRITABLE or DISK_FULL.
 */
export async function createWorkspace(folder: string, starter: StarterName): Promise<readonly string[]> {
  const { protocol, tasks } = STARTERS[starter];
  const files = [
    ['protocol/example.yaml', protocol],
    ['tasks/example.jsonl', tasks],
  ] as const;
  for (const [path] of files) {
    if (!(await exists(join(folder, path)))) continue;
    throw new BoundbookError('FILE_EXISTS', `${path} exists already; nothing was written`, {
      hint: 'Nothing is ever overwritten. Choose another folder, or go on with what is there.',
      evidence: { path },
    });
  }
  const created: string[] = [];
  for (const name of FOLDERS) {
    const path = join(folder, name);
    if (await exists(path)) continue;
    await makeFolder(path);
    created.push(`${name}/`);
  }
  for (const [path, text] of files) {
    await createFileDurable(join(folder, path), text);
    created.push(path);
  }
  return created;
}
