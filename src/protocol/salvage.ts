import type { z } from 'zod';
import type { JsonObject, JsonValue } from '../core/json.js';
import type { ProtocolFault } from './fault-list.js';
import { valueAt } from './issues.js';
import { type Path, pointerOf } from './json-pointer.js';
import { FaultCollector, referenceFaults } from './references.js';
import { checkRules } from './rule-checks.js';
import { type Protocol, protocolSchema } from './schema/protocol.js';
import { checkSettings } from './setting-checks.js';

/** Faults of references and settings. */
export function contentFaults(protocol: Protocol, isUnreadable?: Unreadable): readonly ProtocolFault[] {
  const collector = new FaultCollector();
  checkRules(protocol.attempts.rules, collector);
  checkSettings(protocol, collector);
  return [...referenceFaults(protocol, isUnreadable), ...collector.faults];
}

/** Whether something of a kind was declared, but not in a form that can be read. */
export type Unreadable = (kind: string, name: string) => boolean;

/** The part of a protocol whose form is right, and what is wrong with its references and settings. */
export interface Salvage {
  readonly protocol: Protocol;
  readonly faults: readonly ProtocolFault[];
}

/**
 * Takes what can be read of a protocol whose form has faults, so that all of its faults are known at once: unknown keys
 * are left out, a declared thing (arm, queue, contrast, rule) with a fault is left out whole, other settings are
 * replaced by neutral ones. What hangs on a part that was left out or replaced is not faulted.
 *
 * @returns null when the value is no mapping, or cannot be read at all
 */
export function salvage(value: JsonValue): Salvage | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const repair = new Repair(value as JsonObject);
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const parsed = protocolSchema.safeParse(repair.value);
    if (parsed.success) {
      const isUnreadable: Unreadable = (kind, name) => repair.isUnreadable(kind, name);
      const found = contentFaults(parsed.data, isUnreadable);
      return { protocol: parsed.data, faults: found.flatMap((fault) => repair.toOriginal(fault)) };
    }
    for (const issue of parsed.error.issues) repair.take(issue);
    repair.endRound();
  }
  return null;
}

/** A fault of form can hide another one below it. */
const MAX_ROUNDS = 8;

const MAPS: Readonly<Record<string, string>> = {
  task_sets: 'task set',
  models: 'model',
  conditions: 'condition',
  arms: 'arm',
  queues: 'queue',
};

const LISTS: readonly Path[] = [
  ...['scores', 'contrasts', 'tables', 'decisions'].map((name) => ['analysis', name]),
  ['attempts', 'rules'],
  ['precision'],
  ['pending'],
];

/** Settings that cause no fault, for those that cannot be read. */
const NEUTRAL: JsonObject = {
  boundbook: 1,
  name: 'unreadable',
  revision: 1,
  title: 'unreadable',
  task_sets: {},
  models: {},
  conditions: {},
  arms: {},
  queues: {},
  sampling: { namespace: 'unreadable', bits: 31 },
  order: { group_by: [], within: 'hash' },
  runner: {
    adapter: 'openai',
    endpoint: 'chat',
    service: {
      argv: ['{weights}', '{port}'],
      ready: { path: '/', timeout_s: 1 },
      restarts: 0,
      stop_grace_s: 1,
      gpus: 0,
    },
    limits: { request_s: 1, queue_wait_s: 1, response_bytes: 1 },
    sources: {},
  },
  attempts: { replacements: 0, regrades: 0, breaker: 1, rules: [] },
  blinding: 'masked',
  analysis: {
    scores: [{ id: 'unreadable', queue: 'unreadable' }],
    contrasts: [],
    interval: { method: 'two_way_bootstrap', resamples: 100, seed: 0, level: 0.95 },
  },
  pending: [],
};

type Issue = z.core.$ZodIssue;
type Container = Record<string | number, JsonValue>;

class Repair {
  readonly value: Container;
  readonly #original: JsonObject;
  /** Places that were replaced or left out; what is found there or below is not the author's. */
  readonly #damaged = new Set<string>();
  /** Mappings that lost an unknown key: what is missing there may be what the key meant. */
  readonly #stripped = new Set<string>();
  readonly #dropped = new Map<string, Set<number>>();

  constructor(original: JsonObject) {
    this.#original = original;
    this.value = copy(original) as Container;
  }

  take(issue: Issue): void {
    const path = issue.path.map((part) => (typeof part === 'number' ? part : String(part)));
    if (issue.code === 'unrecognized_keys') {
      const container = valueAt(this.value as JsonValue, path) as Container | undefined;
      for (const key of issue.keys) delete container?.[key];
      this.#stripped.add(pointerOf(this.#inOriginal(path)));
      return;
    }
    const [first = ''] = path;
    const list = LISTS.find((each) => path.length > each.length && startsWith(path, each));
    if (list !== undefined) {
      const key = pointerOf(list);
      this.#dropped.set(key, (this.#dropped.get(key) ?? new Set()).add(Number(path[list.length])));
    } else if (path.length > 1 && first in MAPS) {
      this.#damaged.add(pointerOf(path.slice(0, 2)));
      delete (this.value[first] as Container)[path[1] ?? ''];
    } else this.#neutralize(path);
  }

  /** Members of lists go at the end of a round, when no issue counts on their places any more. */
  endRound(): void {
    for (const list of LISTS) {
      const dropped = this.#dropped.get(pointerOf(list));
      const members = valueAt(this.value as JsonValue, list);
      if (dropped === undefined || dropped.size === 0 || !Array.isArray(members)) continue;
      const places = this.#places(list, members.length);
      this.#kept.set(
        pointerOf(list),
        places.filter((_, i) => !dropped.has(i)),
      );
      const parent = valueAt(this.value as JsonValue, list.slice(0, -1)) as Container;
      parent[list.at(-1) ?? ''] = members.filter((_, i) => !dropped.has(i));
      dropped.clear();
    }
  }

  isUnreadable(kind: string, name: string): boolean {
    if (kind === 'contrast') {
      const contrasts = valueAt(this.#original, ['analysis', 'contrasts']);
      if (!Array.isArray(contrasts)) return true;
      return contrasts.some((each: JsonValue) => !isNamed(each) || valueAt(each, ['id']) === name);
    }
    const section = Object.keys(MAPS).find((each) => MAPS[each] === kind) ?? '';
    const declared = this.#original[section];
    if (typeof declared !== 'object' || declared === null || Array.isArray(declared)) return true;
    return Object.hasOwn(declared, name);
  }

  /** A fault at its place in the file; none when it comes of the repair. */
  toOriginal(fault: ProtocolFault): readonly ProtocolFault[] {
    const path = this.#inOriginal(fault.path);
    const pointers = path.map((_, i) => pointerOf(path.slice(0, i + 1)));
    if (pointers.some((pointer) => this.#damaged.has(pointer))) return [];
    if (this.#stripped.has(pointerOf(path))) return [];
    const byAdapter = path.at(-2) === 'grader' && path.at(-1) === 'kind';
    if (byAdapter && (this.#damaged.has('/runner') || this.#damaged.has('/runner/adapter'))) return [];
    // An empty section of queues is a fault only where it is empty in the file.
    const queues = valueAt(this.#original, ['queues']);
    if (pointerOf(path) === '/queues' && Object.keys(queues ?? {}).length > 0) return [];
    return [{ ...fault, path }];
  }

  /** Places in the file of the members that each list still has. */
  readonly #kept = new Map<string, readonly number[]>();

  #places(list: Path, length: number): readonly number[] {
    return this.#kept.get(pointerOf(list)) ?? Array.from({ length }, (_, i) => i);
  }

  #inOriginal(path: Path): Path {
    const list = LISTS.find((each) => path.length > each.length && startsWith(path, each));
    if (list === undefined) return path;
    const place = this.#kept.get(pointerOf(list))?.[Number(path[list.length])];
    return place === undefined ? path : [...list, place, ...path.slice(list.length + 1)];
  }

  #neutralize(path: Path): void {
    let depth = path.length;
    while (depth > 1 && !isSetting(path.slice(0, depth))) depth--;
    const place = path.slice(0, depth);
    const parent = valueAt(this.value as JsonValue, place.slice(0, -1)) as Container | undefined;
    const neutral = valueAt(NEUTRAL, place);
    this.#damaged.add(pointerOf(place));
    if (parent === undefined) return;
    if (neutral === undefined) delete parent[place.at(-1) ?? ''];
    else parent[place.at(-1) ?? ''] = copy(neutral);
  }
}

/** Whether neutral settings have one at that place; lists are taken whole. */
function isSetting(path: Path): boolean {
  return valueAt(NEUTRAL, path) !== undefined && !Array.isArray(valueAt(NEUTRAL, path.slice(0, -1)));
}

function isNamed(member: JsonValue): boolean {
  return typeof valueAt(member, ['id']) === 'string';
}

function startsWith(path: Path, start: Path): boolean {
  return start.every((part, i) => path[i] === part);
}

/** A copy whose mappings have no prototype, to be changed. */
function copy(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copy);
  const made = Object.create(null) as Container;
  for (const [key, item] of Object.entries(value)) made[key] = copy(item);
  return made as JsonObject;
}
