/** Trims space, tab, line feed, vertical tab, form feed and carriage return, and nothing else, in linear time. */
export function trimAscii(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isAsciiSpace(text.charCodeAt(start))) start++;
  while (end > start && isAsciiSpace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isAsciiSpace(unit: number): boolean {
  return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d);
}

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
