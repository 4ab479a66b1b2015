import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { ERROR_CODES } from '../../src/core/error-codes.js';
import { BoundbookError } from '../../src/core/errors.js';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');

/**
 * Codes of `docs/errors.md` with the exit code of each. Read are table rows (`| `CODE` | 2 | …`) and headings
 * (`### CODE` with `exit 2` in the heading or before the next one).
 */
function documented(): Map<string, number> {
  const codes = new Map<string, number>();
  let heading: string | null = null;
  for (const line of readFileSync(join(ROOT, 'docs/errors.md'), 'utf8').split('\n')) {
    const row = /^\|\s*`?([A-Z][A-Z0-9_]+)`?\s*\|\s*`?([0-9])`?\s*\|/.exec(line);
    if (row?.[1] !== undefined) codes.set(row[1], Number(row[2]));
    heading = /^#+\s+`?([A-Z][A-Z0-9_]{3,})`?/.exec(line)?.[1] ?? (line.startsWith('#') ? null : heading);
    const exit = /\bexit(?:s with)?(?: code)?[ :*`]+([1-5])\b/i.exec(line)?.[1];
    if (heading !== null && exit !== undefined && !codes.has(heading)) codes.set(heading, Number(exit));
  }
  return codes;
}

describe('error codes', () => {
  test('docs/errors.md explains exactly the codes there are, with their exit codes', () => {
    const expected = Object.entries(ERROR_CODES).map(([code, { exit }]) => [code, exit]);
    expect([...documented()].sort()).toEqual(expected.sort());
  });

  test.each(Object.entries(ERROR_CODES))('%s carries its exit code', (code, { exit }) => {
    const error = new BoundbookError(code as keyof typeof ERROR_CODES, 'message', { hint: 'hint' });
    expect(error.exitCode).toBe(exit);
    expect(error.toJson()).toEqual({ error: { code, message: 'message', hint: 'hint', exit, faults: [] } });
  });

  test('exit codes are those of DESIGN §11, and none means success', () => {
    expect([...new Set(Object.values(ERROR_CODES).map(({ exit }) => exit))].sort()).toEqual([1, 2, 3, 4, 5]);
  });
});
