/** Names in hexadecimal and base64. Of shorter ones too much else would be taken for them. */
const MIN_NAME = 3;

const HEX = /(?:[0-9a-f]{2}){3,}/gi;
const BASE64 = /[A-Za-z0-9+/_-]{4,}={0,2}/g;

/** Finds runs of digits or letters that hold a name when they are decoded. */
export class EncodedNames {
  readonly #hex: RegExp | null;
  readonly #base64: RegExp | null;
  readonly #names: readonly string[];

  constructor(names: readonly string[]) {
    this.#names = [...new Set(names)].filter((name) => name.length >= MIN_NAME);
    this.#hex = anyOf(this.#names.map((name) => Buffer.from(name).toString('hex')));
    this.#base64 = anyOf(this.#names.flatMap(aligned));
  }

  replace(text: string, hex: string, base64: string): string {
    if (this.#hex === null || this.#base64 === null) return text;
    const [inHex, inBase64] = [this.#hex, this.#base64];
    return text
      .replace(HEX, (run) => (inHex.test(run.toLowerCase()) && this.#holds(run, 'hex') ? hex : run))
      .replace(BASE64, (run) => (inBase64.test(run) && this.#holds(run, 'base64') ? base64 : run));
  }

  #holds(run: string, encoding: 'hex' | 'base64'): boolean {
    const decoded = Buffer.from(run, encoding).toString('latin1');
    return this.#names.some((name) => {
      const bytes = Buffer.from(name).toString('latin1');
      for (let at = decoded.indexOf(bytes); at !== -1; at = decoded.indexOf(bytes, at + 1)) {
        const beside = `${decoded.charAt(at - 1)}${decoded.charAt(at + bytes.length)}`;
        if (!/[A-Za-z0-9]/.test(beside)) return true;
      }
      return false;
    });
  }
}

/** The letters of base64 that stay the same whatever surrounds the bytes, for each of the three places where they can begin. */
function aligned(name: string): readonly string[] {
  const bytes = Buffer.from(name);
  return [0, 1, 2].flatMap((lead) => {
    const whole = Buffer.concat([Buffer.alloc(lead), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const from = Math.ceil((lead * 8) / 6);
    const to = Math.floor(((lead + bytes.length) * 8) / 6);
    const kept = whole.slice(from, to);
    return kept.length < 3 ? [] : [kept, kept.replaceAll('+', '-').replaceAll('/', '_')];
  });
}

function anyOf(literals: readonly string[]): RegExp | null {
  const patterns = [...new Set(literals)].map((one) => one.replace(/[+/.*?^$()[\]{}|\\-]/g, '\\$&'));
  return patterns.length === 0 ? null : new RegExp(patterns.join('|'));
}
