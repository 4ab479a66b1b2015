import { BoundbookError } from '../../core/errors.js';
import type { JsonObject, JsonValue } from '../../core/json.js';
import { parseStrictJson } from '../../core/strict-json.js';
import type { Cause } from '../../protocol/schema/signals.js';
import type { RewardGrader } from './harbor-config.js';
import { asRecord } from './harbor-match.js';
import { instantMs } from './harbor-time.js';

/** A reward file as it was found; its times are milliseconds since 1970, rounded down. */
export interface RewardFile {
  readonly name: string;
  readonly bytes: Buffer;
  readonly modifiedMs: number;
  readonly changedMs: number;
}

export type RewardReading =
  | { readonly ok: true; readonly value: number }
  | { readonly ok: false; readonly cause: Cause; readonly text: string };

/** File times come from a clock of the kernel that lags behind by up to one tick. */
const TICK_MS = 10;

const NUMBER = /^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;

/**
 * The reward of a trial whose verifier began: the declared key of the result's rewards, finite and in the range; null
 * is what Harbor writes for NaN and is no 0. The reward files that are there must give the same value and be of the
 * verifier's time: one that was planted before, or that another one overruled, makes the report invalid. So does a
 * verifier that began before the agent had ended.
 *
 * @param files `verifier/reward.json` and `verifier/reward.txt`, as far as they are there
 */
export function readReward(
  result: JsonObject,
  files: readonly RewardFile[],
  { key, reward: { min, max } }: RewardGrader,
): RewardReading {
  const rewards = asRecord(result.verifier_result)?.rewards;
  if (rewards === undefined || rewards === null)
    return { ok: false, cause: 'report_missing', text: 'no reward' };
  const record = asRecord(rewards);
  if (record === null || !Object.hasOwn(record, key))
    return invalid(`there is no reward ${JSON.stringify(key)}`);
  const value = record[key];
  if (typeof value !== 'number')
    return invalid(`the reward is ${JSON.stringify(value)?.slice(0, 40)}, no number`);
  if (!(value >= min && value <= max)) return invalid(`the reward ${value} lies outside [${min}, ${max}]`);
  const began = instantMs(asRecord(result.verifier)?.started_at);
  if (began === null) return invalid('when the verifier began is not said');
  if (!isInOrder(result)) return invalid('the times of its phases contradict each other');
  // A text holds the reward "reward" and no other.
  const telling = files.filter(({ name }) => name.endsWith('.json') || key === 'reward');
  if (telling.length === 0) return invalid('there is no reward file');
  for (const file of telling) {
    if (Math.min(file.modifiedMs, file.changedMs) < began - TICK_MS) {
      return invalid(`${file.name} is older than the verifier's start`);
    }
    const written = file.name.endsWith('.json') ? fromJson(file.bytes, key) : fromText(file.bytes);
    if (written !== value) return invalid(`${file.name} does not give the reward ${value}`);
  }
  return { ok: true, value: value === 0 ? 0 : value };
}

const PHASES = ['environment_setup', 'agent_setup', 'agent_execution', 'verifier'] as const;

/** Whether the times that a result says of itself and its phases, which follow one another, never go back. */
function isInOrder(result: JsonObject): boolean {
  const phases = PHASES.map((name) => asRecord(result[name]));
  const said = [
    result.started_at,
    ...phases.flatMap((phase) => [phase?.started_at, phase?.finished_at]),
    result.finished_at,
  ];
  const times = said.flatMap((time) => instantMs(time) ?? []);
  return times.every((time, i) => time >= (times[i - 1] ?? time));
}

function fromText(bytes: Buffer): number | null {
  const text = bytes.toString('latin1').replace(/^[\t-\r ]+|[\t-\r ]+$/g, '');
  return NUMBER.test(text) ? Number(text) : null;
}

/** Booleans and numeric strings count as Harbor counts them. */
function fromJson(bytes: Buffer, key: string): number | null {
  let parsed: JsonValue;
  try {
    parsed = parseStrictJson(bytes, 'the reward file');
  } catch (error) {
    if (error instanceof BoundbookError) return null;
    throw error;
  }
  const record = asRecord(parsed);
  const value = record !== null && Object.hasOwn(record, key) ? record[key] : null;
  if (typeof value === 'boolean') return Number(value);
  if (typeof value === 'string') return NUMBER.test(value) ? Number(value) : null;
  return typeof value === 'number' ? value : null;
}

function invalid(text: string): RewardReading {
  return { ok: false, cause: 'report_invalid', text };
}
