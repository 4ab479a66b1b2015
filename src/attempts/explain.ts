import type { AttributionRule } from '../protocol/schema/attempts.js';
import { type Classification, type Condition, classify, holds, isNameOnly, type When } from './rules.js';
import type { FailureSignals } from './signals.js';

/** A condition of a rule beside what was observed. */
export interface Compared {
  readonly condition: Condition;
  readonly wanted: When[Condition];
  readonly observed: string | number | boolean | null;
}

/** Why a failure was attributed as it was. */
export interface Explanation extends Classification {
  /** The conditions of the rule that fired, all of which hold. */
  readonly evidence: readonly Compared[];
  /** Whether that rule decides: it may be declared insufficient, or rest on names and text alone. */
  readonly decides: 'yes' | 'insufficient' | 'names_only' | 'no_rule';
  /** The rules before it, each with the first of its conditions that does not hold. */
  readonly passed: readonly ({ readonly rule: string } & Compared)[];
}

/** Follows the rules as {@link classify} does and keeps what it looked at. */
export function explain(rules: readonly AttributionRule[], signals: FailureSignals): Explanation {
  const classification = classify(rules, signals);
  const compare = (when: When, condition: Condition): Compared => ({
    condition,
    wanted: when[condition],
    observed: signals[condition] ?? null,
  });
  const conditions = ({ when }: AttributionRule) => Object.keys(when) as Condition[];
  const passed: ({ readonly rule: string } & Compared)[] = [];
  for (const rule of rules) {
    const unmet = conditions(rule).find((condition) => !holds(condition, rule.when, signals));
    if (unmet === undefined) {
      const decides = !rule.sufficient ? 'insufficient' : isNameOnly(rule) ? 'names_only' : 'yes';
      const evidence = conditions(rule).map((condition) => compare(rule.when, condition));
      return { ...classification, evidence, decides, passed };
    }
    passed.push({ rule: rule.id, ...compare(rule.when, unmet) });
  }
  return { ...classification, evidence: [], decides: 'no_rule', passed };
}
