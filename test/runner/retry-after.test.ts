import { expect, test } from 'vitest';
import { retryAfter } from '../../src/runner/adapters/retry-after.js';

const NOW = Date.UTC(2026, 10, 30, 12, 0, 0);

test.each([
  ['7', 7],
  ['0', 0],
  ['Mon, 30 Nov 2026 12:00:30 GMT', 30],
  ['Mon, 30 Nov 2026 11:00:00 GMT', 0],
  ['Mon, 30 Nov 2026 12:00:30 +0100', null],
  ['Mon, 39 Nov 2026 12:00:30 GMT', null],
  ['Monday, 30-Nov-26 12:00:30 GMT', null],
  ['1.5', null],
  ['-1', null],
  ['9999999', null],
  ['soon', null],
  ['', null],
  [undefined, null],
  [['1', '2'], null],
])('Retry-After %j asks for %s s', (value, seconds) => {
  expect(retryAfter(value, NOW)).toBe(seconds);
});
