import { BoundbookError } from '../../core/errors.js';

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  n: '\n',
  t: '\t',
  r: '\r',
};

/**
 * Reads a quoted scalar at the start of a text, on one line: single quotes, or double quotes with the escapes that
 * YAML shares with JSON. Undefined when the text does not begin with a quote.
 *
 * @throws {BoundbookError} CLAIM_INVALID for an open quote or an unknown escape.
 */
export function readQuoted(text: string): { readonly value: string; readonly end: number } | undefined {
  if (text.startsWith("'")) return readSingle(text);
  return text.startsWith('"') ? readDouble(text) : undefined;
}

function readSingle(text: string): { value: string; end: number } {
  const [all, inner] = /^'((?:[^']|'')*)'/su.exec(text) ?? [];
  if (all === undefined || inner === undefined) return refuse('a single quote is not closed on its line');
  return { value: inner.replaceAll("''", "'"), end: all.length };
}

function readDouble(text: string): { value: string; end: number } {
  const [all, inner] = /^"((?:[^"\\]|\\.)*)"/su.exec(text) ?? [];
  if (all === undefined || inner === undefined) return refuse('a double quote is not closed on its line');
  const value = inner.replace(/\\(u[0-9a-fA-F]{4}|.)/gsu, (_, code: string) => {
    if (code.length === 5) return String.fromCharCode(Number.parseInt(code.slice(1), 16));
    return ESCAPES[code] ?? refuse(`the escape \\${code} is not accepted`);
  });
  return { value, end: all.length };
}

function refuse(reason: string): never {
  throw new BoundbookError('CLAIM_INVALID', reason);
}
