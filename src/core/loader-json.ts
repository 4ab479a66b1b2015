import { readFileBounded } from '../core/files.js';

const MAX_BYTES = 64 * 1024 * 1024;

/**
 * Reads JSON as model loaders do: Python's `NaN` and `Infinity` pass, since published configurations hold them, and
 * of two equal keys the last counts.
 *
 * @returns null when it is no JSON object.
 * @throws {BoundbookError} as {@link readFileBounded}
 */
export async function readLoaderObject(absolute: string): Promise<Readonly<Record<string, unknown>> | null> {
  const bytes = await readFileBounded(absolute, { maxBytes: MAX_BYTES, allowEmpty: true });
  let value: unknown;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    value = parse(text);
  } catch {
    return null;
  }
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const plain = text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|-?\bInfinity\b|\bNaN\b/g, (token) =>
      token.startsWith('"') ? token : 'null',
    );
    return JSON.parse(plain);
  }
}

/** Every text below any key of that name, however deep. */
export function textsBelow(value: unknown, keys: ReadonlySet<string>): readonly string[] {
  const texts: string[] = [];
  const open: { readonly value: unknown; readonly inside: boolean }[] = [{ value, inside: false }];
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    if (typeof item.value === 'string' && item.inside) texts.push(item.value);
    if (typeof item.value !== 'object' || item.value === null) continue;
    for (const [key, child] of Object.entries(item.value)) {
      open.push({ value: child, inside: item.inside || keys.has(key) });
    }
  }
  return texts;
}
