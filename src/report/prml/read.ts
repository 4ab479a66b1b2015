import { BoundbookError } from '../../core/errors.js';
import { decodeUtf8 } from '../../core/files.js';
import { MAX_DEPTH } from './canonical.js';
import { readQuoted } from './quoted.js';
import { assertPortable, assertPortableCharacters, formatKey, isYaml11Special } from './scalar.js';

/**
 * Reads the YAML subset of PRML (v0.1, section 3.1): block mappings of plain and quoted scalars, one line each, and
 * comments. No sequences, flow style, anchors, tags, block scalars or document markers; no key twice. Values keep
 * their text, because what a plain text means depends on its field.
 */

const MAX_BYTES = 100_000;

export interface PrmlScalar {
  readonly kind: 'scalar';
  readonly text: string;
  readonly quoted: boolean;
  readonly line: number;
}

export interface PrmlBlock {
  readonly kind: 'block';
  readonly entries: ReadonlyMap<string, PrmlNode>;
  readonly line: number;
}

export type PrmlNode = PrmlScalar | PrmlBlock;

interface Line {
  readonly number: number;
  readonly indent: number;
  readonly text: string;
}

/** @throws {BoundbookError} CLAIM_INVALID with the line. */
export function readPrml(bytes: Uint8Array, name: string): PrmlBlock {
  return new BlockReader(bytes, name).document();
}

class BlockReader {
  readonly #name: string;
  readonly #lines: readonly Line[];
  #next = 0;

  constructor(bytes: Uint8Array, name: string) {
    this.#name = name;
    if (bytes.length > MAX_BYTES) this.#refuse(1, `it has more than ${MAX_BYTES} bytes`);
    this.#lines = this.#split(bytes);
  }

  document(): PrmlBlock {
    const block = this.#block(0, 0);
    const rest = this.#lines[this.#next];
    if (rest !== undefined) this.#refuse(rest.number, 'the line is indented unlike the lines around it');
    return block;
  }

  #split(bytes: Uint8Array): Line[] {
    const lines: Line[] = [];
    for (const [i, text] of this.#decode(bytes).split('\n').entries()) {
      this.#guard(i + 1, () => assertPortableCharacters(text));
      const content = text.replace(/^ +/, '');
      if (content === '' || content.startsWith('#')) continue;
      lines.push({ number: i + 1, indent: text.length - content.length, text: content });
    }
    return lines;
  }

  #decode(bytes: Uint8Array): string {
    try {
      return decodeUtf8(bytes, this.#name);
    } catch (error) {
      throw new BoundbookError('CLAIM_INVALID', `${this.#name} is not UTF-8 text`, { cause: error });
    }
  }

  #block(indent: number, depth: number): PrmlBlock {
    const first = this.#lines[this.#next];
    if (depth > MAX_DEPTH) this.#refuse(first?.number ?? 1, `it is nested deeper than ${MAX_DEPTH} levels`);
    const entries = new Map<string, PrmlNode>();
    for (let line = first; line?.indent === indent; line = this.#lines[this.#next]) {
      this.#next++;
      const { number, text } = line;
      const { key, rest } = this.#guard(number, () => readKey(text));
      if (entries.has(key)) this.#refuse(number, `the key ${JSON.stringify(key)} occurs twice`);
      entries.set(key, this.#value(line, rest, depth));
    }
    return { kind: 'block', entries, line: first?.number ?? 1 };
  }

  #value(line: Line, rest: string, depth: number): PrmlNode {
    if (rest !== '' && !rest.startsWith('#'))
      return this.#guard(line.number, () => readScalar(rest, line.number));
    const next = this.#lines[this.#next];
    if (next !== undefined && next.indent > line.indent) return this.#block(next.indent, depth + 1);
    return { kind: 'scalar', text: '', quoted: false, line: line.number };
  }

  /** Adds the line to what a function finds wrong. */
  #guard<T>(line: number, act: () => T): T {
    try {
      return act();
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      return this.#refuse(line, error.message);
    }
  }

  #refuse(line: number, reason: string): never {
    throw new BoundbookError('CLAIM_INVALID', `${this.#name}:${line} is refused: ${reason}`, {
      hint: 'A claim is a block mapping of plain or quoted scalars, with two spaces for each level.',
      evidence: { line },
    });
  }
}

function readKey(text: string): { key: string; rest: string } {
  if (/^(?:---|\.\.\.|%)/.test(text)) refuse('document markers and directives are not accepted');
  const { value, end } = readQuoted(text) ?? readPlainKey(text);
  formatKey(value);
  const rest = /^ *:(?: +(.*))?$/su.exec(text.slice(end));
  if (rest === null) return refuse('the line is not a key, a colon and a value');
  return { key: value, rest: rest[1] ?? '' };
}

function readPlainKey(text: string): { value: string; end: number } {
  assertPlainStart(text);
  const end = /:(?: |$)/.exec(text)?.index ?? 0;
  const value = text.slice(0, end).replace(/ +$/, '');
  if (value === '' || / #/.test(value)) refuse('the line is not a key, a colon and a value');
  if (isYaml11Special(value) || isNumber(value))
    refuse(`the key ${JSON.stringify(value)} is no string; quote it`);
  return { value, end: value.length };
}

function readScalar(text: string, line: number): PrmlScalar {
  const quoted = readQuoted(text);
  if (quoted !== undefined && !/^(?: *| +#.*)$/su.test(text.slice(quoted.end))) {
    refuse('something follows the closing quote');
  }
  const scalar = quoted?.value ?? readPlain(text);
  assertPortable(scalar);
  return { kind: 'scalar', text: scalar, quoted: quoted !== undefined, line };
}

function readPlain(text: string): string {
  assertPlainStart(text);
  const plain = text.replace(/ #.*$/su, '').replace(/ +$/, '');
  if (/:(?: |$)/.test(plain)) refuse('a plain value holds a colon before a space or at its end; quote it');
  return plain;
}

function assertPlainStart(text: string): void {
  if (!/^[,[\]{}&*!|>%@`]/.test(text) && !/^[-?:](?: |$)/.test(text)) return;
  refuse(
    'flow style, anchors, tags, block scalars and sequences are not accepted; quote a text that looks like one',
  );
}

/** Whether a plain text is a number in the YAML 1.2 core schema. */
export function isNumber(text: string): boolean {
  return (
    /^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$/.test(text) ||
    /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/.test(text)
  );
}

function refuse(reason: string): never {
  throw new BoundbookError('CLAIM_INVALID', reason);
}
