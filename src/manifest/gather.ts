import { resolve } from 'node:path';
import { type Digest, digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { readFileBounded } from '../core/files.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { resolveTaskSets, type TaskSets, taskFiles } from '../protocol/tasks.js';
import { type PlanDigest, planDigest } from '../slots/plan.js';
import { bindableEntries } from './hash.js';
import { readHostMap } from './host-map.js';
import { IGNORE_RULE } from './names.js';
import type { Observed } from './observe.js';
import { type Product, runningProduct } from './product.js';
import { type Host, type RequiredBinding, requiredBindings } from './required.js';
import type { Binding } from './schema.js';
import { treeOf } from './tree.js';
import { readWorkspace } from './workspace.js';

const MAX_TASK_BYTES = 1024 * 1024 * 1024;

/**
 * This host: the workspace, where its map says that things lie, the running program.
 *
 * @param required the bindings at hand; those of all other manifests of the workspace are known to the map as well
 * @throws {BoundbookError} HOST_MAP_INVALID
 */
export async function openHost(
  root: string,
  required: readonly RequiredBinding[],
  product: Product = runningProduct(),
): Promise<Host> {
  const { manifests } = await readWorkspace(root);
  const known = new Set(required.map(({ name }) => name));
  for (const { manifest } of manifests) {
    for (const { name } of requiredBindings(manifest.protocol)) known.add(name);
  }
  return { root: resolve(root), map: await readHostMap(resolve(root), known), product };
}

/**
 * The bindings of what was observed; missing places are left out.
 *
 * @throws {BoundbookError} BINDING_REFUSED with all faults of everything that is there.
 */
export function bindingsOf(observed: readonly Observed[]): readonly Binding[] {
  const present = observed.filter(({ shape }) => shape !== 'missing');
  const entries = bindableEntries(present);
  return present.map(({ request: { name, path }, shape }): Binding => {
    const files = entries.get(name) ?? [];
    if (shape === 'tree') {
      const tree = treeOf(files);
      return { kind: 'tree', name, path, ...tree, ignored: IGNORE_RULE, entries: [...tree.entries] };
    }
    const [file] = files;
    if (file === undefined) throw new BoundbookError('INTERNAL', `${name} was observed without its file`);
    return { kind: 'file', name, path, size: file.size, digest: file.digest };
  });
}

/**
 * Reads a file that is bound and proves that it is the bound one.
 *
 * @throws {BoundbookError} FILE_CHANGED when its bytes have another digest; FILE_NOT_FOUND and the like.
 */
export async function readBoundFile(
  binding: { readonly name: string; readonly digest: Digest },
  absolute: string,
): Promise<Buffer> {
  const bytes = await readFileBounded(absolute, { maxBytes: MAX_TASK_BYTES });
  const actual = digestOf(bytes);
  if (actual === binding.digest) return bytes;
  throw new BoundbookError(
    'FILE_CHANGED',
    `${binding.name} has the digest ${actual}, not the bound ${binding.digest}`,
    {
      hint: 'Let nothing write to bound files; `boundbook verify` lists everything that differs.',
      evidence: { binding: binding.name, expected: binding.digest, actual },
    },
  );
}

/**
 * Count and digest of the plan once every task file is bound, else null.
 *
 * @param paths absolute paths by binding name
 * @throws {BoundbookError} TASKS_INVALID; FILE_CHANGED.
 */
export async function planOf(
  protocol: Protocol,
  bindings: readonly Binding[],
  paths: ReadonlyMap<string, string>,
): Promise<PlanDigest | null> {
  const tasks = await tasksOf(protocol, bindings, paths);
  return tasks === null ? null : planDigest(protocol, tasks.ids);
}

/**
 * The tasks of a plan once every task file is bound, else null.
 *
 * @param paths absolute paths by binding name
 * @throws {BoundbookError} TASKS_INVALID; FILE_CHANGED.
 */
export async function tasksOf(
  protocol: Protocol,
  bindings: readonly Binding[],
  paths: ReadonlyMap<string, string>,
): Promise<TaskSets | null> {
  const files = new Map<string, Uint8Array>();
  for (const { binding: name } of taskFiles(protocol)) {
    const binding = bindings.find((one) => one.name === name);
    const path = paths.get(name);
    if (binding === undefined || path === undefined) return null;
    files.set(name, await readBoundFile(binding, path));
  }
  return resolveTaskSets(protocol, files);
}

/** Where the bytes of each observed binding lie; behind a hub link, the blob. */
export function pathsOf(observed: readonly Observed[]): ReadonlyMap<string, string> {
  const paths = new Map<string, string>();
  for (const { request, shape, root, files } of observed) {
    const [file] = files;
    if (shape === 'tree') paths.set(request.name, root);
    else if (shape === 'file' && file !== undefined) paths.set(request.name, file.absolute);
  }
  return paths;
}
