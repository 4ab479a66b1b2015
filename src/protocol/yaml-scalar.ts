/**
 * What plain (unquoted) YAML scalars mean: to the YAML 1.2 core schema, by which protocols are read, and to a
 * YAML 1.1 reader, which many other programs still are. A text that the two read differently is never accepted
 * silently (DESIGN §5).
 */

export type PlainReading =
  | { readonly kind: 'null' }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'number'; readonly value: number; readonly fault: ScalarFault | null }
  | { readonly kind: 'string' };

export interface ScalarFault {
  readonly message: string;
  readonly hint: string;
}

// The patterns of YAML 1.2.2, section 10.3.2. Leading signs before 0o and 0x do not occur there.
const NULL = /^(?:null|Null|NULL|~|)$/;
const BOOLEAN = /^(?:true|True|TRUE|false|False|FALSE)$/;
const INTEGER = /^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const SPECIAL = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;

/** Reads a plain scalar by the YAML 1.2 core schema. A number that may not be written so carries a fault. */
export function readPlain(text: string): PlainReading {
  if (NULL.test(text)) return { kind: 'null' };
  if (BOOLEAN.test(text)) return { kind: 'boolean', value: text.toLowerCase() === 'true' };
  if (SPECIAL.test(text)) return { kind: 'number', value: 0, fault: notFinite(text) };
  if (!INTEGER.test(text) && !FLOAT.test(text)) return { kind: 'string' };
  const value = Number(text);
  return { kind: 'number', value, fault: numberFault(text, value) };
}

function numberFault(text: string, value: number): ScalarFault | null {
  if (!Number.isFinite(value)) return notFinite(text);
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) {
    return {
      message: `the number ${shorten(text)} cannot be held exactly; integers reach to ±9007199254740991`,
      hint: `Quote it ("${shorten(text)}") where a text is expected, or choose a smaller number.`,
    };
  }
  const shortest = plainDecimal(value);
  if (text === shortest) return null;
  return {
    message: `the number ${shorten(text)} is not in its shortest decimal form, ${shortest}`,
    hint: `Write ${shortest}, or quote it ("${shorten(text)}") where a text is meant: YAML readers disagree on it.`,
  };
}

function notFinite(text: string): ScalarFault {
  return {
    message: `${shorten(text)} is not a finite number`,
    hint: `Leave the setting out or give a number; quote it ("${shorten(text)}") where a text is meant.`,
  };
}

/** The shortest decimal text that reads back as the number, without an exponent. `-0` gives `0`. */
export function plainDecimal(value: number): string {
  const text = String(Math.abs(value));
  const sign = value < 0 ? '-' : '';
  const match = /^([0-9])(?:\.([0-9]+))?e([-+][0-9]+)$/.exec(text);
  if (match === null) return sign + text;
  const fraction = match[2] ?? '';
  const digits = `${match[1] ?? ''}${fraction}`;
  const exponent = Number(match[3]);
  return exponent < 0
    ? `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`
    : `${sign}${digits}${'0'.repeat(exponent - fraction.length)}`;
}

// The types of yaml.org/type for YAML 1.1, as its common readers implement them (a float needs a dot).
const YAML11: readonly (readonly [RegExp, string])[] = [
  [/^(?:~|null|Null|NULL|)$/, 'null'],
  [/^(?:y|Y|yes|Yes|YES|on|On|ON|true|True|TRUE)$/, 'true'],
  [/^(?:n|N|no|No|NO|off|Off|OFF|false|False|FALSE)$/, 'false'],
  [/^[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)$/, 'a number'],
  [/^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/, 'a number in base 60'],
  [/^[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9_]*[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?$/, 'a number'],
  [/^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/, 'a number'],
  [
    /^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?)?$/,
    'a date',
  ],
  [/^<<$/, 'a merge key'],
  [/^=$/, 'a default value'],
];

/** What a YAML 1.1 reader takes a plain scalar for; null when it is text to it as well. */
export function yaml11Reading(text: string): string | null {
  return YAML11.find(([pattern]) => pattern.test(text))?.[1] ?? null;
}

function shorten(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
