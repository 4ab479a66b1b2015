import { join } from 'node:path';
import { BoundbookError, type Fault } from '../core/errors.js';
import { decodeUtf8, exists, readFileBounded } from '../core/files.js';
import { LineIndex } from '../protocol/lines.js';
import { nearest } from '../protocol/nearest.js';
import { parseYaml, YamlSyntaxFault } from '../protocol/yaml.js';

export const HOST_MAP = 'boundbook.host.yaml';
const MAX_BYTES = 1024 * 1024;

/**
 * Reads where bindings lie on this host: one mapping from binding names to paths, relative ones starting at the
 * workspace. The file is no part of any identity and is never hashed; what it names is. Absent: an empty map.
 *
 * @param known all binding names that the workspace knows; another name is a slip of the pen and refused.
 * @throws {BoundbookError} HOST_MAP_INVALID with all faults; FILE_… when it can't be read.
 */
export async function readHostMap(
  root: string,
  known: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string>> {
  const path = join(root, HOST_MAP);
  if (!(await exists(path))) return new Map();
  const text = decodeUtf8(await readFileBounded(path, { maxBytes: MAX_BYTES }), HOST_MAP);
  const yaml = parseYaml(text);
  if (yaml instanceof YamlSyntaxFault) refuse([{ where: HOST_MAP, message: yaml.message, hint: yaml.hint }]);
  const lines = new LineIndex(text);
  const faults: Fault[] = yaml.faults.map(({ message, hint, offset }) => {
    const position = offset === undefined ? null : lines.at(offset);
    return { where: HOST_MAP, message, ...(hint === undefined ? {} : { hint }), ...position };
  });
  const { value } = yaml;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const hint = 'Write lines like `weights/M@42: /data/M-42`.';
    refuse([...faults, { where: HOST_MAP, message: 'is no mapping from binding names to paths', hint }]);
  }
  const map = new Map<string, string>();
  for (const [name, local] of Object.entries(value)) {
    const problem = entryProblem(name, local, known);
    if (problem !== null) faults.push({ where: `${HOST_MAP} ${JSON.stringify(name)}`, ...problem });
    else if (typeof local === 'string') map.set(name, local);
  }
  if (faults.length > 0) refuse(faults);
  return map;
}

function entryProblem(
  name: string,
  local: unknown,
  known: ReadonlySet<string>,
): Pick<Fault, 'message' | 'hint'> | null {
  if (!known.has(name)) {
    const close = nearest(name, [...known]);
    const hint = close === null ? 'Remove the line.' : `Did you mean ${JSON.stringify(close)}?`;
    return { message: 'is no binding of any plan in this workspace', hint };
  }
  if (typeof local !== 'string' || local === '')
    return { message: 'needs a path', hint: 'Write it in quotes.' };
  if (local.startsWith('~'))
    return { message: 'begins with ~, which is not expanded', hint: 'Write the full path.' };
  return null;
}

function refuse(faults: readonly Fault[]): never {
  throw new BoundbookError('HOST_MAP_INVALID', `${HOST_MAP} is refused`, {
    hint: 'It maps binding names, as `boundbook freeze` prints them, to paths on this host.',
    faults,
  });
}
