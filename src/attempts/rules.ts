import { BoundbookError } from '../core/errors.js';
import type { AttributionRule } from '../protocol/schema/attempts.js';
import type { FailureSignals } from './signals.js';

/** Whose fault a failure is (P12 to P14). */
export type Attribution = 'infrastructure' | 'model' | 'undetermined';

export interface Classification {
  readonly attribution: Attribution;
  /** The rule that fired; null when none did, which leaves the failure undetermined. */
  readonly rule: string | null;
}

/** What a rule asks for, and one of the things that it asks for. */
export type When = AttributionRule['when'];
export type Condition = keyof When;

/** Conditions on what a candidate, a server or a log can write. They narrow a rule and never carry it (law 7). */
const WEAK = new Set(['exception', 'text']);

/** Says where a failure was seen, not what was seen: it cannot turn a name into a cause. */
const PLACE = 'stage';

/**
 * Attributes a failure by the protocol's rules, first match first. A rule that matches but whose signals do not
 * suffice, or whose conditions are names and text alone, leaves the failure undetermined; so does no match (P14).
 *
 * @throws {BoundbookError} PROTOCOL_INVALID for a `text` condition that is no regular expression.
 */
export function classify(rules: readonly AttributionRule[], signals: FailureSignals): Classification {
  const rule = rules.find((candidate) => matches(candidate.when, signals));
  if (rule === undefined) return { attribution: 'undetermined', rule: null };
  const carries = rule.sufficient && !isNameOnly(rule);
  return { attribution: carries ? rule.attribute : 'undetermined', rule: rule.id };
}

/** Whether a rule rests on exception names or text alone, the stage apart (law 7: a name is not a cause). */
export function isNameOnly(rule: AttributionRule): boolean {
  const conditions = Object.keys(rule.when);
  const rest = conditions.filter((condition) => !WEAK.has(condition));
  return rest.length < conditions.length && rest.every((condition) => condition === PLACE);
}

function matches(when: When, signals: FailureSignals): boolean {
  for (const condition in when) if (!holds(condition as Condition, when, signals)) return false;
  return true;
}

/** Whether one condition of a rule holds for what was observed. A condition on what was not observed does not. */
export function holds(condition: Condition, when: When, signals: FailureSignals): boolean {
  switch (condition) {
    case 'http_status':
    case 'embedded_status':
      return statusIn(when[condition], signals[condition]);
    case 'service_alive':
    case 'first_token':
    case 'oom_kill':
      return when[condition] === undefined || when[condition] === signals[condition];
    case 'text':
      return when.text === undefined || (signals.text !== null && pattern(when.text).test(signals.text));
    default:
      return oneOf<string | number>(when[condition], signals[condition] ?? null);
  }
}

function pattern(source: string): RegExp {
  try {
    return new RegExp(source, 'iu');
  } catch (error) {
    throw new BoundbookError(
      'PROTOCOL_INVALID',
      `the rule text ${JSON.stringify(source)} is no regular expression`,
      { hint: 'Correct the pattern; the flags i and u are set.', cause: error },
    );
  }
}

function oneOf<T>(allowed: T | readonly T[] | undefined, value: T | null): boolean {
  if (allowed === undefined) return true;
  if (value === null) return false;
  return Array.isArray(allowed) ? allowed.includes(value) : allowed === value;
}

type StatusCondition = When['http_status'];

function statusIn(allowed: StatusCondition, status: number | null): boolean {
  if (allowed === undefined) return true;
  if (status === null) return false;
  const list = Array.isArray(allowed) ? allowed : [allowed];
  return list.some((item) => item === status || item === `${Math.floor(status / 100)}xx`);
}
