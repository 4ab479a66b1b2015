import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CompactRange, EMPTY_ROOT, leafHash, nodeHash } from '../../src/ledger/merkle.js';

/** Leaves and roots of the reference tree that Certificate Transparency implementations share (trees of 0 to 8). */
const LEAVES = [
  '',
  '00',
  '10',
  '2021',
  '3031',
  '40414243',
  '5051525354555657',
  '606162636465666768696a6b6c6d6e6f',
];
const ROOTS = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];

function rootOf(leaves: readonly Uint8Array[]): string {
  const range = new CompactRange();
  for (const leaf of leaves) range.append(leafHash(leaf));
  return range.root().toString('hex');
}

/** RFC 6962 section 2.1, word by word: independent of the compact range. */
function definition(leaves: readonly Uint8Array[]): Buffer {
  const [first] = leaves;
  if (first === undefined) return createHash('sha256').digest();
  if (leaves.length === 1)
    return createHash('sha256')
      .update(Buffer.from([0]))
      .update(first)
      .digest();
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  const hash = createHash('sha256').update(Buffer.from([1]));
  return hash
    .update(definition(leaves.slice(0, k)))
    .update(definition(leaves.slice(k)))
    .digest();
}

describe('the tree of RFC 6962', () => {
  it('has the known roots for 0 to 8 leaves', () => {
    const leaves = LEAVES.map((hex) => Buffer.from(hex, 'hex'));
    for (const [size, root] of ROOTS.entries()) expect(rootOf(leaves.slice(0, size))).toBe(root);
    expect(EMPTY_ROOT.toString('hex')).toBe(ROOTS[0]);
  });

  it('equals the recursive definition, for every size', () => {
    const leaf = fc.uint8Array({ maxLength: 40 });
    fc.assert(
      fc.property(fc.array(leaf, { maxLength: 70 }), (leaves) => {
        expect(rootOf(leaves)).toBe(definition(leaves).toString('hex'));
      }),
      { seed: 6962, numRuns: 200 },
    );
  });

  it('never mixes leaves and nodes up', () => {
    const a = leafHash(Buffer.from('a'));
    const b = leafHash(Buffer.from('b'));
    expect(leafHash(Buffer.concat([a, b]))).not.toEqual(nodeHash(a, b));
    expect(rootOf([Buffer.from('a'), Buffer.from('b'), Buffer.from('b')])).not.toBe(
      rootOf([Buffer.from('a'), Buffer.from('b')]),
    );
  });

  it('can be asked for its root at any time without losing its place', () => {
    const range = new CompactRange();
    const leaves = LEAVES.map((hex) => Buffer.from(hex, 'hex'));
    for (const [i, leaf] of leaves.entries()) {
      expect(range.root().toString('hex')).toBe(ROOTS[i]);
      expect(range.size).toBe(i);
      range.append(leafHash(leaf));
    }
  });
});
