import { TEMPLATE_FILES, templateIn } from '../chat-template/source.js';
import { BoundbookError, type Fault, systemCode } from '../core/errors.js';
import { readFileBounded } from '../core/files.js';
import { readLoaderObject, textsBelow } from '../core/loader-json.js';
import { readTensorTable, type TensorTable } from './safetensors.js';
import { indexFaults, isShardIndex, numberingFaults, type TreeFile } from './shards.js';
import { unreadable } from './walk.js';

const LFS_POINTER = 'version https://git-lfs.github.com/spec/';
const MAX_POINTER_BYTES = 1024;
/** Files that a loader reads and that mean nothing when they are empty. */
const NEVER_EMPTY = /\.(safetensors|bin|pt|pth|ckpt|gguf|ggml|npz|npy|h5|onnx|msgpack|model|json|jinja)$/i;
const CODE_KEYS = new Set(['auto_map', 'custom_pipelines']);

type Where = (path: string) => string;

/**
 * What is wrong with a tree of weights beyond its file list (F-27, F-29, F-41, F-43, F-45). Reads headers and
 * configurations only. Never throws on what the files hold.
 */
export async function weightFaults(files: readonly TreeFile[], where: Where): Promise<readonly Fault[]> {
  const faults: Fault[] = [];
  const byPath = new Map(files.map((file) => [file.path, file]));
  const tables = new Map<string, TensorTable>();
  const check = async (file: TreeFile, rule: () => Promise<readonly Fault[]>): Promise<void> => {
    try {
      faults.push(...(await rule()));
    } catch (error) {
      faults.push(faultOf(where(file.path), error));
    }
  };
  for (const file of files) {
    const content = contentFault(file);
    if (content !== null) faults.push({ where: where(file.path), ...content });
    else await check(file, () => pointerFaults(file, where));
  }
  const spoilt = new Set(faults.map((fault) => fault.where));
  for (const file of files) {
    if (!file.path.endsWith('.safetensors') || spoilt.has(where(file.path))) continue;
    await check(file, async () => {
      const table = await readTensorTable(file.absolute);
      tables.set(file.path, table);
      return table.ok
        ? []
        : [{ where: where(file.path), message: table.problem, hint: 'Copy it again from its source.' }];
    });
  }
  for (const file of files) {
    if (isShardIndex(file.path)) await check(file, () => indexFaults(file, byPath, tables, where));
    else if (isConfig(file.path)) await check(file, () => configFaults(file, where));
  }
  faults.push(...numberingFaults([...byPath.keys()], where));
  faults.push(...(await templateFaults(byPath, where)));
  return unrepeated(faults);
}

function contentFault(file: TreeFile): Pick<Fault, 'message' | 'hint'> | null {
  if (file.size > 0 || !NEVER_EMPTY.test(file.path)) return null;
  return { message: 'has zero bytes', hint: 'The copy was interrupted; copy it again from its source.' };
}

/** A Git LFS pointer where the file itself is expected. */
export async function pointerFaults(file: TreeFile, where: Where): Promise<readonly Fault[]> {
  if (file.size === 0 || file.size > MAX_POINTER_BYTES) return [];
  const bytes = await readFileBounded(file.absolute, { maxBytes: MAX_POINTER_BYTES, allowEmpty: true });
  if (!bytes.toString('latin1').startsWith(LFS_POINTER)) return [];
  const message = 'is a Git LFS pointer, not the file itself';
  return [{ where: where(file.path), message, hint: 'Run `git lfs pull` in its repository.' }];
}

function isConfig(path: string): boolean {
  return /(^|\/)[^/]*config\.json$/.test(path);
}

/** Code that a configuration would fetch from another repository at its newest state (F-45). */
async function configFaults(file: TreeFile, where: Where): Promise<readonly Fault[]> {
  if (file.size === 0) return [];
  const config = await readLoaderObject(file.absolute);
  if (config === null) {
    return [
      { where: where(file.path), message: 'is no JSON object', hint: 'Copy it again from its source.' },
    ];
  }
  const foreign = textsBelow(config, CODE_KEYS).filter((text) => text.includes('--'));
  return [...new Set(foreign)].sort().map((text) => ({
    where: where(file.path),
    message: `names code in another repository, which is not bound: ${JSON.stringify(text.slice(0, 200))}`,
    hint: 'Put the code into this folder and name it without "repository--".',
  }));
}

/** Chat templates that stand in several files must agree: servers choose differently (F-43). */
async function templateFaults(files: ReadonlyMap<string, TreeFile>, where: Where): Promise<readonly Fault[]> {
  const found: { readonly path: string; readonly template: string }[] = [];
  for (const path of TEMPLATE_FILES) {
    const file = files.get(path);
    if (file === undefined) continue;
    try {
      const template = await templateIn(file.absolute);
      if (template !== null) found.push({ path, template });
    } catch (error) {
      return [faultOf(where(path), error)];
    }
  }
  const [first, ...others] = found;
  if (first === undefined) return [];
  return others
    .filter(({ template }) => template !== first.template)
    .map(({ path }) => ({
      where: where(path),
      message: `holds another chat template than ${first.path}, and servers choose differently`,
      hint: 'Make them equal, or remove the one that must not be used.',
    }));
}

function faultOf(where: string, error: unknown): Fault {
  if (error instanceof BoundbookError) {
    return { where, message: error.message, ...(error.hint === undefined ? {} : { hint: error.hint }) };
  }
  if (systemCode(error) === undefined) throw error;
  return unreadable(where, error);
}

function unrepeated(faults: readonly Fault[]): readonly Fault[] {
  const seen = new Set<string>();
  return faults.filter(({ where, message }) => {
    const key = `${where}\n${message}`;
    return seen.has(key) ? false : seen.add(key);
  });
}
