const OPENING = '\\boxed{';

/**
 * What stands in the last `\boxed{…}` of a text. Braces inside are matched; a brace behind a backslash is a sign and no
 * brace. A last box without its end is no answer, even when an earlier one is whole: the text broke off (B6).
 */
export function lastBoxed(text: string): { readonly content: string } | 'none' | 'incomplete' {
  const start = text.lastIndexOf(OPENING);
  if (start === -1) return 'none';
  const from = start + OPENING.length;
  let depth = 1;
  for (let i = from; i < text.length; i++) {
    const unit = text[i];
    if (unit === '\\') i++;
    else if (unit === '{') depth++;
    else if (unit === '}') depth--;
    if (depth === 0) return { content: text.slice(from, i) };
  }
  return 'incomplete';
}
