/** Stands in place of the key in everything that came from its service. */
export const KEY_MARK = '⟦key⟧';

/** A shorter text is no secret, and stands in honest answers by chance. */
export const MIN_KEY_LENGTH = 8;

/** The longest form of one character, in bytes. */
const MAX_FORM = 16;
/** Bytes in which no form of a key goes on: white space and what is no ASCII. */
const BREAK = /[^\x21-\x7e]/;
const ENTITIES: Readonly<Record<string, string>> = {
  '"': 'quot',
  '&': 'amp',
  "'": 'apos',
  '<': 'lt',
  '>': 'gt',
};

/**
 * Finds one known key in whatever form a server may give it back: as it is, percent-encoded, escaped as in JSON or HTML
 * (each of them character by character, more than once too), in hexadecimal, and in base64 of any text that holds it.
 */
export class KeyMask {
  readonly #forms: RegExp;
  /** Bytes of the longest form. */
  readonly #longest: number;

  /** @param key of printable ASCII characters */
  constructor(key: string) {
    const hex = Buffer.from(key, 'latin1').toString('hex');
    const texts = [key, ...base64Forms(key)];
    const patterns = [...texts.map(patternOf), `(?:${anyCase(hex)})`];
    this.#forms = new RegExp(patterns.join('|'), 'g');
    this.#longest = MAX_FORM * Math.max(hex.length, ...texts.map(({ length }) => length));
  }

  text(text: string): string {
    return text.replace(this.#forms, KEY_MARK);
  }

  holds(text: string): boolean {
    return text.search(this.#forms) !== -1;
  }

  bytes(bytes: Buffer): Buffer {
    const text = bytes.toString('latin1');
    return this.holds(text) ? Buffer.from(this.#marked(text), 'latin1') : bytes;
  }

  /**
   * Masks bytes that come in pieces. A piece is passed on as far as nothing that is still to come can make a form of the
   * key of its end: up to its last white space at least, so that a line is never held back.
   */
  pieces(): { readonly feed: (piece: Buffer) => Buffer; readonly end: () => Buffer } {
    let held = '';
    const feed = (piece: Buffer): Buffer => {
      const text = this.#marked(held + piece.toString('latin1'));
      const least = Math.max(0, text.length - this.#longest);
      let from = text.length;
      while (from > least && !BREAK.test(text[from - 1] ?? '')) from--;
      held = text.slice(from);
      return Buffer.from(text.slice(0, from), 'latin1');
    };
    return { feed, end: () => Buffer.from(held, 'latin1') };
  }

  #marked(text: string): string {
    return text.replace(this.#forms, LATIN_MARK);
  }
}

/** The bytes of the mark as characters of Latin-1. */
const LATIN_MARK = Buffer.from(KEY_MARK, 'utf8').toString('latin1');

/** What is common to the base64 of all texts that hold a key, for each place that it can have in a group of three. */
function base64Forms(key: string): readonly string[] {
  return [0, 1, 2].map((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(key, 'latin1')]);
    const first = Math.ceil((before * 8) / 6);
    const last = Math.floor((bytes.length * 8) / 6);
    return bytes.toString('base64').slice(first, last);
  });
}

function patternOf(text: string): string {
  return Array.from(text, characterPattern).join('');
}

/** One character in any of its forms; in base64 the two that differ in the form for addresses stand for each other. */
function characterPattern(character: string): string {
  const code = character.charCodeAt(0);
  const hex = anyCase(code.toString(16).padStart(2, '0'));
  const entity = ENTITIES[character];
  const plain = character === '+' ? '[+-]' : character === '/' ? '[/_]' : escaped(character);
  return (
    `(?:\\\\{0,8}${plain}|%(?:25){0,3}${hex}|\\\\{1,8}(?:u00|x)${hex}` +
    `|&#0{0,4}${code};|&#[xX]0{0,4}${hex};${entity === undefined ? '' : `|&${entity};`})`
  );
}

function anyCase(hex: string): string {
  return hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
}

function escaped(character: string): string {
  return character.replace(/[^A-Za-z0-9]/, '\\$&');
}
