import type { AttributionRule } from '../protocol/schema/attempts.js';

/** Rules as lines of a protocol, one rule a line, indented for `attempts.rules`. */
export function rulesYaml(rules: readonly AttributionRule[]): string {
  return rules
    .map(({ id, when, attribute, sufficient }) => {
      const conditions = Object.entries(when).map(([name, value]) => `${name}: ${flow(value)}`);
      const then = `attribute: ${attribute}, sufficient: ${sufficient}`;
      return `    - { id: ${id}, when: { ${conditions.join(', ')} }, ${then} }`;
    })
    .join('\n');
}

function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`;
  return typeof value === 'string' && !/^[a-zA-Z_][\w-]*$|^[45]xx$/.test(value)
    ? JSON.stringify(value)
    : String(value);
}
