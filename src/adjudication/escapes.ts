/**
 * Escaped line breaks and tabs of JSON and of JSON inside JSON, as single characters for the time of masking. Their letters would
 * otherwise be taken for the begin of the word behind them: `\nreward` is no `nreward`.
 */

const LETTERS = ['n', 'r', 't'] as const;
const MAX_DEPTH = 10;
/** Characters that no text may hold (Unicode, noncharacters). */
const FIRST = 0xfdd0;
const LAST = FIRST + LETTERS.length * MAX_DEPTH - 1;

/** For classes of regular expressions: what ends a line, what stands for a tab, and all of them. */
export const LINE_ENDS = `\\n\\r\\u{fdd0}-\\u{${(FIRST + 2 * MAX_DEPTH - 1).toString(16)}}`;
export const TABS = `\\t\\u{${(FIRST + 2 * MAX_DEPTH).toString(16)}}-\\u{${LAST.toString(16)}}`;
export const FOLDED = `\\u{fdd0}-\\u{${LAST.toString(16)}}`;

const ANY_FOLDED = new RegExp(`[${FOLDED}]`, 'gu');
const ESCAPE = /(\\{1,10})([nrt])/g;

export function foldEscapes(text: string): string {
  return text
    .replace(ANY_FOLDED, '�')
    .replace(ESCAPE, (_, slashes: string, letter: (typeof LETTERS)[number]) =>
      String.fromCharCode(FIRST + LETTERS.indexOf(letter) * MAX_DEPTH + slashes.length - 1),
    );
}

export function unfoldEscapes(text: string): string {
  return text.replace(ANY_FOLDED, (one) => {
    const at = one.charCodeAt(0) - FIRST;
    return '\\'.repeat((at % MAX_DEPTH) + 1) + (LETTERS[Math.floor(at / MAX_DEPTH)] ?? '');
  });
}
