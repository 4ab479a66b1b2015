import { BoundbookError } from '../core/errors.js';

/** An exact fraction in lowest terms with a positive denominator. */
export interface Rational {
  readonly n: bigint;
  readonly d: bigint;
}

export const ZERO: Rational = { n: 0n, d: 1n };
export const ONE: Rational = { n: 1n, d: 1n };

/** @throws {BoundbookError} INTERNAL when the denominator is zero. */
export function rational(n: bigint | number, d: bigint | number = 1n): Rational {
  const numerator = BigInt(n);
  const denominator = BigInt(d);
  if (denominator === 0n) throw new BoundbookError('INTERNAL', 'a fraction over zero');
  const divisor = greatestCommonDivisor(numerator, denominator) * (denominator < 0n ? -1n : 1n);
  return { n: numerator / divisor, d: denominator / divisor };
}

/**
 * A finite number as the fraction that its shortest decimal form names: 0.1 is 1/10. Rewards reach a report as
 * decimal text in JSON, so the decimal is the recorded value and the binary double its image; sums of such
 * fractions do not depend on the order of rows (F-147).
 *
 * @throws {BoundbookError} INTERNAL for NaN and infinities.
 */
export function fromNumber(value: number): Rational {
  if (Number.isSafeInteger(value)) return { n: BigInt(value), d: 1n };
  const match = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(value.toExponential());
  if (match === null) throw new BoundbookError('INTERNAL', `${value} is not a finite number`);
  const [, sign = '', whole = '', fraction = '', exponent = ''] = match;
  const digits = BigInt(`${sign}${whole}${fraction}`);
  const power = Number(exponent) - fraction.length;
  return power >= 0 ? rational(digits * 10n ** BigInt(power)) : rational(digits, 10n ** BigInt(-power));
}

export function add(a: Rational, b: Rational): Rational {
  if (a.d === b.d) return a.d === 1n ? { n: a.n + b.n, d: 1n } : rational(a.n + b.n, a.d);
  return rational(a.n * b.d + b.n * a.d, a.d * b.d);
}

export function subtract(a: Rational, b: Rational): Rational {
  return add(a, { n: -b.n, d: b.d });
}

export function multiply(a: Rational, b: Rational): Rational {
  return rational(a.n * b.n, a.d * b.d);
}

export function divide(a: Rational, b: Rational): Rational {
  return rational(a.n * b.d, a.d * b.n);
}

/** Negative, zero or positive, as a − b is. */
export function compare(a: Rational, b: Rational): number {
  const left = a.n * b.d;
  const right = b.n * a.d;
  return left < right ? -1 : left > right ? 1 : 0;
}

export function sum(values: readonly Rational[]): Rational {
  return values.reduce(add, ZERO);
}

/** @throws {BoundbookError} INTERNAL for an empty list: a mean of nothing is undefined, never 0. */
export function mean(values: readonly Rational[]): Rational {
  return divide(sum(values), rational(values.length));
}

/** The nearest double. */
export function toNumber(value: Rational): number {
  const magnitude = value.n < 0n ? -value.n : value.n;
  if (magnitude <= MAX_EXACT && value.d <= MAX_EXACT) return Number(value.n) / Number(value.d);
  // At least 64 significant bits, the last of them sticky: Number() then rounds as if it had seen all of them.
  const shift = Math.max(0, 64 - bitLength(magnitude) + bitLength(value.d));
  const scaled = magnitude << BigInt(shift);
  const quotient = scaled / value.d;
  const sticky = quotient * value.d === scaled ? 0n : 1n;
  // Two steps, since 2^-shift alone may be too small for a double.
  const half = Math.floor(shift / 2);
  const result = Number(quotient | sticky) * 2 ** -half * 2 ** (half - shift);
  return value.n < 0n ? -result : result;
}

/** `5/12`, or `3` for a whole number: the form in which a report states an exact value. */
export function toText(value: Rational): string {
  return value.d === 1n ? String(value.n) : `${value.n}/${value.d}`;
}

/** Reads what {@link toText} wrote. @throws {BoundbookError} INTERNAL for any other text. */
export function fromText(text: string): Rational {
  const match = /^(-?[0-9]+)(?:\/([0-9]+))?$/.exec(text);
  if (match?.[1] === undefined) throw new BoundbookError('INTERNAL', `${text} is not a fraction`);
  return rational(BigInt(match[1]), BigInt(match[2] ?? 1));
}

const MAX_EXACT = BigInt(Number.MAX_SAFE_INTEGER);

function bitLength(value: bigint): number {
  return value.toString(2).length;
}

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  let x = a < 0n ? -a : a;
  let y = b < 0n ? -b : b;
  while (y !== 0n) [x, y] = [y, x % y];
  return x === 0n ? 1n : x;
}
