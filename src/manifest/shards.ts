import type { Fault } from '../core/errors.js';
import { readLoaderObject } from '../core/loader-json.js';
import type { TensorTable } from './safetensors.js';

/** A file of the tree, as the shard rules need it. */
export interface TreeFile {
  readonly path: string;
  readonly absolute: string;
  readonly size: number;
}

const INDEX = /^(.*)\.(safetensors|bin)\.index(\.[\w-]+)?\.json$/;
const NUMBERED = /^(.*)-(\d{5})-of-(\d{5})\.(safetensors|bin|gguf)$/;
const MAX_NAMED = 20;

export function isShardIndex(path: string): boolean {
  return INDEX.test(baseOf(path));
}

/**
 * Holds a shard index against the shards (F-27, F-29): every file that it names is there and not empty, no shard is
 * left over, every tensor lies in the shard that is named for it and no other, and `total_size` is their sum.
 *
 * @param where turns a path of the tree into the name that faults show
 * @param tables headers of the tree's safetensors files that are in order
 */
export async function indexFaults(
  index: TreeFile,
  files: ReadonlyMap<string, TreeFile>,
  tables: ReadonlyMap<string, TensorTable>,
  where: (path: string) => string,
): Promise<readonly Fault[]> {
  const value = await readLoaderObject(index.absolute);
  const map = weightMapOf(value);
  if (value === null || map === null) {
    return [
      { where: where(index.path), message: 'is no shard index: its weight_map maps no tensor to a file' },
    ];
  }
  const folder = folderOf(index.path);
  const named = new Map<string, string[]>();
  for (const [tensor, file] of map) named.set(folder + file, [...(named.get(folder + file) ?? []), tensor]);

  const faults: Fault[] = [];
  for (const [path, tensors] of named) {
    const file = files.get(path);
    const hint = 'Copy the shard again from its source.';
    if (file === undefined) {
      faults.push({ where: where(path), message: `is missing: ${index.path} names it`, hint });
    } else if (file.size === 0) {
      faults.push({ where: where(path), message: `has zero bytes: ${index.path} names it as a shard`, hint });
    } else {
      faults.push(...tensorFaults(path, tensors, tables.get(path), index.path, where));
    }
  }
  faults.push(...surplusFaults(index, named, files, where));
  if (faults.length === 0) faults.push(...totalFaults(index, value, named, tables, where));
  return faults;
}

function weightMapOf(value: Readonly<Record<string, unknown>> | null): [string, string][] | null {
  const map = value?.weight_map;
  if (typeof map !== 'object' || map === null || Array.isArray(map)) return null;
  const entries = Object.entries(map as Record<string, unknown>);
  const good = entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return entries.length === 0 || good.length !== entries.length ? null : good;
}

function tensorFaults(
  path: string,
  tensors: readonly string[],
  table: TensorTable | undefined,
  index: string,
  where: (path: string) => string,
): Fault[] {
  if (table === undefined || !table.ok) return [];
  const expected = new Set(tensors);
  const absent = tensors.filter((tensor) => !table.tensors.has(tensor));
  const surplus = [...table.tensors.keys()].filter((tensor) => !expected.has(tensor));
  const hint = 'Index and shard are of different exports; copy both again from one source.';
  const faults: Fault[] = [];
  if (absent.length > 0) {
    faults.push({
      where: where(path),
      message: `lacks tensors that ${index} names: ${list(absent.map(quoted))}`,
      hint,
    });
  }
  if (surplus.length > 0) {
    faults.push({
      where: where(path),
      message: `holds tensors that ${index} does not name: ${list(surplus.map(quoted))}`,
      hint,
    });
  }
  return faults;
}

/** Shards beside the index that it does not name, and a single file that a loader would prefer to it. */
function surplusFaults(
  index: TreeFile,
  named: ReadonlyMap<string, unknown>,
  files: ReadonlyMap<string, TreeFile>,
  where: (path: string) => string,
): Fault[] {
  const folder = folderOf(index.path);
  const [, stem = '', kind = ''] = INDEX.exec(baseOf(index.path)) ?? [];
  const isSibling = (path: string): boolean => {
    if (!path.startsWith(folder) || path.slice(folder.length).includes('/')) return false;
    const name = path.slice(folder.length);
    const [, prefix, , , extension] = NUMBERED.exec(name) ?? [];
    return name === `${stem}.${kind}` || (prefix === stem && extension === kind);
  };
  return [...files.keys()]
    .filter((path) => isSibling(path) && !named.has(path))
    .map((path) => ({
      where: where(path),
      message: `is surplus: ${index.path} does not name it`,
      hint: 'Some loaders would read it. Remove it, or bind a folder without it.',
    }));
}

function totalFaults(
  index: TreeFile,
  value: Readonly<Record<string, unknown>>,
  named: ReadonlyMap<string, unknown>,
  tables: ReadonlyMap<string, TensorTable>,
  where: (path: string) => string,
): Fault[] {
  const metadata = value.metadata;
  if (typeof metadata !== 'object' || metadata === null) return [];
  const declared = (metadata as Record<string, unknown>).total_size;
  if (typeof declared !== 'number') return [];
  let sum = 0;
  for (const path of named.keys()) {
    const table = tables.get(path);
    if (table === undefined || !table.ok) return [];
    for (const bytes of table.tensors.values()) sum += bytes;
  }
  if (sum === declared) return [];
  const message = `names a total_size of ${declared} bytes; the tensors of its shards have ${sum}`;
  return [{ where: where(index.path), message, hint: 'Index and shards are of different exports.' }];
}

/** Shards that number themselves `00001-of-0000N`: each number must be there, index or not. */
export function numberingFaults(paths: readonly string[], where: (path: string) => string): readonly Fault[] {
  const sets = new Map<string, Set<number>>();
  for (const path of paths) {
    const [, prefix, number, count, extension] = NUMBERED.exec(path) ?? [];
    if (prefix === undefined) continue;
    const key = `${prefix}-*-of-${count}.${extension}`;
    sets.set(key, (sets.get(key) ?? new Set()).add(Number(number)));
  }
  const faults: Fault[] = [];
  for (const [key, present] of sets) {
    const count = Number(/-of-(\d{5})\.\w+$/.exec(key)?.[1] ?? 0);
    const absent: string[] = [];
    for (let i = 1; i <= count; i++) if (!present.has(i)) absent.push(String(i).padStart(5, '0'));
    if (absent.length > 0) {
      faults.push({
        where: where(key),
        message: `lacks the shards ${list(absent)}`,
        hint: 'Copy them again.',
      });
    }
  }
  return faults;
}

function quoted(name: string): string {
  return JSON.stringify(name);
}

function list(names: readonly string[]): string {
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
  return names.slice(0, MAX_NAMED).join(', ') + more;
}

/** The folder part with its slash, or nothing. */
function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1);
}

function baseOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
