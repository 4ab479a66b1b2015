import { canonicalText } from '../core/canonical-json.js';
import type { Path } from './json-pointer.js';
import type { FaultCollector } from './references.js';
import type { AttributionRule } from './schema/attempts.js';

type When = AttributionRule['when'];

/** Conditions on what a candidate, a server or a log can write; the stage only says where it was seen. */
const WEAK: ReadonlySet<string> = new Set(['exception', 'text', 'stage']);

/** What whatever runs for an attempt can bring about as it likes: with a name or a text beside it, it is no evidence. */
const CHOSEN: Readonly<Record<string, ReadonlySet<string> | 'any'>> = {
  exit_status: 'any',
  signal: 'any',
  oom_kill: 'any',
  first_token: 'any',
  service_alive: new Set(['true']),
  cause: new Set([
    'exit_status',
    'killed_by_signal',
    'time_limit',
    'idle_limit',
    'candidate_missing',
    'report_missing',
    'report_invalid',
    'grader_fault',
    'trial_exception',
    'trial_unreadable',
    'room_damaged',
  ]),
  phase: new Set(['running', 'collect', 'agent_execution']),
};

/** Checks the attribution rules: patterns compile, names carry no verdict (law 7), every rule can fire. */
export function checkRules(rules: readonly AttributionRule[], collector: FaultCollector): void {
  rules.forEach((rule, i) => {
    const path: Path = ['attempts', 'rules', i];
    checkPattern(rule.when.text, [...path, 'when', 'text'], collector);
    if (rule.sufficient && restsOnNames(rule.when)) {
      collector.add(
        [...path, 'sufficient'],
        'a rule cannot suffice on an exception name or a text, nor on one beside what a candidate can bring about (law 7)',
        'Add a signal that it cannot choose (http_status, service_alive, host_event, a phase before it ran, another cause), or set sufficient: false.',
      );
    }
    const shadow = rules.slice(0, i).find((earlier) => covers(earlier.when, rule.when));
    if (shadow !== undefined) {
      collector.add(
        [...path, 'when'],
        `this rule can never fire: ${JSON.stringify(shadow.id)} before it matches whatever it matches`,
        'Rules are tried in order; put the narrower one first, or remove one.',
      );
    }
  });
}

/** Checks that the `text` of a rule is a regular expression. */
export function checkPattern(source: string | undefined, path: Path, collector: FaultCollector): void {
  if (source === undefined) return;
  try {
    new RegExp(source, 'iu');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    collector.add(path, `the text is no regular expression: ${reason}`, 'Correct or escape it.');
  }
}

/** Names that do not settle who is at fault (P14): neither does the verifier's being at work. */
const UNSETTLED: ReadonlySet<string> = new Set([
  'RewardFileNotFoundError',
  'VerifierTimeoutError',
  'EnvironmentDead',
]);

/** Whether a rule rests on exception names or texts, with no typed signal beside them that a candidate cannot choose. */
function restsOnNames(when: When): boolean {
  if (when.exception === undefined && when.text === undefined) return false;
  const isUnsettled = listOf(when.exception).some((name) => UNSETTLED.has(String(name)));
  return Object.entries(when).every(
    ([condition, allowed]) =>
      WEAK.has(condition) || isChosen(condition, allowed) || (isUnsettled && isVerifier(condition, allowed)),
  );
}

function isVerifier(condition: string, allowed: unknown): boolean {
  return condition === 'phase' && listOf(allowed).includes('verifier');
}

function isChosen(condition: string, allowed: unknown): boolean {
  const chosen = CHOSEN[condition];
  return chosen === 'any' || listOf(allowed).some((value) => chosen?.has(String(value)) === true);
}

/** Whether everything that `narrow` matches is matched by `wide`: each condition of `wide` holds for all of it. */
function covers(wide: When, narrow: When): boolean {
  return Object.entries(wide).every(([condition, allowed]) => {
    const values = narrow[condition as keyof When];
    if (values === undefined || allowed === undefined) return allowed === undefined;
    if (condition === 'text') return allowed === values;
    const wideValues = listOf(allowed);
    return listOf(values).every((value) => wideValues.some((item) => includesStatus(item, value)));
  });
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

function includesStatus(item: unknown, value: unknown): boolean {
  if (canonicalText(item) === canonicalText(value)) return true;
  return typeof value === 'number' && item === `${Math.floor(value / 100)}xx`;
}
