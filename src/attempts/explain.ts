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
  const passed: ({ readonly rule: string } & Compared)[] = [];
  for (const rule of rules) {
    const unmet = conditionsOf(rule).find((condition) => !holds(condition, rule.when, signals));
    if (unmet === undefined) return { ...classification, ...firedOn(rule, signals), passed };
    passed.push({ rule: rule.id, ...compare(rule.when, unmet, signals) });
  }
  return { ...classification, evidence: [], decides: 'no_rule', passed };
}

/** What a rule asks for beside what was observed, without a look at whether it holds. */
export function firedOn(
  rule: AttributionRule,
  signals: FailureSignals,
): Pick<Explanation, 'evidence' | 'decides'> {
  const evidence = conditionsOf(rule).map((condition) => compare(rule.when, condition, signals));
  return { evidence, decides: !rule.sufficient ? 'insufficient' : isNameOnly(rule) ? 'names_only' : 'yes' };
}

function conditionsOf({ when }: AttributionRule): readonly Condition[] {
  return Object.keys(when) as Condition[];
}

function compare(when: When, condition: Condition, signals: FailureSignals): Compared {
  return { condition, wanted: when[condition], observed: signals[condition] ?? null };
}
