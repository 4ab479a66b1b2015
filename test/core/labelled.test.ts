import { expect, test } from 'vitest';
import { labelled } from '../../src/core/labelled.js';

test('a label is set off from its value however wide it is, and lines stay within 80 columns', () => {
  expect(labelled([['closed slots', '8 are carried']])).toBe('closed slots 8 are carried');
  expect(labelled([['a much longer label', '8']])).toBe('a much longer label 8');
  expect(labelled([['short', '8']])).toBe('short       8');
  const long = labelled([['closed slots', 'word '.repeat(40).trim()]]).split('\n');
  expect(long.every((line) => line.length <= 80)).toBe(true);
  expect(long[1]).toMatch(/^ {12}word/);
});
