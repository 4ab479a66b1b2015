import { type Rational, rational } from '../../src/analysis/rational.js';
import { type TaskTally, tally } from '../../src/analysis/score.js';
import type { Problem } from './tables.js';

/** `5/12` or `3` as a fraction. */
export function parse(text: string): Rational {
  const [n = '', d = '1'] = text.split('/');
  return rational(BigInt(n), BigInt(d));
}

/** Rollouts of one task: `successes` ones among `completed` values. */
export function problem([planned, successes, completed]: Problem): TaskTally {
  return tally([...Array(successes).fill(1), ...Array(completed - successes).fill(0)], planned);
}
