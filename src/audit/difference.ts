import type { JsonValue } from '../core/json.js';
import { type Path, pointerOf } from '../protocol/json-pointer.js';

/** One place at which two JSON values differ. A side that has nothing there is undefined. */
export interface Difference {
  readonly pointer: string;
  readonly expected: JsonValue | undefined;
  readonly actual: JsonValue | undefined;
}

/** The places at which two JSON values differ, the deepest ones, in the order of sorted keys; at most `limit`. */
export function differences(expected: JsonValue, actual: JsonValue, limit: number): readonly Difference[] {
  const found: Difference[] = [];
  compare(expected, actual, [], found, limit);
  return found;
}

function compare(
  expected: JsonValue | undefined,
  actual: JsonValue | undefined,
  path: Path,
  found: Difference[],
  limit: number,
): void {
  if (found.length >= limit || expected === actual) return;
  const left = membersOf(expected);
  const right = membersOf(actual);
  if (left === null || right === null || left.isList !== right.isList) {
    found.push({ pointer: pointerOf(path), expected, actual });
    return;
  }
  for (const key of [...new Set([...left.members.keys(), ...right.members.keys()])].sort(byKey)) {
    compare(left.members.get(key), right.members.get(key), [...path, key], found, limit);
  }
}

interface Members {
  readonly isList: boolean;
  readonly members: ReadonlyMap<string | number, JsonValue>;
}

function membersOf(value: JsonValue | undefined): Members | null {
  if (typeof value !== 'object' || value === null) return null;
  if (Array.isArray(value)) {
    return { isList: true, members: new Map((value as readonly JsonValue[]).map((item, i) => [i, item])) };
  }
  return { isList: false, members: new Map(Object.entries(value)) };
}

function byKey(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a) < String(b) ? -1 : 1;
}

/** A value short enough for a finding. */
export function shorten(value: JsonValue | undefined): JsonValue {
  if (value === undefined) return null;
  const text = JSON.stringify(value);
  return text.length <= 300 ? value : `${text.slice(0, 300).toWellFormed()}…`;
}

/** A value as a finding's message quotes it. */
export function shown(value: JsonValue | undefined): string {
  return value === undefined ? 'nothing' : JSON.stringify(shorten(value));
}
