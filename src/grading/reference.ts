import { BoundbookError } from '../core/errors.js';
import type { JsonObject, JsonValue } from '../core/json.js';
import { trimAscii } from '../core/trim.js';
import type { Grader } from '../protocol/schema/grader.js';
import { canonicalInteger } from './integer.js';

/**
 * The reference answer of a task as the grader compares it. A reference that is missing, empty or not of the
 * grader's kind is a fault of the data and never a credit for anybody (statistics B2.6).
 *
 * @throws {BoundbookError} TASKS_INVALID naming the field.
 */
export function referenceAnswer(
  grader: Extract<Grader, { kind: 'exact' | 'integer' | 'boxed' }>,
  fields: JsonObject,
): string {
  const value = field(fields, grader.answer);
  const text = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value;
  if (typeof text !== 'string') {
    return refuse(grader.answer, `holds no reference answer but ${kindOf(value)}`);
  }
  if ((grader.kind === 'boxed' ? grader.compare : grader.kind) === 'integer') {
    return (
      canonicalInteger(text) ?? refuse(grader.answer, `${JSON.stringify(text.slice(0, 80))} is no integer`)
    );
  }
  const trimmed = trimAscii(text.toWellFormed());
  return trimmed === '' ? refuse(grader.answer, 'is empty: an empty answer would pass') : trimmed;
}

/**
 * The tests that a report must cover, or null when the grader declares none.
 *
 * @throws {BoundbookError} TASKS_INVALID unless the field is a list of at least one name, each once.
 */
export function expectedTests(grader: Grader, fields: JsonObject): readonly string[] | null {
  if (grader.kind !== 'report' || grader.expected_tests === undefined) return null;
  const name = grader.expected_tests;
  const value = field(fields, name);
  if (!Array.isArray(value)) return refuse(name, `lists no expected tests but holds ${kindOf(value)}`);
  const tests = (value as readonly JsonValue[]).map((test) =>
    typeof test === 'string' && test !== '' ? test : refuse(name, 'lists a test without a name'),
  );
  if (tests.length === 0) refuse(name, 'lists no test: every report would pass');
  if (new Set(tests).size !== tests.length) refuse(name, 'lists a test twice');
  return tests;
}

/** Rewards that a grader can give: lowest and highest. */
export function rewardRange(grader: Grader): { readonly min: number; readonly max: number } {
  return 'reward' in grader ? grader.reward : { min: 0, max: 1 };
}

function field(fields: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

function kindOf(value: JsonValue | undefined): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
}

function refuse(name: string, reason: string): never {
  throw new BoundbookError('TASKS_INVALID', `the task field ${JSON.stringify(name)} ${reason}`, {
    hint: 'Correct the task file in a new revision of the protocol; a bad reference is never graded against.',
    evidence: { field: name },
  });
}
