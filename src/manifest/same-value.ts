import { canonicalText } from '../core/canonical-json.js';

/** Whether two values have one canonical form. */
export function sameValue(a: unknown, b: unknown): boolean {
  return canonicalText(a) === canonicalText(b);
}
