import { type Compared, type Explanation, explain, firedOn } from '../attempts/explain.js';
import type { Attribution } from '../attempts/rules.js';
import type { FailureSignals } from '../attempts/signals.js';
import type { JsonObject, JsonValue } from '../core/json.js';
import { MASK } from '../ledger/mask.js';
import type { AttributionRule } from '../protocol/schema/attempts.js';

/** A failed attempt whose entries are shown, and why it was attributed as it was. */
export interface ExplainedFailure {
  readonly attempt: string;
  readonly explanation: Explanation;
}

/**
 * Tells of each attribution by a rule among the entries of a slot what the ledger recorded. It reads nothing but these entries,
 * so that nothing is explained that is masked, and decides nothing again: what is masked of the signals would decide otherwise.
 *
 * @param visible whether outcomes may be shown; while they may not, rules that did not fire are not spoken of
 */
export function explainFailures(
  rules: readonly AttributionRule[],
  entries: readonly JsonObject[],
  visible: boolean,
): readonly ExplainedFailure[] {
  return entries.flatMap((entry) => {
    if (entry.type !== 'attribution.recorded' || entry.by !== 'rule') return [];
    const attempt = String(entry.attempt);
    const signals = signalsOf(entries, attempt);
    if (signals === null) return [];
    const fired = rules.find(({ id }) => id === entry.rule);
    const told: Explanation = {
      attribution: entry.attribution as Attribution,
      rule: fired?.id ?? null,
      ...(fired === undefined ? NO_RULE : firedOn(fired, signals)),
      passed: visible ? explain(rules, signals).passed : [],
    };
    return [{ attempt, explanation: told }];
  });
}

const NO_RULE = { evidence: [], decides: 'no_rule' } as const;

function signalsOf(entries: readonly JsonObject[], attempt: string): FailureSignals | null {
  for (const { type, attempt: of, result } of entries) {
    if (type !== 'stage.finished' || of !== attempt) continue;
    if (isObject(result) && isObject(result.signals)) return result.signals as unknown as FailureSignals;
  }
  return null;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const DECIDES: Readonly<Record<Explanation['decides'], string>> = {
  yes: 'which suffices',
  insufficient: 'which the plan declares insufficient',
  names_only: 'which are names and text alone and never suffice',
  no_rule: '',
};

/** Paragraphs for people; empty when there is nothing to explain. */
export function failuresText(failures: readonly ExplainedFailure[]): readonly string[] {
  return failures.map(({ attempt, explanation: { attribution, rule, evidence, decides, passed } }) => {
    const head =
      rule === null
        ? `Attempt ${attempt.slice(0, 8)}: ${attribution}, because no rule matches.`
        : `Attempt ${attempt.slice(0, 8)}: ${attribution}. The rule ${rule} fired on these signals, ${DECIDES[decides]}:`;
    return [
      head,
      ...evidence.map((one) => `  ${observedText(one)}; ${rule} asks for ${wanted(one)}`),
      ...passed.map((one) => `  passed over ${one.rule}: ${observedText(one)}, not ${wanted(one)}`),
    ].join('\n');
  });
}

export function failuresJson(failures: readonly ExplainedFailure[]): JsonValue {
  return failures.map(({ attempt, explanation }) => ({
    attempt,
    attribution: explanation.attribution,
    rule: explanation.rule,
    decides: explanation.decides,
    evidence: explanation.evidence.map(comparedJson),
    passed: explanation.passed.map(({ rule, ...compared }) => ({ rule, ...comparedJson(compared) })),
  }));
}

function comparedJson({ condition, wanted, observed }: Compared) {
  return { condition, wanted: (wanted ?? null) as JsonValue, observed };
}

function wanted({ condition, wanted: allowed }: Compared): string {
  if (condition === 'text') return `a text like /${String(allowed)}/`;
  return Array.isArray(allowed) ? allowed.map(String).join(' or ') : String(allowed);
}

function observedText({ condition, observed }: Compared): string {
  return observed === MASK ? `${condition} ${MASK}` : `${condition} is ${value(observed)}`;
}

function value(observed: Compared['observed']): string {
  if (observed === null) return 'not observed';
  return typeof observed === 'string' && observed.length > 60
    ? `${JSON.stringify(observed.slice(0, 60))}…`
    : typeof observed === 'string' && !/^\w+$/.test(observed)
      ? JSON.stringify(observed)
      : String(observed);
}
