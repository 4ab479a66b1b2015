import { BoundbookError } from './errors.js';
import type { JsonValue } from './json.js';

const MAX_DEPTH = 200;

/**
 * The canonical JSON text of a value (RFC 8785), in UTF-8.
 *
 * Accepts null, booleans, well-formed strings, finite numbers, dense arrays and plain objects. `-0` becomes `0`
 * as the RFC rules.
 *
 * @throws {BoundbookError} VALUE_NOT_CANONICAL with the JSON pointer of the first value that has no such form.
 */
export function canonicalBytes(value: unknown): Buffer {
  return Buffer.from(canonicalText(value), 'utf8');
}

/** {@link canonicalBytes} as a string. */
export function canonicalText(value: unknown): string {
  return render(value, []);
}

/** Strings that JSON writes as they are; most keys and ids. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** @param path keys and positions that lead to the value: only a refusal makes a pointer of them. */
function render(value: unknown, path: (string | number)[]): string {
  switch (typeof value) {
    case 'string':
      return renderString(value, path);
    case 'number':
      if (!Number.isFinite(value)) refuse(path, `${value} is not a JSON number`);
      return JSON.stringify(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      if (path.length > MAX_DEPTH) refuse(path, `nested deeper than ${MAX_DEPTH} levels, or a cycle`);
      return Array.isArray(value) ? renderArray(value, path) : renderObject(value, path);
    default:
      return refuse(path, `${typeof value} has no JSON form`);
  }
}

function renderString(value: string, path: (string | number)[]): string {
  if (PLAIN.test(value)) return `"${value}"`;
  if (!value.isWellFormed()) refuse(path, 'the string holds a lone surrogate');
  return JSON.stringify(value);
}

function renderArray(value: readonly unknown[], path: (string | number)[]): string {
  let text = '';
  for (let i = 0; i < value.length; i++) {
    path.push(i);
    if (!(i in value)) refuse(path, 'the array has a hole');
    text += `${i === 0 ? '' : ','}${render(value[i], path)}`;
    path.pop();
  }
  return `[${text}]`;
}

function renderObject(value: object, path: (string | number)[]): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    refuse(path, `a ${value.constructor?.name ?? 'foreign'} object is not plain data`);
  }
  if (Object.getOwnPropertySymbols(value).length > 0) refuse(path, 'the object has symbol keys');
  let text = '';
  // The default sort compares UTF-16 code units, which is the order RFC 8785 asks for.
  for (const key of Object.keys(value).sort()) {
    path.push(key);
    text += `${text === '' ? '' : ','}${renderString(key, path)}:${render((value as Record<string, unknown>)[key], path)}`;
    path.pop();
  }
  return `{${text}}`;
}

function refuse(path: readonly (string | number)[], reason: string): never {
  const pointer = path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
  throw new BoundbookError('VALUE_NOT_CANONICAL', `no canonical JSON at ${pointer || '/'}: ${reason}`, {
    hint: 'Use null, booleans, well-formed strings, finite numbers, dense arrays and plain objects only.',
    evidence: { pointer },
  });
}

/** Narrows data known to be canonical JSON. */
export function asJson(value: unknown): JsonValue {
  canonicalText(value);
  return value as JsonValue;
}
