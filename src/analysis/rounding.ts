import { multiply, type Rational, rational } from './rational.js';

/**
 * The one rounding rule of every printed figure: decimal, half away from zero, on the exact value (F-147). The
 * exact half is rounded as written: 2.135 to two digits is 2.14.
 */
export function toFixedDecimal(value: Rational, digits: number): string {
  const scale = 10n ** BigInt(digits);
  const magnitude = value.n < 0n ? -value.n : value.n;
  const rounded = (2n * magnitude * scale + value.d) / (2n * value.d);
  const text = rounded.toString().padStart(digits + 1, '0');
  const whole = text.slice(0, text.length - digits);
  // A value that rounds to zero has no sign.
  const sign = value.n < 0n && rounded !== 0n ? '-' : '';
  return digits === 0 ? `${sign}${whole}` : `${sign}${whole}.${text.slice(-digits)}`;
}

/** Hundred times the value, without a unit: `3.13` for 1/32 with two digits. */
export function toPercent(value: Rational, digits: number): string {
  return toFixedDecimal(multiply(value, rational(100)), digits);
}
