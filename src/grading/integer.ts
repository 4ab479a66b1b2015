import { trimAscii } from '../core/trim.js';

/**
 * Reads a whole text as one decimal integer, `[+-]?[0-9]+` between ASCII white space, of any length (F-81).
 *
 * @returns the shortest decimal form (no plus sign, no leading zeros, no minus zero), so that equal text is equal
 * value without a big-number parse of hostile input; null for anything else (`１`, `1.0`, `1,0`, `0x1`, nothing).
 */
export function canonicalInteger(text: string): string | null {
  const match = /^([+-]?)([0-9]+)$/.exec(trimAscii(text));
  const digits = match?.[2];
  if (digits === undefined) return null;
  let first = 0;
  while (first < digits.length - 1 && digits[first] === '0') first++;
  const magnitude = digits.slice(first);
  return match?.[1] === '-' && magnitude !== '0' ? `-${magnitude}` : magnitude;
}
