import { type TaskTally, tally } from '../../src/analysis/score.js';
import type { Problem } from './tables.js';

/** Rollouts of one task: `successes` ones among `completed` values. */
export function problem([planned, successes, completed]: Problem): TaskTally {
  return tally([...Array(successes).fill(1), ...Array(completed - successes).fill(0)], planned);
}
