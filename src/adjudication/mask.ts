import { isUtf8 } from 'node:buffer';
import { EncodedNames } from './encoded-names.js';
import { FOLDED, foldEscapes, unfoldEscapes } from './escapes.js';
import { FieldMask } from './fields.js';
import type { Identity } from './identity.js';
import { PLACEHOLDERS } from './placeholders.js';
import { maskTestResults } from './test-results.js';

const ESCAPED = /\\(?:u00|x)([2-7][0-9a-f])/gi;
const PERCENT = /%(2[DEF]|3[0-9A]|4[0-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])/gi;
const BASE64 = /[A-Za-z0-9+/_-]{24,}={0,2}/g;
const URL_HOST = new RegExp(
  `(?<![A-Za-z0-9+.-])([a-z][a-z0-9+.-]{1,20})://(?!/)[^\\s/"'<>?#\\\\⟦${FOLDED}]+`,
  'giu',
);
/** A host that is called one: its name looks like one, or a port follows. */
const CALLED_HOST =
  /(?<![\w-])((?:host|hostname|node|nodename|machine)\s+)(?!v\d)(?:(?=[A-Za-z])[\w.-]*\d[\w.-]*|[A-Za-z][\w.-]*(?=:\d|\s+port\b))/gi;
const ADDRESS =
  /(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?![\d.])|\[[0-9a-f]*:[0-9a-f:]+\](?::\d+)?|(?<![\w:])::1\b|\blocalhost(?::\d+)?\b|(?<![\w.-])[\w-]+(?:\.[\w-]+)*\.(?:local|internal|lan|cluster|corp|intra|localdomain)\b(?::\d+)?/gi;
const PATH =
  /(?<![\w.⟧/])(?:file:\/\/)?(?:~|\.{1,2})?(?:\/[\w.@+~=,⟦⟧-]+){2,}\/?|\b[A-Za-z]:[\\\ufdd0-\ufded][^\s"'<>|]+/g;
/** Folders of systems and interfaces, which tell of no host. */
const COMMON = /^\/(?:usr|lib|lib64|bin|sbin|etc|proc|sys|dev|v1|api)\//;
/** A file of code or text keeps its name: it says which program failed. */
const TELLING =
  /\/([\w.@+-]+\.(?:py|js|mjs|ts|sh|c|cc|cpp|h|rs|go|java|rb|txt|json|jsonl|log|yaml|yml|toml|so(?:\.\d+)*))$/;
const DIGEST =
  /(?:sha256:)?(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32})(?![0-9a-f])|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi;
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const TIME = new RegExp(
  [
    String.raw`\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?`,
    String.raw`(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?(?:\d{1,2} ${MONTH}|${MONTH} {1,2}\d{1,2}) (?:\d{4} )?\d\d:\d\d:\d\d(?: \d{4})?(?: (?:GMT|UTC))?`,
    String.raw`(?<![\d:.])\d\d:\d\d:\d\d(?:[.,]\d+)?(?![\d:])`,
    String.raw`(?<![\w.])1[5-9]\d{8}(?:\d{3})?(?:\.\d+)?(?!\w)`,
  ].join('|'),
  'g',
);
/** Shorter numbers stand for too many other things: they are masked where a field calls them a seed. */
const MIN_SEED_DIGITS = 3;

/** Takes out of evidence what would tell whose it is, and how it scored. Everything else stays as it is. */
export class EvidenceMask {
  readonly #fields: FieldMask;
  readonly #names: RegExp | null;
  readonly #encoded: EncodedNames;
  readonly #hosts: RegExp | null;
  readonly #seeds: RegExp | null;

  constructor(identity: Identity) {
    this.#fields = new FieldMask(identity.settings, identity.promptsDiffer, identity.accounts);
    this.#encoded = new EncodedNames([...identity.names, ...identity.hosts]);
    this.#names = anyOf(identity.names);
    this.#hosts = anyOf(identity.hosts);
    const seeds = identity.seeds.filter((seed) => seed.length >= MIN_SEED_DIGITS);
    this.#seeds =
      seeds.length === 0 ? null : new RegExp(`(?<![\\d.])(?:${seeds.join('|')})(?![\\d.]*\\d)`, 'g');
  }

  text(text: string): string {
    return unfoldEscapes(this.#mask(foldEscapes(text), 0));
  }

  #mask(text: string, depth: number): string {
    let masked = text
      .replace(ESCAPED, (whole, hex: string) => plain(whole, hex, /["\\]/))
      .replace(PERCENT, (whole, hex: string) => plain(whole, hex, /%/));
    if (depth < 2) masked = masked.replace(BASE64, (run) => this.#base64(run, depth));
    masked = this.#encoded.replace(masked, PLACEHOLDERS.hex, PLACEHOLDERS.base64);
    masked = this.#fields.apply(maskTestResults(masked));
    masked = masked
      .replace(URL_HOST, `$1://${PLACEHOLDERS.host}`)
      .replace(ADDRESS, PLACEHOLDERS.host)
      .replace(DIGEST, PLACEHOLDERS.digest);
    if (this.#seeds !== null) masked = masked.replace(this.#seeds, PLACEHOLDERS.seed);
    masked = masked.replace(TIME, PLACEHOLDERS.time);
    if (this.#hosts !== null) masked = masked.replace(this.#hosts, PLACEHOLDERS.host);
    if (this.#names !== null) masked = masked.replace(this.#names, PLACEHOLDERS.name);
    return masked.replace(CALLED_HOST, `$1${PLACEHOLDERS.host}`).replace(PATH, maskPath);
  }

  /** What decodes to text that would be masked is masked as a whole. */
  #base64(run: string, depth: number): string {
    if (/^[0-9a-f]+$/i.test(run)) return run;
    const bytes = Buffer.from(run, 'base64');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: bytes that are no text are meant
    if (!isUtf8(bytes) || /[\u0000-\u0008\u000e-\u001f\u007f]/.test(bytes.toString('latin1'))) return run;
    const decoded = foldEscapes(bytes.toString('utf8'));
    return this.#mask(decoded, depth + 1) === decoded ? run : PLACEHOLDERS.base64;
  }
}

function maskPath(path: string): string {
  if (COMMON.test(path)) return path;
  const [, file] = TELLING.exec(path) ?? [];
  return file === undefined ? PLACEHOLDERS.path : `${PLACEHOLDERS.path}/${file}`;
}

function plain(whole: string, hex: string, kept: RegExp): string {
  const character = String.fromCharCode(Number.parseInt(hex, 16));
  return kept.test(character) ? whole : character;
}

/** Whole words, longest first; without regard to case when they are long enough. Long mixed names match inside of words, too. */
function anyOf(words: readonly string[]): RegExp | null {
  const sorted = [...new Set(words)].filter((word) => word !== '').sort((a, b) => b.length - a.length);
  if (sorted.length === 0) return null;
  const patterns = sorted.map((word) => {
    const pattern = word.length < 3 ? escaped(word) : anyCase(word);
    return word.length >= 6 && /[\d\W_]/.test(word)
      ? pattern
      : `(?<![\\p{L}\\p{N}])${pattern}(?![\\p{L}\\p{N}])`;
  });
  return new RegExp(patterns.join('|'), 'gu');
}

function escaped(word: string): string {
  return word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

function anyCase(word: string): string {
  return [...word]
    .map((character) => {
      const [low, high] = [character.toLowerCase(), character.toUpperCase()];
      return low === high || low.length !== 1 || high.length !== 1 ? escaped(character) : `[${low}${high}]`;
    })
    .join('');
}
