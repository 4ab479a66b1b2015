import { resolve } from 'node:path';
import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { HashOptions } from './hash-pool.js';
import { type BindingRequest, type Observed, observe, shownPath } from './observe.js';
import { type Tree, type TreeEntry, treeOf } from './tree.js';

/** Whether the rules for weights hold for a tree besides those for every tree. */
export type TreeKind = 'weights' | 'source';

export interface HashedFile {
  /** Bytes. */
  readonly size: number;
  readonly digest: Digest;
}

/**
 * SHA-256 of one regular file (or of the blob behind a link of a model-hub cache), read in bounded memory.
 *
 * @throws {BoundbookError} BINDING_REFUSED with what is wrong with it; STOPPED.
 */
export async function hashFile(path: string, options: HashOptions = {}): Promise<HashedFile> {
  const observed = await observeOne(path, 'file', 'source', options);
  const [file] = bindableEntries([observed]).get(observed.request.name) ?? [];
  if (file === undefined) throw new BoundbookError('INTERNAL', `${path} was hashed without a result`);
  return { size: file.size, digest: file.digest };
}

/**
 * The digest of a tree by the rules of DESIGN §6, its files hashed in parallel.
 *
 * @throws {BoundbookError} BINDING_REFUSED with every fault of the tree; STOPPED.
 */
export async function hashTree(path: string, kind: TreeKind, options: HashOptions = {}): Promise<Tree> {
  const observed = await observeOne(path, 'folder', kind, options);
  return treeOf(bindableEntries([observed]).get(observed.request.name) ?? []);
}

async function observeOne(
  path: string,
  shape: BindingRequest['shape'],
  content: TreeKind,
  options: HashOptions,
): Promise<Observed> {
  const request: BindingRequest = { name: path, path, absolute: resolve(path), shape, content };
  const [observed] = await observe([request], options);
  if (observed === undefined) throw new BoundbookError('INTERNAL', `${path} was not observed`);
  return observed;
}

/**
 * The files of observations that are in order, by binding name.
 *
 * @throws {BoundbookError} BINDING_REFUSED with the faults of all observations, missing places among them.
 */
export function bindableEntries(observed: readonly Observed[]): ReadonlyMap<string, readonly TreeEntry[]> {
  const faults = observed.flatMap((one) =>
    one.shape === 'missing'
      ? [{ where: one.request.path, message: 'does not exist', hint: 'Check the path.' }]
      : one.faults,
  );
  const [first] = faults;
  if (first !== undefined) {
    const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : '';
    throw new BoundbookError('BINDING_REFUSED', `cannot bind: ${first.where} ${first.message}${more}`, {
      hint: 'Put the files in order and run the command again; nothing was written.',
      faults,
    });
  }
  return new Map(observed.map((one) => [one.request.name, entriesOf(one)]));
}

function entriesOf(observed: Observed): readonly TreeEntry[] {
  return observed.files.map(({ path, stamp, digest }) => {
    if (digest === null) {
      throw new BoundbookError(
        'INTERNAL',
        `${shownPath(observed.request, path)} has neither digest nor fault`,
      );
    }
    return { path, size: stamp.size, digest };
  });
}
