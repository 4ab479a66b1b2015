import { BoundbookError } from '../core/errors.js';
import { normalQuantile } from './normal.js';

export interface RateInterval {
  readonly low: number;
  readonly high: number;
}

/**
 * Wilson's score interval for a rate (Wilson 1927), without continuity correction. Clipped to [0, 1], and exactly 0
 * or 1 at the ends, where floating point would step outside (statsmodels #7386).
 *
 * @param successes in [0, n]; need not be whole (effective sample sizes)
 * @throws {BoundbookError} INTERNAL for n ≤ 0 or successes outside [0, n].
 */
export function wilsonInterval(successes: number, n: number, level: number): RateInterval {
  if (!(n > 0 && successes >= 0 && successes <= n)) {
    throw new BoundbookError('INTERNAL', `no rate ${successes} of ${n}`);
  }
  const z = normalQuantile((1 + level) / 2);
  const p = successes / n;
  const scale = 1 + (z * z) / n;
  const center = (p + (z * z) / (2 * n)) / scale;
  const half = (z / scale) * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n));
  return {
    low: successes === 0 ? 0 : Math.max(0, center - half),
    high: successes === n ? 1 : Math.min(1, center + half),
  };
}
