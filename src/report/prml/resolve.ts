import type { Fault } from '../../core/errors.js';
import type { PrmlMapping, PrmlValue } from './canonical.js';
import { isNumber, type PrmlBlock, type PrmlNode, type PrmlScalar } from './read.js';
import { isYaml11Special } from './scalar.js';

/**
 * What the plain scalars of a PRML document mean: YAML 1.2 core schema (`yes` is a string), with one exception. A text
 * like `1e5` or `017` is one thing to YAML 1.2 and another to YAML 1.1, by which the canonical form is written: it
 * is a string in a field of text, a number in a field of numbers, and refused anywhere else.
 */

/** How a field takes ambiguous plain texts. */
export type FieldKind = 'text' | 'number' | 'free';

/** A document's values, and the faults found on the way. Objects have no prototype. */
export function resolvePrml(
  block: PrmlBlock,
  kindOf: (path: string) => FieldKind,
): { readonly value: PrmlMapping; readonly faults: readonly Fault[] } {
  const faults: Fault[] = [];
  const resolve = (node: PrmlNode, path: string): PrmlValue => {
    if (node.kind === 'block') return mappingOf(node, path);
    const value = resolveScalar(node, kindOf(path));
    if (value !== undefined) return value;
    faults.push({
      where: path,
      line: node.line,
      message: `${JSON.stringify(node.text)} is a number to some readers and a text to others`,
      hint: 'Quote a text; write a number in its usual decimal form.',
    });
    return node.text;
  };
  const mappingOf = (node: PrmlBlock, path: string): PrmlMapping => {
    const mapping: Record<string, PrmlValue> = Object.create(null);
    for (const [key, child] of node.entries) mapping[key] = resolve(child, `${path}/${key}`);
    return mapping;
  };
  return { value: mappingOf(block, ''), faults };
}

/** Undefined for a text that readers disagree on. */
function resolveScalar({ text, quoted }: PrmlScalar, kind: FieldKind): PrmlValue | undefined {
  if (quoted) return text;
  if (/^(?:|~|null|Null|NULL)$/.test(text)) return null;
  if (/^(?:true|True|TRUE)$/.test(text)) return true;
  if (/^(?:false|False|FALSE)$/.test(text)) return false;
  if (/^[-+]?\.(?:inf|Inf|INF)$/.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  if (/^\.(?:nan|NaN|NAN)$/.test(text)) return Number.NaN;
  if (!isNumber(text)) return text;
  const agreed = isYaml11Special(text) && !/^[-+]?0[0-9]/.test(text.replace(/\..*$/s, ''));
  if (agreed || kind === 'number') return numberOf(text);
  return kind === 'text' ? text : undefined;
}

function numberOf(text: string): bigint | number {
  if (/^0[ox]/.test(text)) return BigInt(text);
  if (!/^[-+]?[0-9]+$/.test(text)) return Number(text);
  const magnitude = BigInt(text.replace(/^[-+]/, ''));
  return text.startsWith('-') ? -magnitude : magnitude;
}
