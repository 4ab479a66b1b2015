import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { freeBytes, lackOfSpace, RESERVE_BYTES } from '../../src/runner/free-space.js';

test('an attempt needs some room on the disk', () => {
  expect(lackOfSpace('/ledger', RESERVE_BYTES)).toBeNull();
  expect(lackOfSpace('/ledger', Number.POSITIVE_INFINITY)).toBeNull();
  const error = lackOfSpace('/ledger', RESERVE_BYTES - 1);
  expect(error).toMatchObject({ code: 'DISK_FULL', exitCode: 5, evidence: { free: RESERVE_BYTES - 1 } });
});

test('the system is asked; where it does not say, nothing is refused', () => {
  expect(freeBytes(tmpdir())).toBeGreaterThan(0);
  expect(freeBytes('/no/such/folder')).toBe(Number.POSITIVE_INFINITY);
});
