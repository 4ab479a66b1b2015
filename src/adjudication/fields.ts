import { FOLDED } from './escapes.js';
import { type Named, namedLike } from './field-names.js';
import { isTellingList, isTellingText, isTellingWord, PLAIN_SOURCE } from './field-values.js';
import { PLACEHOLDERS } from './placeholders.js';

/**
 * Members and fields that are named like something to mask, wherever they stand: in JSON, in JSON inside strings or log
 * lines, in `key=value`, in `--key value`. It works on the text, so that what is cut short or no JSON at all is masked too.
 */

/** Tabs and line breaks that are folded are blanks. Names begin where a run of their characters begins, so that every run is looked at once. */
const NAME =
  /(?<![A-Za-z0-9_.-])([A-Za-z0-9_.-]+)(\\*["'])?([\s\ufde4-\ufded]*(?:=>|->|:=|=|:)[\s\ufdd0-\ufded]*|\s*(?:>{1,2}|[<>=!]=|\|)\s*(?=[-+]?\.?[0-9])|\s+(?:is|are|was|were|of)\s+|[\s\ufde4-\ufded]+(?=[[({*"'`]{0,3}[-+]?\.?[0-9]))/g;
/** Between a name and its value, not merely beside it. */
const FIELD = /[:=][\s\ufdd0-\ufded]*$|->|=>/;
const FLAG = /(?<![A-Za-z0-9_-])(--?([A-Za-z][A-Za-z0-9_-]{0,60}))(\s+|=)(?![-\s])/g;
/** The same as two members of a list of arguments. */
const ARGUMENT = /((\\*["'])--?([A-Za-z][A-Za-z0-9_-]{0,60})\2\s*,\s*)(\\*["'])[^"'\\]*\4/g;
/** The content of an element of XML. */
const ELEMENT = /(<([A-Za-z][A-Za-z0-9_.-]{0,60})(?:\s[^<>]{0,500})?>)([^<>]{1,500})(?=<\/)/g;
const PLAIN = new RegExp(PLAIN_SOURCE, 'iy');
/** Numbers in brackets, also as an array library prints them. */
const CALL = /[A-Za-z_][\w.]{0,40}(?=\()/y;
const NUMBERS = /^(?:[\s\d.,+%()[\]{}-]|e[-+]?\d|true|false|null|none|nan|pass(?:ed)?|fail(?:ed)?)+$/i;
const MAX_NUMBERS = 2000;
const OPENING = /[({*"'`[]{0,3}/y;
const WORD = new RegExp(`[^\\s,;}\\])"'\\\\${FOLDED}]+`, 'uy');
/** Nothing but punctuation to the end of a line, a string or a list. */
const WORD_END = new RegExp(`^[.!]?\\s*(?:$|[,;}\\])"'\\\\${FOLDED}\\n\\r])`, 'u');
/** Members of an environment or of what a system says of a process. */
const ENVIRONMENT = /["']?\b(?:uid|gid|euid|HOME|SHELL|LOGNAME|PWD)["']?\s*[=:]/;
/** Characters to each side in which they are looked for. */
const NEAR = 200;

export class FieldMask {
  readonly #settings: ReadonlySet<string>;
  readonly #prompts: ReadonlySet<string>;
  readonly #accounts: ReadonlySet<string>;

  /**
   * @param settings names of members that are masked whole, besides
   * @param hidePrompts whether prompts are masked
   * @param accounts of who runs the plan
   */
  constructor(settings: Iterable<string>, hidePrompts: boolean, accounts: Iterable<string>) {
    this.#accounts = new Set(accounts);
    this.#settings = new Set(settings);
    this.#prompts = new Set(hidePrompts ? ['messages', 'prompt', 'system'] : []);
  }

  apply(text: string): string {
    return this.#fields(this.#flags(this.#elements(text)));
  }

  #fields(text: string): string {
    let [out, at] = ['', 0];
    for (NAME.lastIndex = 0; ; ) {
      const match = NAME.exec(text);
      if (match === null) return out + text.slice(at);
      const [whole, name = '', quote = '', joint = ''] = match;
      const from = match.index + whole.length;
      const named = this.#kindOf(name);
      const end = named === null ? from : this.#valueEnd(text, from, name, quote !== '', named, joint);
      if (named === null || end === from) {
        // A value may begin with a name of its own.
        NAME.lastIndex = match.index + name.length + quote.length + 1;
        continue;
      }
      const mark = /^\\*["']/.exec(text.slice(from, from + 10))?.[0] ?? quote;
      out += `${text.slice(at, from)}${mark}${PLACEHOLDERS[named.kind]}${mark}`;
      at = end;
      NAME.lastIndex = end;
    }
  }

  #flags(text: string): string {
    const listed = text.replace(
      ARGUMENT,
      (whole: string, before: string, _: string, name: string, mark: string) => {
        const named = this.#kindOf(name.replaceAll('-', '_'));
        return named === null ? whole : `${before}${mark}${PLACEHOLDERS[named.kind]}${mark}`;
      },
    );
    return listed.replace(
      FLAG,
      (whole: string, flag: string, name: string, joint: string, offset: number) => {
        const named = this.#kindOf(name.replaceAll('-', '_'));
        if (named === null || joint === '=') return whole;
        const from = offset + whole.length;
        WORD.lastIndex = from;
        const value = WORD.exec(listed)?.[0];
        return value === undefined ? whole : `${flag}=`;
      },
    );
  }

  #elements(text: string): string {
    return text.replace(ELEMENT, (whole: string, open: string, name: string, content: string) => {
      const named = this.#kindOf(name);
      const isTelling = named !== null && isTellingText(named.form, content, () => false);
      return isTelling ? `${open}${PLACEHOLDERS[named.kind]}` : whole;
    });
  }

  #kindOf(name: string): Named | null {
    if (this.#settings.has(name)) return { kind: 'setting', form: 'any' };
    if (this.#prompts.has(name)) return { kind: 'prompt', form: 'any' };
    return namedLike(name);
  }

  /** Where the value of a field ends; `from` when there is nothing to mask. */
  #valueEnd(text: string, from: number, name: string, quoted: boolean, named: Named, joint: string): number {
    const { form, kind } = named;
    const isAccount = (value: string) =>
      this.#accounts.has(value) ||
      /^[A-Z]+$/.test(name) ||
      ENVIRONMENT.test(text.slice(Math.max(0, from - NEAR), from + NEAR));
    const first = text.charAt(from);
    const isField = quoted || FIELD.test(joint);
    if (isField) {
      const mark = /^\\*["']/.exec(text.slice(from, from + 10))?.[0];
      if (mark !== undefined) {
        const end = stringEnd(text, from + mark.length, mark);
        const closed = text.slice(end - mark.length, end) === mark ? end - mark.length : end;
        return isTellingText(form, text.slice(from + mark.length, closed), isAccount) ? end : from;
      }
      const isOpen = quoted || (form !== 'result' && form !== 'number' && form !== 'list');
      if ((first === '{' || first === '[') && isOpen) {
        const end = bracketEnd(text, from);
        return isTellingList(form, text.slice(from, end)) ? end : from;
      }
    }
    if (kind === 'reward' && /[[({A-Za-z]/.test(first)) {
      const end = numbersEnd(text, from);
      if (end !== from) return end;
    }
    if (!isField) return kind === 'host' && form !== 'digits' ? from : plainEnd(text, from);
    WORD.lastIndex = from;
    const word = WORD.exec(text)?.[0];
    if (word === undefined) return from;
    const end = from + word.length;
    if (form === 'result' || form === 'number' || form === 'digits') return plainEnd(text, from);
    const isEnd = WORD_END.test(text.slice(end, end + 20));
    return isTellingWord(form, word, joint, isEnd, isAccount) ? end : from;
  }
}

/** Behind brackets with nothing but numbers and truth values; `from` for anything else. */
function numbersEnd(text: string, from: number): number {
  CALL.lastIndex = from;
  const first = CALL.test(text) ? CALL.lastIndex : from;
  let depth = 0;
  for (let at = first; at < Math.min(text.length, first + MAX_NUMBERS); at++) {
    const character = text.charAt(at);
    if ('([{'.includes(character)) depth++;
    else if (')]}'.includes(character)) depth--;
    if (depth > 0) continue;
    const inner = text.slice(first, at + 1);
    return /[\da-z]/i.test(inner) && NUMBERS.test(inner) ? at + 1 : from;
  }
  return from;
}

/** Behind a number or a truth value that may stand behind brackets and quotes. */
function plainEnd(text: string, from: number): number {
  OPENING.lastIndex = from;
  OPENING.test(text);
  PLAIN.lastIndex = Math.max(from, OPENING.lastIndex);
  return PLAIN.test(text) ? PLAIN.lastIndex : from;
}

/** Behind the mark that ends a string; what has no end goes on to the end of the text. */
function stringEnd(text: string, from: number, mark: string): number {
  const level = mark.length - 1;
  const quote = mark.charAt(level);
  for (let at = text.indexOf(quote, from); at !== -1; at = text.indexOf(quote, at + 1)) {
    let before = 0;
    while (at - before > from && text.charAt(at - before - 1) === '\\') before++;
    if (level === 0 ? before % 2 === 0 : before === level) return at + 1;
  }
  return text.length;
}

function bracketEnd(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '{' || character === '[') depth++;
    else if (character === '}' || character === ']') {
      depth--;
      if (depth === 0) return at + 1;
    } else if (character === '"' || (character === "'" && /[\s{[:,]/.test(text.charAt(at - 1)))) {
      let before = 0;
      while (text.charAt(at - before - 1) === '\\') before++;
      at = stringEnd(text, at + 1, `${'\\'.repeat(before)}${character}`) - 1;
    }
  }
  return text.length;
}
