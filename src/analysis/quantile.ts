import { BoundbookError } from '../core/errors.js';

/**
 * Quantile of type 7 (Hyndman and Fan 1996; R's default, numpy's "linear"): h = (n − 1)p, linear between the order
 * statistics around it.
 *
 * @param sorted ascending by number
 * @param p in [0, 1]
 * @throws {BoundbookError} INTERNAL for an empty list or a p outside [0, 1].
 */
export function quantile(sorted: ArrayLike<number>, p: number): number {
  if (sorted.length === 0 || !(p >= 0 && p <= 1)) {
    throw new BoundbookError('INTERNAL', `no quantile ${p} of ${sorted.length} values`);
  }
  const position = (sorted.length - 1) * p;
  const index = Math.floor(position);
  const low = sorted[index] ?? Number.NaN;
  const high = sorted[Math.min(index + 1, sorted.length - 1)] ?? Number.NaN;
  return low + (position - index) * (high - low);
}
