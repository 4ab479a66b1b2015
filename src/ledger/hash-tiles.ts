import { BoundbookError } from '../core/errors.js';
import { HASH_BYTES, nodeHash } from './merkle.js';
import type { SubtreeSource } from './proofs.js';

const TILE_HEIGHT = 8;
const TILE_LEAVES = 2 ** TILE_HEIGHT;

/** Reads the leaf hashes from `start` to before `end`, in order. */
export type LeafReader = (start: number, end: number) => Iterable<Uint8Array>;

/**
 * The upper part of a Merkle tree: roots of its full tiles of 256 leaves and of everything above, kept while leaves
 * are appended. What lies inside a full tile is read again when a proof needs it.
 *
 * Cost for n leaves: n hashes to fill; 64 bytes per tile of memory (256 KB for a million leaves) and at most 255 open
 * leaves; a proof reads at most 255 leaves in the tile of its leaf and 255 in that of the tree's edge.
 */
export class HashTiles implements SubtreeSource {
  readonly #read: LeafReader;
  /** Leaves of the last tile while it is not full. */
  #open: Buffer[] = [];
  /** Roots by height above a tile, 32 bytes each, one after another. */
  readonly #levels: GrowingBytes[] = [];
  #tiles = 0;

  /** @param read gives leaves of full tiles only; they must be those that were appended. */
  constructor(read: LeafReader) {
    this.#read = read;
  }

  get size(): number {
    return this.#tiles * TILE_LEAVES + this.#open.length;
  }

  /** Appends a leaf by its hash. */
  append(leaf: Uint8Array): void {
    this.#open.push(Buffer.from(leaf));
    if (this.#open.length < TILE_LEAVES) return;
    this.#addRoot(0, foldPerfect(this.#open));
    this.#open = [];
    this.#tiles++;
  }

  subtree(level: number, index: number): Buffer {
    const leaves = 2 ** level;
    const start = index * leaves;
    if (!Number.isSafeInteger(start) || start < 0 || start + leaves > this.size) {
      throw new BoundbookError('PROOF_UNAVAILABLE', `there is no full subtree ${index} of ${leaves} leaves`);
    }
    if (level >= TILE_HEIGHT) return this.#root(level - TILE_HEIGHT, index);
    const openAt = this.#tiles * TILE_LEAVES;
    if (start >= openAt) return foldPerfect(this.#open.slice(start - openAt, start - openAt + leaves));
    return foldPerfect(this.#readLeaves(start, start + leaves));
  }

  #addRoot(height: number, root: Buffer): void {
    const level = this.#levels[height] ?? new GrowingBytes();
    this.#levels[height] = level;
    level.push(root);
    const count = level.length / HASH_BYTES;
    if (count % 2 === 0) {
      this.#addRoot(height + 1, nodeHash(this.#root(height, count - 2), this.#root(height, count - 1)));
    }
  }

  #root(height: number, index: number): Buffer {
    const root = this.#levels[height]?.slice(index * HASH_BYTES, (index + 1) * HASH_BYTES);
    if (root?.length !== HASH_BYTES) throw new BoundbookError('INTERNAL', 'a hash tile is missing');
    return root;
  }

  #readLeaves(start: number, end: number): Buffer[] {
    const leaves = Array.from(this.#read(start, end), (leaf) => Buffer.from(leaf));
    if (leaves.length !== end - start || leaves.some((leaf) => leaf.length !== HASH_BYTES)) {
      throw new BoundbookError('LEDGER_DAMAGED', `the leaves ${start} to ${end - 1} cannot be read back`, {
        hint: 'Entries are missing that were there a moment ago. Run `boundbook audit`.',
        evidence: { start, end, found: leaves.length },
      });
    }
    return leaves;
  }
}

/** The root over a power of two of leaf hashes. */
function foldPerfect(leaves: readonly Buffer[]): Buffer {
  let nodes = leaves;
  while (nodes.length > 1) {
    const above: Buffer[] = [];
    for (let i = 0; i + 1 < nodes.length; i += 2) {
      const [left, right] = [nodes[i], nodes[i + 1]];
      if (left !== undefined && right !== undefined) above.push(nodeHash(left, right));
    }
    nodes = above;
  }
  const [root] = nodes;
  if (root === undefined) throw new BoundbookError('INTERNAL', 'a subtree without leaves has no root');
  return root;
}

/** Bytes that grow by doubling, so that a million hashes are not a million objects. */
class GrowingBytes {
  #bytes = Buffer.alloc(16 * HASH_BYTES);
  length = 0;

  push(bytes: Uint8Array): void {
    if (this.length + bytes.length > this.#bytes.length) {
      this.#bytes = Buffer.concat([this.#bytes], 2 * this.#bytes.length);
    }
    this.#bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** A copy, so that growth does not matter to who holds it. */
  slice(start: number, end: number): Buffer {
    return Buffer.from(this.#bytes.subarray(start, Math.min(end, this.length)));
  }
}
