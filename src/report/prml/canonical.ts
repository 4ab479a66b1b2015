import { sha256Hex } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { formatFloat, formatKey, formatString } from './scalar.js';

/** The canonical bytes of a PRML document (PRML v0.1, section 3) and their hash (section 4). */

/** An integer is a bigint and a float is a number, so that `1` and `1.0` stay apart. */
export type PrmlValue = null | boolean | string | bigint | number | PrmlMapping;

export interface PrmlMapping {
  readonly [key: string]: PrmlValue;
}

export const MAX_DEPTH = 100;

/**
 * Canonical bytes: UTF-8, block mappings only, keys by code point, two spaces for each level, LF after every line.
 *
 * @throws {BoundbookError} CLAIM_INVALID for what has no canonical form, empty mappings among it.
 */
export function prmlBytes(mapping: PrmlMapping): Buffer {
  return Buffer.from(linesOf(mapping, 0).join(''), 'utf8');
}

/** SHA-256 of the canonical bytes, 64 hexadecimal digits. */
export function prmlHash(mapping: PrmlMapping): string {
  return sha256Hex(prmlBytes(mapping));
}

function linesOf(mapping: PrmlMapping, depth: number): string[] {
  if (depth > MAX_DEPTH) refuse(`it is nested deeper than ${MAX_DEPTH} levels`);
  const keys = Object.keys(mapping).sort(byCodePoint);
  if (keys.length === 0) refuse('an empty mapping has no block form');
  return keys.flatMap((key) => {
    const head = `${'  '.repeat(depth)}${formatKey(key)}:`;
    const value = mapping[key] ?? null;
    if (typeof value === 'object' && value !== null) return [`${head}\n`, ...linesOf(value, depth + 1)];
    return [`${head} ${formatScalar(value)}\n`];
  });
}

function formatScalar(value: null | boolean | string | bigint | number): string {
  switch (typeof value) {
    case 'string':
      return formatString(value);
    case 'number':
      return formatFloat(value);
    default:
      return String(value);
  }
}

/** UTF-8 order, which is that of code points; JavaScript's own is that of UTF-16 units. */
function byCodePoint(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a, 'utf8'), Buffer.from(b, 'utf8'));
}

function refuse(reason: string): never {
  throw new BoundbookError('CLAIM_INVALID', `no PRML form: ${reason}`);
}
