import { sha256Hex } from '../core/digest.js';

/** Share of the stopped outputs that a recheck generates again: `1`, or `0.` and up to nine digits, the last of them not 0. */
export const FRACTION = /^(?:1|0\.[0-9]{0,8}[1-9])$/;

const DOMAIN = 'boundbook/recheck/1\0';

/**
 * The slots of a recheck, which nobody can choose: the `ceil(fraction · count)` lowest by the SHA-256 over domain, manifest
 * digest and slot id.
 *
 * @param fraction as {@link FRACTION}
 * @returns ids, ascending
 */
export function recheckSample(stopped: readonly string[], fraction: string, manifest: string): string[] {
  return stopped
    .map((slot) => ({ slot, rank: sha256Hex(`${DOMAIN}${manifest}${slot}`) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : 1))
    .slice(0, sampleSize(fraction, stopped.length))
    .map(({ slot }) => slot)
    .sort();
}

/** Exact, whatever the fraction is in binary. */
function sampleSize(fraction: string, count: number): number {
  const digits = fraction === '1' ? '' : fraction.slice(2);
  const whole = 10n ** BigInt(digits.length);
  const share = digits === '' ? whole : BigInt(digits);
  return Number((share * BigInt(count) + whole - 1n) / whole);
}
