import { expect, test } from 'vitest';
import { DigestTable } from '../../src/audit/digest-table.js';
import { type Digest, digestOf } from '../../src/core/digest.js';

test('holds what a map holds, through every growth', () => {
  const table = new DigestTable();
  const map = new Map<Digest, number>();
  for (let i = 0; i < 20_000; i++) {
    const digest = digestOf(`object ${i % 15_000}`);
    const value = i % 7 === 0 ? 0 : i * 1_000_003;
    table.set(digest, value);
    map.set(digest, value);
  }
  expect(table.size).toBe(15_000);
  for (const [digest, value] of map) expect(table.get(digest)).toBe(value);
  for (let i = 0; i < 1000; i++) expect(table.get(digestOf(`absent ${i}`))).toBeUndefined();
});

test('digests that differ in their last digit only are told apart', () => {
  const table = new DigestTable();
  const prefix = 'sha256:'.concat('0'.repeat(61));
  for (let i = 0; i < 4096; i++) table.set(`${prefix}${i.toString(16).padStart(3, '0')}` as Digest, i);
  expect(table.size).toBe(4096);
  for (let i = 0; i < 4096; i++) {
    expect(table.get(`${prefix}${i.toString(16).padStart(3, '0')}` as Digest)).toBe(i);
  }
});
