import { expect, test } from 'vitest';
import { helpAfter } from '../../src/commands/help-text.js';
import { COMMANDS } from '../../src/commands/registry.js';
import { renderError } from '../../src/commands/render-error.js';
import { BoundbookError } from '../../src/core/errors.js';
import { readError, writeError } from '../../src/core/files.js';

test.each(COMMANDS.map((definition) => [definition.name, definition] as const))(
  'the help of %s breaks between words',
  (_, definition) => {
    const help = helpAfter(definition);
    for (const line of help.split('\n')) {
      // What cannot be broken is one word or one quoted text.
      if (line.length > 80) expect(line.trim()).toMatch(/^(\$ )?("[^"]*"|\S+)( \\)?$/);
    }
    const pasted = help.replace(/ \\\n +/g, ' ');
    for (const example of definition.examples) expect(pasted).toContain(`  $ ${example}`);
  },
);

test('a fault tells its place once', () => {
  const fault = (where: string) => ({ where, message: 'odd', line: 2 });
  const text = (where: string) =>
    renderError(new BoundbookError('POLICY_INVALID', 'bad', { faults: [fault(where)] })).split('\n')[1];
  expect(text('../p3:2')).toBe('  ../p3:2: odd');
  expect(text('../p3:2:1')).toBe('  ../p3:2:1: odd');
  expect(text('/arms/A')).toBe('  2:1 /arms/A: odd');
});

test('hints fit the fault', () => {
  expect(readError('x', { code: 'ENOENT' }).hint).toContain('-C');
  const large = writeError('x', { code: 'EFBIG' });
  expect(large.code).toBe('FILE_UNWRITABLE');
  expect(large.hint).toContain('ulimit -f');
});
