import type { Bound } from './bounds.js';
import { compare, type Rational } from './rational.js';

export type Comparator = '>' | '>=' | '<' | '<=';

/** `undecided`: a part of the bound meets the condition and a part does not. */
export type DecisionStatus = 'met' | 'not_met' | 'undecided';

/**
 * Compares a bound with a threshold at its unfavourable end (DESIGN §10): `met` only if every value of the bound
 * meets the condition, `not_met` only if none does.
 */
export function decide(bound: Bound, comparator: Comparator, threshold: Rational): DecisionStatus {
  const lower = holds(bound.lower, comparator, threshold);
  const upper = holds(bound.upper, comparator, threshold);
  if (lower && upper) return 'met';
  return lower || upper ? 'undecided' : 'not_met';
}

function holds(value: Rational, comparator: Comparator, threshold: Rational): boolean {
  const order = compare(value, threshold);
  switch (comparator) {
    case '>':
      return order > 0;
    case '>=':
      return order >= 0;
    case '<':
      return order < 0;
    case '<=':
      return order <= 0;
    default:
      return comparator satisfies never;
  }
}
