import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { hasPython, NO_PYTHON, python } from './python.js';

const PAGE = readFileSync(new URL('../../docs/formats/vectors.md', import.meta.url), 'utf8');
const VECTORS = /```json vectors\n([\s\S]*?)```/.exec(PAGE)?.[1] ?? '{}';
const CHECKER = fileURLToPath(new URL('vectors.py', import.meta.url));

describe.skipIf(!hasPython)(`second verifier: vectors of docs/formats (${NO_PYTHON})`, () => {
  const run = hasPython ? python([CHECKER], VECTORS) : { stdout: '{}', stderr: '' };
  const unmet = JSON.parse(run.stdout || '{}') as Record<string, unknown>;

  it.each(Object.keys(JSON.parse(VECTORS) as object))('meets the vectors of %s', (member) => {
    expect(run.stderr).toBe('');
    expect(unmet[member]).toEqual([]);
  });
});
