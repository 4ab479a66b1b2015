import type { JsonObject, JsonValue } from '../../core/json.js';
import { OF_THE_HOST, type Wanted } from '../../protocol/config-template.js';
import type { TrialExpectations } from './harbor-config.js';

/** What a trial left that says what it was. */
export interface TrialPapers {
  readonly result: JsonObject;
  /** `config.json` and `lock.json`; null when they are absent or cannot be read. */
  readonly config: JsonObject | null;
  readonly lock: JsonObject | null;
}

/** Members of a lock that repeat the config's of the same name. */
const LOCKED = [
  'agent',
  'environment',
  'verifier',
  'timeout_multiplier',
  'agent_timeout_multiplier',
  'verifier_timeout_multiplier',
  'agent_setup_timeout_multiplier',
  'environment_build_timeout_multiplier',
] as const;

/**
 * Where what ran differs from what the plan fixes; null when nowhere. The result's config is whole and must hold all
 * that was asked for; files that leave defaults out must not contradict it. A trial that was made from another one
 * (`source_trial`) is none of ours.
 */
export function mismatch({ result, config, lock }: TrialPapers, expected: TrialExpectations): string | null {
  if (config === null) return 'config.json cannot be read';
  if (lock === null) return 'lock.json cannot be read';
  const asked = isObject(expected.config) ? expected.config : {};
  if (result.trial_name !== expected.trial) return 'result.json is of another trial';
  if (config.trial_name !== expected.trial) return 'config.json is of another trial';
  const whole = asRecord(result.config);
  const derived = [whole?.source_trial, config.source_trial, lock.source_trial];
  if (derived.some((source) => source !== undefined && source !== null))
    return 'it was made from another trial';
  return (
    difference({ ...asked, trial_name: expected.trial }, whole ?? undefined, 'whole', 'result.json/config') ??
    difference(asked, config, 'part', 'config.json') ??
    lockDifference(asked, lock) ??
    taskDifference(lock, expected.taskDigest) ??
    agentDifference(asked, asRecord(result.agent_info))
  );
}

function lockDifference(asked: { readonly [key: string]: Wanted }, lock: JsonObject): string | null {
  if (asked.agent !== undefined && asRecord(lock.agent) === null) return 'lock.json names no agent';
  const both = LOCKED.filter((key) => Object.hasOwn(asked, key));
  return difference(
    Object.fromEntries(both.map((key) => [key, asked[key] ?? null])),
    lock,
    'part',
    'lock.json',
  );
}

function taskDifference(lock: JsonObject, digest: string | null): string | null {
  const found = asRecord(lock.task)?.digest;
  if (typeof found !== 'string') return 'lock.json has no digest of the task';
  return digest === null || found === digest ? null : `the task's digest is ${shown(found)}, not ${digest}`;
}

function agentDifference(asked: { readonly [key: string]: Wanted }, info: JsonObject | null): string | null {
  const name = isObject(asked.agent) ? asked.agent.name : undefined;
  if (typeof name !== 'string' || info === null || info.name === name) return null;
  return `the agent that ran is ${shown(info.name)}, not ${name}`;
}

/** @param extent whether what is missing counts as a difference */
function difference(
  wanted: Wanted,
  found: JsonValue | undefined,
  extent: 'whole' | 'part',
  at: string,
): string | null {
  if (wanted === OF_THE_HOST) return null;
  if (found === undefined) return extent === 'whole' ? `${at} is missing` : null;
  if (Array.isArray(wanted)) {
    const items = Array.isArray(found) ? (found as readonly JsonValue[]) : null;
    if (items?.length !== wanted.length) return `${at} has other items`;
    return firstOf(
      wanted.map((item, i) => [item as Wanted, items[i], `${at}/${i}`]),
      extent,
    );
  }
  if (isObject(wanted)) {
    const record = asRecord(found);
    if (record === null) return `${at} is ${shown(found)}`;
    const own = (key: string) => (Object.hasOwn(record, key) ? record[key] : undefined);
    return firstOf(
      Object.entries(wanted).map(([key, item]) => [item, own(key), `${at}/${key}`]),
      extent,
    );
  }
  return wanted === found ? null : `${at} is ${shown(found)}, not ${shown(wanted as JsonValue)}`;
}

function firstOf(
  pairs: readonly (readonly [Wanted, JsonValue | undefined, string])[],
  extent: 'whole' | 'part',
): string | null {
  for (const [wanted, found, at] of pairs) {
    const problem = difference(wanted, found, extent, at);
    if (problem !== null) return problem;
  }
  return null;
}

export function asRecord(value: JsonValue | undefined): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}

function isObject(value: Wanted | undefined): value is { readonly [key: string]: Wanted } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shown(value: JsonValue | undefined): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, 80).toWellFormed();
}
