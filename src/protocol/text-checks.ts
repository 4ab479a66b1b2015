import type { ProtocolFault } from './fault-list.js';
import { knownWords } from './json-schema.js';
import type { PlainScalar } from './yaml.js';
import { readPlain, yaml11Reading } from './yaml-scalar.js';

/** Checks that depend on how the text is written: what the value alone can no longer tell. */
export function textFaults(text: string, plain: readonly PlainScalar[]): readonly ProtocolFault[] {
  return [...byteOrderMarks(text), ...foreignLineBreaks(text), ...plain.flatMap(ambiguous)];
}

function byteOrderMarks(text: string): readonly ProtocolFault[] {
  return [...text.matchAll(/\ufeff+/g)].map((match) => ({
    path: [],
    offset: match.index,
    message: `a byte-order mark (U+FEFF${match[0].length > 1 ? `, ${match[0].length} times` : ''})`,
    hint: 'Save the file as UTF-8 without a byte-order mark.',
  }));
}

/** YAML 1.1 ends a line at these characters and YAML 1.2 does not, so that a comment could hold a setting. */
function foreignLineBreaks(text: string): readonly ProtocolFault[] {
  return [...text.matchAll(/[\u0085\u2028\u2029]/g)].map((match) => ({
    path: [],
    offset: match.index,
    message: `U+${match[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')} ends a line for some readers only`,
    hint: 'Remove it, or write it as \\N, \\L or \\P inside double quotes.',
  }));
}

/** An unquoted text that a YAML 1.1 reader takes for something else. Words of an enumeration are allowed. */
function ambiguous(scalar: PlainScalar): readonly ProtocolFault[] {
  const { path, text, offset } = scalar;
  if (readPlain(text).kind !== 'string') return [];
  const reading = yaml11Reading(text);
  if (reading === null || (scalar.role === 'value' && knownWords(path).includes(text))) return [];
  return [
    {
      path,
      offset,
      message: `${text} is text here, but ${reading} to YAML 1.1 readers`,
      hint: `Quote it: "${text}".`,
    },
  ];
}
