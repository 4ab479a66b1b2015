import { lstat } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { readFileBounded } from '../core/files.js';
import { loadManifest } from '../manifest/select.js';
import { type Attestable, readAttestable } from '../report/attestable.js';

const MAX_BYTES = 256 * 1024 * 1024;

export interface NamedFile {
  /** As it is shown: relative to the workspace where it lies inside. */
  readonly shown: string;
  readonly attestable: Attestable;
}

/**
 * Reads the file that a person names: by its path, or as a manifest's name or digest. Without a selector: the one
 * manifest of the workspace.
 *
 * @throws {BoundbookError} as `loadManifest` and `readAttestable`; FILE_NOT_FOUND and the like.
 */
export async function readNamedFile(root: string, selector: string | undefined): Promise<NamedFile> {
  const named = selector === undefined ? null : resolve(root, selector);
  const path = named !== null && (await isFile(named)) ? named : (await loadManifest(root, selector)).path;
  const bytes = await readFileBounded(path, { maxBytes: MAX_BYTES });
  const inside = relative(root, path);
  return { shown: inside.startsWith('..') ? path : inside, attestable: readAttestable(bytes, path) };
}

/** A folder that has the plan's name, as `demo/` may have, is not what is meant. */
async function isFile(path: string): Promise<boolean> {
  try {
    return !(await lstat(path)).isDirectory();
  } catch {
    return false;
  }
}
