import { BoundbookError } from './errors.js';
import { decodeUtf8 } from './files.js';
import type { JsonValue } from './json.js';

const MAX_DEPTH = 200;

/**
 * Parses JSON that came from outside. Stricter than `JSON.parse`: the bytes must be UTF-8 without a byte-order
 * mark, no key may occur twice in one object (parsers disagree on which one counts), `__proto__` is no key,
 * integers must be exact, and nesting is bounded.
 *
 * @throws {BoundbookError} JSON_INVALID or TEXT_NOT_UTF8, naming the text and the offset.
 */
export function parseStrictJson(bytes: Uint8Array, name: string): JsonValue {
  const text = decodeUtf8(bytes, name);
  if (text.charCodeAt(0) === 0xfeff) refuse(name, 0, 'it begins with a byte-order mark');
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new BoundbookError('JSON_INVALID', `${name} is not JSON: ${(error as SyntaxError).message}`, {
      hint: 'It may be cut short, or something else than JSON (a page of HTML, a log line).',
      cause: error,
    });
  }
  if (!isPlain(text, value)) scan(text, name);
  return value;
}

/** Digits of integers that may not be exact, although they may be written as they were read. */
const MANY_DIGITS = /[0-9]{16}/;

/** At most {@link MAX_DEPTH} openings, wherever they stand: no nesting is deeper than that. */
const FEW_OPENINGS = new RegExp(`^[^[{]*(?:[[{][^[{]*){0,${MAX_DEPTH}}$`);

/**
 * Whether a text is certain to hold nothing that {@link scan} refuses, by native code: a key that occurs twice, an integer
 * that is not exact and a number out of range do not survive being parsed and written again. false says nothing.
 */
function isPlain(text: string, value: JsonValue): boolean {
  return (
    !text.includes('__proto__') &&
    !MANY_DIGITS.test(text) &&
    FEW_OPENINGS.test(text) &&
    JSON.stringify(value) === text
  );
}

/** Walks text that is known to be JSON and refuses what `JSON.parse` lets pass. */
function scan(text: string, name: string): void {
  const open: (Set<string> | null)[] = [];
  let expectKey = false;
  let i = 0;
  while (i < text.length) {
    const c = text[i];
    if (c === '"') {
      const end = stringEnd(text, i);
      const keys = open.at(-1);
      if (expectKey && keys) {
        const key = JSON.parse(text.slice(i, end)) as string;
        if (key === '__proto__') refuse(name, i, 'the key "__proto__" is not accepted');
        if (keys.has(key)) refuse(name, i, `the key ${JSON.stringify(key)} occurs twice in one object`);
        keys.add(key);
        expectKey = false;
      }
      i = end;
      continue;
    }
    if (c === '{' || c === '[') {
      open.push(c === '{' ? new Set() : null);
      if (open.length > MAX_DEPTH) refuse(name, i, `it is nested deeper than ${MAX_DEPTH} levels`);
      expectKey = c === '{';
    } else if (c === '}' || c === ']') {
      open.pop();
      expectKey = false;
    } else if (c === ',') {
      expectKey = open.at(-1) !== null && open.length > 0;
    } else if (c === '-' || (c !== undefined && c >= '0' && c <= '9')) {
      const match = /-?[0-9]+([.eE][0-9.eE+-]*)?/y;
      match.lastIndex = i;
      const number = match.exec(text)?.[0] ?? c;
      if (/^-?[0-9]+$/.test(number) && !Number.isSafeInteger(Number(number))) {
        refuse(name, i, `the integer ${number.slice(0, 40)} cannot be held exactly; write it as a string`);
      }
      if (!Number.isFinite(Number(number)))
        refuse(name, i, `the number ${number.slice(0, 40)} is out of range`);
      i += number.length;
      continue;
    }
    i++;
  }
}

function stringEnd(text: string, start: number): number {
  let i = start + 1;
  while (text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
  return i + 1;
}

function refuse(name: string, offset: number, reason: string): never {
  throw new BoundbookError('JSON_INVALID', `${name} is refused: ${reason} (offset ${offset})`, {
    hint: 'Fix the program that wrote it; such text means different things to different readers.',
    evidence: { offset },
  });
}
