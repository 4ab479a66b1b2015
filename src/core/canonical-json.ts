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
  return render(value, '', 0);
}

function render(value: unknown, pointer: string, depth: number): string {
  switch (typeof value) {
    case 'string':
      return renderString(value, pointer);
    case 'number':
      if (!Number.isFinite(value)) refuse(pointer, `${value} is not a JSON number`);
      return JSON.stringify(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      if (depth > MAX_DEPTH) refuse(pointer, `nested deeper than ${MAX_DEPTH} levels, or a cycle`);
      return Array.isArray(value) ? renderArray(value, pointer, depth) : renderObject(value, pointer, depth);
    default:
      return refuse(pointer, `${typeof value} has no JSON form`);
  }
}

function renderString(value: string, pointer: string): string {
  if (!value.isWellFormed()) refuse(pointer, 'the string holds a lone surrogate');
  return JSON.stringify(value);
}

function renderArray(value: readonly unknown[], pointer: string, depth: number): string {
  const parts: string[] = [];
  for (let i = 0; i < value.length; i++) {
    if (!(i in value)) refuse(`${pointer}/${i}`, 'the array has a hole');
    parts.push(render(value[i], `${pointer}/${i}`, depth + 1));
  }
  return `[${parts.join(',')}]`;
}

function renderObject(value: object, pointer: string, depth: number): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    refuse(pointer, `a ${value.constructor?.name ?? 'foreign'} object is not plain data`);
  }
  if (Object.getOwnPropertySymbols(value).length > 0) refuse(pointer, 'the object has symbol keys');
  // The default sort compares UTF-16 code units, which is the order RFC 8785 asks for.
  const parts: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const at = `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    parts.push(`${renderString(key, at)}:${render((value as Record<string, unknown>)[key], at, depth + 1)}`);
  }
  return `{${parts.join(',')}}`;
}

function refuse(pointer: string, reason: string): never {
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
