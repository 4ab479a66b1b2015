/**
 * Makes characters visible that would move, hide or reorder text: controls, format characters (bidirectional
 * overrides among them), line and paragraph separators, lone surrogates.
 */
export function visible(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);
}
