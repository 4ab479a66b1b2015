import type { z } from 'zod';
import type { JsonObject, JsonValue } from '../core/json.js';
import type { ProtocolFault } from './fault-list.js';
import type { Path } from './json-pointer.js';
import { knownKeys } from './json-schema.js';
import { spellingHint } from './nearest.js';

type Issue = z.core.$ZodIssue;

/** Whether the value at a path is written without quotes. */
type IsPlain = (path: Path) => boolean;

/** Turns what zod found into faults with words for people: a key that is missing, unknown, of another kind. */
export function schemaFaults(
  issues: readonly Issue[],
  root: JsonValue,
  isPlain: IsPlain = () => false,
): readonly ProtocolFault[] {
  return issues.flatMap((issue) => faultsOf(issue, [], root, isPlain));
}

function faultsOf(issue: Issue, base: Path, root: JsonValue, isPlain: IsPlain): readonly ProtocolFault[] {
  const path: Path = [...base, ...issue.path.map((part) => (typeof part === 'number' ? part : String(part)))];
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => unknownKey(path, key, root));
    case 'invalid_union':
      return unionFaults(issue, path, root, isPlain);
    case 'invalid_key':
      return issue.issues.map((inner) => ({
        path,
        onKey: true,
        message: `this id is refused: ${plainMessage(inner.message)}`,
        hint: 'An id has 1 to 200 characters.',
      }));
    case 'invalid_type':
      return [typeFault(path, issue.expected, valueAt(root, path), isPlain)];
    case 'invalid_value':
      return [wordFault(path, issue.values.map(String), valueAt(root, path))];
    default:
      return [{ path, message: plainMessage(issue.message), hint: 'Correct the value.' }];
  }
}

function unknownKey(path: Path, key: string, root: JsonValue): ProtocolFault {
  return {
    path: [...path, key],
    onKey: true,
    message: `unknown key ${JSON.stringify(key)}`,
    hint: spellingHint(key, knownKeys(path, valueAt(root, path))),
  };
}

/** Of several forms that a value may have, the one that it comes nearest to is explained. */
function unionFaults(
  issue: Extract<Issue, { code: 'invalid_union' }>,
  path: Path,
  root: JsonValue,
  isPlain: IsPlain,
): readonly ProtocolFault[] {
  if (issue.errors.length === 0) {
    const options = 'options' in issue && Array.isArray(issue.options) ? issue.options.map(String) : [];
    return [wordFault(path, options, valueAt(root, path))];
  }
  const branches = issue.errors.map((errors) => ({
    errors,
    misfit: errors.reduce((total, error) => total + misfit(error), 0),
  }));
  const best = branches.reduce((a, b) => (b.misfit < a.misfit ? b : a));
  return best.errors.flatMap((error) => faultsOf(error, path, root, isPlain));
}

/** How far an issue speaks against the whole form rather than against a detail of it. */
function misfit(issue: Issue): number {
  if (issue.code === 'unrecognized_keys') return issue.keys.length;
  if (issue.path.length > 0) return 1;
  return issue.code === 'invalid_type' ? 100 : 10;
}

function typeFault(
  path: Path,
  expected: string,
  value: JsonValue | undefined,
  isPlain: IsPlain,
): ProtocolFault {
  if (value === undefined) {
    const key = String(path.at(-1) ?? '');
    return {
      path,
      message: `the key ${JSON.stringify(key)} is missing`,
      hint: 'Nothing that affects an outcome has a default; add the key.',
    };
  }
  const wanted = TYPE_NAMES[expected] ?? expected;
  const message = `expected ${wanted}, got ${describe(value)}`;
  if (path.length === 0) {
    const hint =
      'A protocol is a mapping that begins with `boundbook: 1`. Is this the right file, and whole?';
    return { path, message, hint };
  }
  if (value === null) return { path, message, hint: 'Give a value; quote it when the word null is meant.' };
  if (expected === 'string' && typeof value !== 'object') {
    return { path, message, hint: `Quote it: "${String(value)}".` };
  }
  if (expected !== 'string' && typeof value === 'string' && !isPlain(path)) {
    return { path, message, hint: 'Remove the quotes, or write the value in its plain form.' };
  }
  return { path, message, hint: `Give ${wanted} here.` };
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping',
  record: 'a mapping',
};

function describe(value: JsonValue): string {
  if (value === null) return 'nothing (null)';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a mapping';
  if (typeof value === 'string') return `the text ${JSON.stringify(value.slice(0, 40))}`;
  return `the ${typeof value} ${String(value)}`;
}

function wordFault(path: Path, words: readonly string[], value: JsonValue | undefined): ProtocolFault {
  const key = String(path.at(-1) ?? '');
  if (value === undefined) {
    return {
      path,
      message: `the key ${JSON.stringify(key)} is missing`,
      hint: `One of: ${words.join(', ')}.`,
    };
  }
  if (path.length === 1 && key === 'boundbook') {
    return {
      path,
      message: `version ${describe(value)} of the format is not known`,
      hint: 'This program reads `boundbook: 1`.',
    };
  }
  return {
    path,
    message: `${describe(value)} is none of: ${words.join(', ')}`,
    hint: typeof value === 'string' ? spellingHint(value, words) : `Write one of: ${words.join(', ')}.`,
  };
}

function plainMessage(message: string): string {
  return message
    .replace(/^Invalid input: /, '')
    .replace(/^Too (?:small|big): expected (\w+) to (?:be|have) /, 'expected the $1 to have ')
    .replace('to have >=', 'to be at least ')
    .replace('to have <=', 'to be at most ')
    .replace('to have >', 'to be above ')
    .replace('to have <', 'to be below ')
    .replace(
      /^expected the (string|array) to be at (least|most) (\d+) (characters|items)$/,
      'expected at $2 $3 $4',
    );
}

/** The value at a path; undefined when there is none. Only own keys count. */
export function valueAt(root: JsonValue, path: Path): JsonValue | undefined {
  let value: JsonValue | undefined = root;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = Array.isArray(value) ? value[Number(part)] : (value as JsonObject)[part];
  }
  return value;
}
