import { BoundbookError } from '../../core/errors.js';

/**
 * Scalars in the canonical form of PRML (constraints C4 to C6 of its grammar). Pure: values in, text out.
 */

const MAX_KEY_CHARACTERS = 127;

/** C5, P6: what a YAML 1.1 reader would take for something other than a string. */
const YAML_1_1: readonly RegExp[] = [
  /^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$/,
  /^(?:~|null|Null|NULL|<<|=|[!&*])$/,
  /^[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?$/,
  /^\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?$/,
  /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*$/,
  /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/,
  /^[-+]?(?:0b[01_]+|0[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*(?::[0-5]?[0-9])*)$/,
  /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/,
  /^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?$/,
];

/** Whether a YAML 1.1 reader takes a plain text for something other than a string. */
export function isYaml11Special(text: string): boolean {
  return YAML_1_1.some((pattern) => pattern.test(text));
}

/** C5: whether a string stands without quotes. */
function isPlain(text: string): boolean {
  if (text === '' || /^[#,[\]{}&*!|>'"%@`]/.test(text) || /^[?:-](?: |$)/.test(text)) return false;
  if (text.startsWith(' ') || text.endsWith(' ')) return false;
  if (/.:(?: |$)/su.test(text) || / #/.test(text)) return false;
  return !isYaml11Special(text);
}

/** A string as a plain or single-quoted scalar. @throws {BoundbookError} CLAIM_INVALID, see {@link assertPortable}. */
export function formatString(text: string): string {
  assertPortable(text);
  return isPlain(text) ? text : `'${text.replaceAll("'", "''")}'`;
}

/** A key. @throws {BoundbookError} CLAIM_INVALID for reserved and overlong keys too. */
export function formatKey(key: string): string {
  if (['__proto__', 'constructor', 'prototype'].includes(key)) refuse(`the key "${key}" is reserved`);
  // PyYAML writes longer ones in another form, which the grammar does not have.
  if ([...key].length > MAX_KEY_CHARACTERS) refuse(`a key has more than ${MAX_KEY_CHARACTERS} characters`);
  return formatString(key);
}

/** C4: shortest digits that give the same double; scientific below 1e-4 and from 1e16; always with a point. */
export function formatFloat(value: number): string {
  if (!Number.isFinite(value)) refuse(`${value} is not a finite number`);
  const [, sign, first, rest = '', exponentText] =
    /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(value.toExponential()) ?? [];
  const exponent = Number(exponentText);
  const minus = Object.is(value, -0) ? '-' : sign;
  const digits = `${first}${rest}`;
  if (exponent < -4 || exponent >= 16) {
    const power = String(Math.abs(exponent)).padStart(2, '0');
    return `${minus}${first}.${rest || '0'}e${exponent < 0 ? '-' : '+'}${power}`;
  }
  if (exponent < 0) return `${minus}0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  return `${minus}${whole}.${digits.slice(exponent + 1) || '0'}`;
}

/**
 * The portable character set: no control characters, no line or paragraph separator, no byte-order mark, no
 * noncharacter that YAML writers escape, well-formed and in NFC. Never normalised here: that would change the bytes the
 * author believes in.
 *
 * @throws {BoundbookError} CLAIM_INVALID
 */
export function assertPortableCharacters(text: string): void {
  if (!text.isWellFormed()) refuse('a text holds a lone surrogate');
  const bad = /[\p{Cc}\u2028\u2029\ufeff\ufffe\uffff\u{10ffff}]/u.exec(text)?.[0].codePointAt(0);
  if (bad !== undefined) {
    refuse(`a text holds the character U+${bad.toString(16).toUpperCase().padStart(4, '0')}`);
  }
  if (text.normalize('NFC') !== text) refuse('a text is not in Unicode NFC');
}

/**
 * {@link assertPortableCharacters}, and no text that begins with `---` or `...`: the grammar leaves it plain, its
 * reference implementation quotes it, so that its hash depends on whom one asks.
 *
 * @throws {BoundbookError} CLAIM_INVALID
 */
export function assertPortable(text: string): void {
  assertPortableCharacters(text);
  if (/^(?:---|\.\.\.)/.test(text))
    refuse('a text begins with "---" or "...", for which there is no agreed form');
}

function refuse(reason: string): never {
  throw new BoundbookError('CLAIM_INVALID', `no PRML form: ${reason}`);
}
