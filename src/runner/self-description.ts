import { canonicalBytes, canonicalText } from '../core/canonical-json.js';
import type { JsonObject, JsonValue } from '../core/json.js';
import { parseStrictJson } from '../core/strict-json.js';
import { pointerOf } from '../protocol/json-pointer.js';

/**
 * What a service is asked about itself (harnesses §15.1): all; vLLM; llama.cpp; SGLang, and by its newer name vLLM too.
 * What it does not know is recorded as null.
 */
export const SELF_DESCRIPTION = [
  '/v1/models',
  '/version',
  '/props',
  '/get_server_info',
  '/server_info',
] as const;

/** Changes that are listed; all are counted. */
export const MAX_CHANGES = 50;
/** UTF-16 code units of a listed pointer. */
const MAX_POINTER = 150;

/** Members, at any depth, that change while a server stays the same: clocks, random names, what it is busy with. */
const VOLATILE = new Set([
  'created',
  'permission',
  'modified_at',
  'timestamp',
  'uptime',
  'uptime_s',
  'uptime_seconds',
  'internal_states',
  'last_gen_throughput',
  'is_processing',
  'is_sleeping',
  'id_task',
  'id_slot',
  'next_token',
  'n_decoded',
  'n_past',
  'slots',
  'slots_idle',
  'slots_processing',
]);
/** Of `/props`: the state of the slot whose settings are shown as the default ones. */
const VOLATILE_PLACES = new Set([
  '/~1props/default_generation_settings/id',
  '/~1props/default_generation_settings/prompt',
]);
/** Members that differ from one start to the next of the same server: addresses, processes, places on a host. */
const OF_A_START = new Set([
  'port',
  'nccl_port',
  'dist_init_addr',
  'pid',
  'random_seed',
  'root',
  'model_path',
  'tokenizer_path',
]);

export interface DescriptionChanges {
  /** JSON pointers into the description. */
  readonly changed: readonly string[];
  readonly total: number;
}

/** A description as it is kept. */
export function describedBytes(answers: Readonly<Record<string, Buffer | null>>): Buffer {
  const described: Record<string, JsonValue> = {};
  for (const [path, body] of Object.entries(answers))
    described[path] = body === null ? null : jsonOrNull(body);
  return canonicalBytes(described);
}

/**
 * Where two descriptions differ, in the order of sorted keys. A path that one of them was not asked for is passed over.
 *
 * @param at whether a service is held against its own start, or against an earlier one of its model
 */
export function descriptionChanges(before: Buffer, after: Buffer, at: 'start' | 'end'): DescriptionChanges {
  const [left, right] = [objectIn(before), objectIn(after)];
  const found = new Changes(at);
  for (const path of Object.keys(left)
    .filter((key) => Object.hasOwn(right, key))
    .sort()) {
    found.compare(left[path], right[path], pointerOf([path]));
  }
  return { changed: found.listed, total: found.total };
}

class Changes {
  readonly listed: string[] = [];
  total = 0;
  readonly #at: 'start' | 'end';

  constructor(at: 'start' | 'end') {
    this.#at = at;
  }

  compare(before: JsonValue | undefined, after: JsonValue | undefined, pointer: string): void {
    if (isObject(before) && isObject(after)) {
      for (const key of [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()) {
        const place = pointer + pointerOf([key]);
        if (this.#isVolatile(key, place)) continue;
        this.compare(own(before, key), own(after, key), place);
      }
    } else if (isList(before) && isList(after) && before.length === after.length) {
      for (const [i, item] of before.entries()) this.compare(item, after[i], `${pointer}/${i}`);
    } else if (!isSame(before, after)) {
      this.total++;
      if (this.listed.length < MAX_CHANGES) this.listed.push(cut(pointer));
    }
  }

  #isVolatile(key: string, place: string): boolean {
    return VOLATILE.has(key) || VOLATILE_PLACES.has(place) || (this.#at === 'start' && OF_A_START.has(key));
  }
}

/** The ids of the OpenAI model list in a description; null for anything else. */
export function modelsIn(description: Buffer): string[] | null {
  const list = own(objectIn(description), '/v1/models');
  const data = isObject(list) ? own(list, 'data') : null;
  if (!isList(data)) return null;
  return data.flatMap((item) => {
    const id = isObject(item) ? own(item, 'id') : null;
    return typeof id === 'string' ? [id] : [];
  });
}

/** What a description says of the program's version, for people; null when it says nothing. */
export function versionIn(description: Buffer): string | null {
  const all = objectIn(description);
  const member = (path: string, name: string): JsonValue | undefined => {
    const answer = own(all, path);
    return isObject(answer) ? own(answer, name) : undefined;
  };
  const said = [
    member('/version', 'version'),
    member('/props', 'build_info'),
    member('/get_server_info', 'version'),
    member('/server_info', 'version'),
  ].find((each) => typeof each === 'string');
  return typeof said === 'string' ? said.slice(0, 100).toWellFormed() : null;
}

/** Bytes of a description as its members; none for what is no description. */
function objectIn(description: Buffer): JsonObject {
  const value = jsonOrNull(description);
  return isObject(value) ? value : {};
}

function jsonOrNull(body: Buffer): JsonValue {
  try {
    const value = parseStrictJson(body, 'the description');
    canonicalBytes(value);
    return value;
  } catch {
    return null;
  }
}

function own(value: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

function isSame(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a === b || canonicalText(a) === canonicalText(b);
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function cut(pointer: string): string {
  return pointer.slice(0, MAX_POINTER).toWellFormed();
}
