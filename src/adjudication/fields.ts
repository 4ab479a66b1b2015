import { type MaskKind, PLACEHOLDERS } from './placeholders.js';

/**
 * Members and fields that are named like something to mask, wherever they stand: in JSON, in JSON inside strings or log
 * lines, in `key=value`, in `--key value`. It works on the text, so that what is cut short or no JSON at all is masked too.
 */

/** Which kind of thing a name is about; `weak` names mask numbers and truth values only, unless they are quoted. */
type Named = { readonly kind: MaskKind; readonly weak: boolean } | null;

const STRONG: Readonly<Record<string, MaskKind>> = {
  ...each(['reward', 'rewards', 'score', 'scores', 'scored', 'points', 'accuracy', 'acc', 'grade'], 'reward'),
  ...each(
    ['correct', 'incorrect', 'resolved', 'solved', 'outcome', 'verdict', 'metric', 'metrics'],
    'reward',
  ),
  ...each(['seed', 'seeds'], 'seed'),
  ...each(['model', 'models', 'arm', 'arms', 'condition', 'tokenizer', 'weights', 'checkpoint'], 'name'),
  ...each(['ckpt', 'lora', 'fingerprint'], 'name'),
  ...each(['host', 'hostname', 'nodename', 'port', 'pid', 'ppid', 'ip', 'user', 'username'], 'host'),
  ...each(['cwd', 'pwd', 'workdir', 'workspace', 'home'], 'path'),
  ...each(['created', 'timestamp', 'date'], 'time'),
};
const WEAK: Readonly<Record<string, MaskKind>> = {
  ...each(['value', 'values', 'tests', 'passed', 'pass', 'failed', 'success', 'successes'], 'reward'),
  ...each(['node', 'address', 'server'], 'host'),
  // Of a slot, in the request of a command.
  ...each(['tuple'], 'name'),
};
/** Exceptions are evidence of the first order, whatever they are called. */
const EXCEPTION = /(?:Error|Exception|Warning|Exit|Interrupt|Timeout)$/;
/** Names begin where a run of their characters begins, so that every run is looked at once. */
const NAME =
  /(?<![A-Za-z0-9_.-])([A-Za-z0-9_.-]+)(\\*["'])?(\s*(?:=>|->|=|:)\s*|\s+(?:is|was|of)\s+|\s+(?=[-+]?\.?[0-9]))/g;
const FLAG = /(?<![A-Za-z0-9_-])(--?([A-Za-z][A-Za-z0-9_-]{0,60}))(\s+|=)(?![-\s])/g;
/** The same as two members of a list of arguments. */
const ARGUMENT = /((\\*["'])--?([A-Za-z][A-Za-z0-9_-]{0,60})\2\s*,\s*)(\\*["'])[^"'\\]*\4/g;
const PLAIN = /[-+]?\.?[0-9][0-9.eE+/%-]*|true\b|false\b|null\b|none\b|nan\b|pass(?:ed)?\b|fail(?:ed)?\b/iy;
const WORD = /[^\s,;}\])"'\\]+/y;

export class FieldMask {
  readonly #settings: ReadonlySet<string>;
  readonly #prompts: ReadonlySet<string>;

  /**
   * @param settings names of members that are masked whole, besides
   * @param hidePrompts whether prompts are masked
   */
  constructor(settings: Iterable<string>, hidePrompts: boolean) {
    this.#settings = new Set(settings);
    this.#prompts = new Set(hidePrompts ? ['messages', 'prompt', 'system'] : []);
  }

  apply(text: string): string {
    return this.#fields(this.#flags(text));
  }

  #fields(text: string): string {
    let [out, at] = ['', 0];
    for (NAME.lastIndex = 0; ; ) {
      const match = NAME.exec(text);
      if (match === null) return out + text.slice(at);
      const [whole, name = '', quote = '', joint = ''] = match;
      const from = match.index + whole.length;
      const named = this.#kindOf(name);
      const end = named === null ? from : valueEnd(text, from, quote !== '', named.weak, joint);
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

  #kindOf(name: string): Named {
    if (EXCEPTION.test(name)) return null;
    if (this.#settings.has(name)) return { kind: 'setting', weak: false };
    if (this.#prompts.has(name)) return { kind: 'prompt', weak: false };
    const words = name
      .replace(/([a-z])([A-Z])/g, '$1_$2')
      .toLowerCase()
      .split(/[_.-]+/);
    const last = words.at(-1) ?? '';
    for (const word of words) {
      const kind = own(STRONG, word);
      if (kind !== null) return { kind, weak: false };
    }
    const kind = own(WEAK, last);
    return kind === null ? null : { kind, weak: true };
  }
}

/** Where the value of a field ends; `from` when there is nothing to mask. */
function valueEnd(text: string, from: number, quoted: boolean, weak: boolean, joint: string): number {
  const first = text.charAt(from);
  if (quoted || /[=:>]/.test(joint)) {
    const mark = /^\\*["']/.exec(text.slice(from, from + 10))?.[0];
    if (mark !== undefined && (quoted || !weak)) return stringEnd(text, from + mark.length, mark);
    if ((first === '{' || first === '[') && (quoted || !weak)) return bracketEnd(text, from);
  }
  const pattern = weak || !/[=:>]/.test(joint) ? PLAIN : WORD;
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : from;
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

function each(names: readonly string[], kind: MaskKind): Readonly<Record<string, MaskKind>> {
  return Object.fromEntries(names.map((name) => [name, kind]));
}

function own(table: Readonly<Record<string, MaskKind>>, word: string): MaskKind | null {
  return Object.hasOwn(table, word) ? (table[word] ?? null) : null;
}
