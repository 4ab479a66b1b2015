import type { CommandDefinition } from './command.js';

/** Columns of a terminal of the usual width. */
const WIDTH = 80;

export const EXIT_CODES = `
Exit codes: 0 done · 1 internal fault · 2 wrong input · 3 refused by the gate ·
4 integrity or audit failure · 5 stopped with work left. Every error has a code
that docs/errors.md explains.`;

/** What stands below the flags of a verb: examples and the next step, broken between words. */
export function helpAfter({ examples, next }: CommandDefinition): string {
  const lines = ['', 'Examples:', ...examples.flatMap(exampleLines)];
  if (next !== undefined) lines.push('', ...broken(`Next: ${next}`.split(' '), WIDTH));
  return lines.join('\n');
}

/** A command line that can be pasted as it stands: broken outside of quotes, each line but the last with a backslash. */
function exampleLines(example: string): string[] {
  const words = example.match(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g) ?? [];
  const lines = broken(words, WIDTH - '      '.length - ' \\'.length);
  return lines.map((line, i) => `${i === 0 ? '  $ ' : '      '}${line}${i < lines.length - 1 ? ' \\' : ''}`);
}

/** A word that is wider than a line is left whole. */
function broken(words: readonly string[], width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of words) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
