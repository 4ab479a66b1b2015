import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { audit } from '../../../src/audit/audit.js';
import { exportBundle } from '../../../src/audit/bundle/export.js';
import { digestOf } from '../../../src/core/digest.js';
import { filesBelow, LooseBundle } from '../../support/loose-bundle.js';
import { makeSmallBook } from '../../support/small-book.js';
import { temporaryFolder } from './support.js';

test('the small book is lawful, and two exports of it are the same bytes', async () => {
  const [a, b] = [await makeSmallBook(temporaryFolder()), await makeSmallBook(temporaryFolder())];
  const result = await audit(a.root, undefined);
  expect(result.findings).toEqual([]);
  expect(result.coverage?.map(({ settled, unresolved }) => [settled, unresolved])).toEqual([
    [6, 2],
    [3, 0],
  ]);
  const one = await exportBundle(a.root, undefined, { out: 'bundle', tar: 'bundle.tar' });
  const other = await exportBundle(b.root, undefined, { out: 'another', tar: 'another.tar' });
  expect(other.bundle).toBe(one.bundle);
  expect(one.bundle).toBe(digestOf(readFileSync(join(one.folder, 'bundle.json'))));
  const [tarA, tarB] = [one.tar, other.tar].map((tar) => readFileSync(tar?.file ?? ''));
  expect(tarA?.equals(tarB ?? Buffer.of())).toBe(true);
  expect(digestOf(tarA ?? '')).toBe(one.tar?.digest);
});

test('a bundle that is taken apart and written again is the same', async () => {
  const { root } = await makeSmallBook(temporaryFolder());
  const { folder } = await exportBundle(root, undefined, { out: 'bundle' });
  const copy = LooseBundle.read(folder).write(join(root, 'copy'));
  expect(filesBelow(copy)).toEqual(filesBelow(folder));
  for (const path of filesBelow(folder)) {
    expect(readFileSync(join(copy, path)).equals(readFileSync(join(folder, path))), path).toBe(true);
  }
});
