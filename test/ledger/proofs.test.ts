import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { BoundbookError } from '../../src/core/errors.js';
import { HashTiles } from '../../src/ledger/hash-tiles.js';
import { CompactRange, EMPTY_ROOT, leafHash } from '../../src/ledger/merkle.js';
import {
  consistencyProof,
  inclusionProof,
  rootAt,
  type SubtreeSource,
  verifyConsistency,
  verifyInclusion,
} from '../../src/ledger/proofs.js';

const VECTORS = join(import.meta.dirname, '../../../shared/vectors/merkle');

/** The definitions of RFC 6962, section 2.1, word for word over a list of leaf bodies: the oracle. */
const reference = {
  sha: (...parts: Uint8Array[]): Buffer => hash('sha256', Buffer.concat(parts), 'buffer'),
  split(n: number): number {
    let k = 1;
    while (k * 2 < n) k *= 2;
    return k;
  },
  root(d: readonly Uint8Array[]): Buffer {
    if (d.length === 0) return this.sha();
    if (d.length === 1) return this.sha(Buffer.of(0), d[0] ?? Buffer.of());
    const k = this.split(d.length);
    return this.sha(Buffer.of(1), this.root(d.slice(0, k)), this.root(d.slice(k)));
  },
  path(m: number, d: readonly Uint8Array[]): Buffer[] {
    if (d.length === 1) return [];
    const k = this.split(d.length);
    return m < k
      ? [...this.path(m, d.slice(0, k)), this.root(d.slice(k))]
      : [...this.path(m - k, d.slice(k)), this.root(d.slice(0, k))];
  },
  subproof(m: number, d: readonly Uint8Array[], whole: boolean): Buffer[] {
    if (m === d.length) return whole ? [] : [this.root(d)];
    const k = this.split(d.length);
    return m <= k
      ? [...this.subproof(m, d.slice(0, k), whole), this.root(d.slice(k))]
      : [...this.subproof(m - k, d.slice(k), false), this.root(d.slice(0, k))];
  },
};

function bodies(count: number): Buffer[] {
  return Array.from({ length: count }, (_, i) => Buffer.from(`entry ${i}`));
}

function tilesOver(entries: readonly Uint8Array[], reads: { count: number } = { count: 0 }): HashTiles {
  const leaves = entries.map(leafHash);
  const tiles = new HashTiles((start, end) => {
    reads.count += end - start;
    return leaves.slice(start, end);
  });
  for (const leaf of leaves) tiles.append(leaf);
  return tiles;
}

function errorOf(act: () => unknown): BoundbookError {
  try {
    act();
  } catch (error) {
    if (error instanceof BoundbookError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

/** Reads a vector with its integers as strings: two of them are 2^64 − 1. */
function readVector(path: string): unknown {
  return JSON.parse(readFileSync(path, 'utf8').replaceAll(/: (\d+)(,?)$/gm, ': "$1"$2'));
}

function files(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.json'))
    .map((name) => join(folder, name))
    .sort();
}

const base64 = z.string().transform((text) => Buffer.from(text, 'base64'));
const proof = z
  .array(base64)
  .nullable()
  .transform((value) => value ?? []);
const inclusionVector = z.object({
  leafIdx: z.string().transform(BigInt),
  treeSize: z.string().transform(BigInt),
  root: base64,
  leafHash: base64,
  proof,
  wantErr: z.boolean(),
});
const consistencyVector = z.object({
  size1: z.string().transform(BigInt),
  size2: z.string().transform(BigInt),
  root1: base64,
  root2: base64,
  proof,
  wantErr: z.boolean(),
});

describe.skipIf(!existsSync(VECTORS))('public vectors (transparency-dev/merkle)', () => {
  it('holds all 98 inclusion vectors', () => {
    const paths = files(join(VECTORS, 'inclusion'));
    expect(paths).toHaveLength(98);
    for (const path of paths) {
      const vector = inclusionVector.parse(readVector(path));
      const verify = (): void =>
        verifyInclusion({
          index: vector.leafIdx,
          size: vector.treeSize,
          leaf: vector.leafHash,
          root: vector.root,
          proof: vector.proof,
        });
      if (vector.wantErr) expect(errorOf(verify).code, path).toBe('PROOF_INVALID');
      else expect(verify, path).not.toThrow();
    }
  });

  it('holds all 98 consistency vectors', () => {
    const paths = files(join(VECTORS, 'consistency'));
    expect(paths).toHaveLength(98);
    for (const path of paths) {
      const vector = consistencyVector.parse(readVector(path));
      const verify = (): void =>
        verifyConsistency({
          oldSize: vector.size1,
          oldRoot: vector.root1,
          newSize: vector.size2,
          newRoot: vector.root2,
          proof: vector.proof,
        });
      if (vector.wantErr) expect(errorOf(verify).code, path).toBe('PROOF_INVALID');
      else expect(verify, path).not.toThrow();
    }
  });
});

describe('roots', () => {
  // Leaves and roots of transparency-dev/merkle, testonly/constants.go.
  const inputs = [
    '',
    '00',
    '10',
    '2021',
    '3031',
    '40414243',
    '5051525354555657',
    '606162636465666768696a6b6c6d6e6f',
  ];
  const roots = [
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

  it('are the published ones for every size', () => {
    const tiles = tilesOver(inputs.map((text) => Buffer.from(text, 'hex')));
    expect(roots.map((_, size) => rootAt(tiles, size).toString('hex'))).toEqual(roots);
  });
});

describe('generation against the definition', () => {
  it('is exhaustive for the first 40 sizes', () => {
    const entries = bodies(40);
    const tiles = tilesOver(entries);
    for (let size = 1; size <= 40; size++) {
      const part = entries.slice(0, size);
      expect(rootAt(tiles, size)).toEqual(reference.root(part));
      for (let i = 0; i < size; i++) expect(inclusionProof(tiles, i, size)).toEqual(reference.path(i, part));
      for (let old = 1; old <= size; old++) {
        expect(consistencyProof(tiles, old, size)).toEqual(reference.subproof(old, part, true));
      }
    }
  });

  it('agrees for random sizes over several tiles, and verifies', () => {
    const entries = bodies(1400);
    const tiles = tilesOver(entries);
    const sizes = fc.tuple(fc.integer({ min: 1, max: 1400 }), fc.nat(), fc.nat());
    fc.assert(
      fc.property(sizes, ([size, a, b]) => {
        const index = a % size;
        const old = 1 + (b % size);
        const part = entries.slice(0, size);
        const inclusion = inclusionProof(tiles, index, size);
        const consistency = consistencyProof(tiles, old, size);
        expect(inclusion).toEqual(reference.path(index, part));
        expect(consistency).toEqual(reference.subproof(old, part, true));
        const root = rootAt(tiles, size);
        const leaf = leafHash(entries[index] ?? Buffer.of());
        verifyInclusion({ index: BigInt(index), size: BigInt(size), leaf, root, proof: inclusion });
        verifyConsistency({
          oldSize: BigInt(old),
          oldRoot: rootAt(tiles, old),
          newSize: BigInt(size),
          newRoot: root,
          proof: consistency,
        });
      }),
      { numRuns: 60, seed: 20260927 },
    );
  });

  it('reads at most two tiles for a proof', () => {
    const reads = { count: 0 };
    const tiles = tilesOver(bodies(5000), reads);
    for (const [index, size] of [
      [0, 5000],
      [4999, 5000],
      [2047, 4863],
      [300, 4999],
    ] as const) {
      reads.count = 0;
      inclusionProof(tiles, index, size);
      expect(reads.count).toBeLessThanOrEqual(510);
      reads.count = 0;
      consistencyProof(tiles, index + 1, size);
      expect(reads.count).toBeLessThanOrEqual(510);
    }
  });

  it('has the root of the incremental tree', () => {
    const range = new CompactRange();
    const entries = bodies(777);
    for (const entry of entries) range.append(leafHash(entry));
    expect(rootAt(tilesOver(entries), 777)).toEqual(range.root());
    expect(rootAt(tilesOver([]), 0)).toEqual(EMPTY_ROOT);
  });
});

describe('refusals', () => {
  const entries = bodies(300);
  const tiles = tilesOver(entries);

  it.each([
    ['a leaf beyond the tree', () => inclusionProof(tiles, 5, 5)],
    ['a negative leaf', () => inclusionProof(tiles, -1, 5)],
    ['half a leaf', () => inclusionProof(tiles, 0.5, 5)],
    ['a tree beyond the ledger', () => inclusionProof(tiles, 0, 301)],
    ['an old size above the new one', () => consistencyProof(tiles, 9, 8)],
    ['a size that is no number', () => rootAt(tiles, Number.NaN)],
    ['a subtree beyond the edge', () => tiles.subtree(5, 9)],
  ])('%s', (_, act) => {
    expect(errorOf(act).code).toBe('PROOF_UNAVAILABLE');
  });

  it('notices a reader that gives fewer or other leaves', () => {
    const leaf = leafHash(Buffer.of());
    const broken = (read: () => Uint8Array[]): HashTiles => {
      const source = new HashTiles(read);
      for (let i = 0; i < 256; i++) source.append(leaf);
      return source;
    };
    expect(
      errorOf(() =>
        inclusionProof(
          broken(() => []),
          0,
          256,
        ),
      ).code,
    ).toBe('LEDGER_DAMAGED');
    expect(
      errorOf(() =>
        inclusionProof(
          broken(() => [Buffer.of(1)]),
          0,
          256,
        ),
      ).code,
    ).toBe('LEDGER_DAMAGED');
  });

  it('finds every single changed bit, hash too few, too many or out of order', () => {
    const size = 300;
    const source: SubtreeSource = tiles;
    const root = rootAt(source, size);
    let refused = 0;
    for (const index of [0, 1, 255, 256, 299]) {
      const path = inclusionProof(source, index, size);
      const claim = {
        index: BigInt(index),
        size: 300n,
        leaf: leafHash(entries[index] ?? Buffer.of()),
        root,
        proof: path,
      };
      verifyInclusion(claim);
      const bad = [
        ...path.flatMap((node, at) => [0, 100, 255].map((bit) => path.with(at, flip(node, bit)))),
        path.slice(1),
        path.slice(0, -1),
        [...path, root],
        [root, ...path],
        path.toReversed(),
        [...path.slice(0, -1), Buffer.of()],
      ].map((changed) => ({ ...claim, proof: changed }));
      const others = [
        { ...claim, index: claim.index ^ 1n },
        { ...claim, index: -1n },
        { ...claim, index: 1n << 64n },
        { ...claim, size: 1n << 65n },
        { ...claim, leaf: flip(claim.leaf, 3) },
        { ...claim, root: flip(root, 3) },
        { ...claim, leaf: entries[index] ?? Buffer.of() },
      ];
      for (const changed of [...bad, ...others]) {
        expect(errorOf(() => verifyInclusion(changed)).code).toBe('PROOF_INVALID');
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(150);
  });

  it('does not take a node for a leaf', () => {
    const two = tilesOver(bodies(2));
    const forged = leafHash(Buffer.concat([two.subtree(0, 0), two.subtree(0, 1)]));
    const claim = { index: 0n, size: 1n, leaf: forged, root: rootAt(two, 2), proof: [] };
    expect(errorOf(() => verifyInclusion(claim)).code).toBe('PROOF_INVALID');
  });

  it('carries both roots and the failing proof', () => {
    const other = tilesOver([...bodies(100), Buffer.from('another'), ...bodies(300).slice(101)]);
    const failing = consistencyProof(other, 150, 300);
    const error = errorOf(() =>
      verifyConsistency({
        oldSize: 150n,
        oldRoot: rootAt(tiles, 150),
        newSize: 300n,
        newRoot: rootAt(other, 300),
        proof: failing,
      }),
    );
    expect(error.evidence).toEqual({
      kind: 'consistency',
      old_size: '150',
      old_root: rootAt(tiles, 150).toString('hex'),
      new_size: '300',
      new_root: rootAt(other, 300).toString('hex'),
      computed_old_root: rootAt(other, 150).toString('hex'),
      computed_new_root: rootAt(other, 300).toString('hex'),
      proof: failing.map((node) => node.toString('hex')),
    });
    expect(error.exitCode).toBe(4);
  });
});

function flip(bytes: Uint8Array, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return copy;
}
