import type { AttributionRule } from '../protocol/schema/attempts.js';
import { classify } from './rules.js';
import type { FailureSignals } from './signals.js';

/** Name of the object in a stage's entry: what lay where the candidate would, when the command that made it was cut. */
export const UNFINISHED = 'unfinished_candidate';

/**
 * Whether what a command left in the place of its candidate is none: it was cut, and the plan's rules call that
 * infrastructure. Otherwise it goes on to grading (P14).
 */
export function isUnfinished(rules: readonly AttributionRule[], cut: FailureSignals): boolean {
  return cut.phase === 'running' && classify(rules, cut).attribution === 'infrastructure';
}
