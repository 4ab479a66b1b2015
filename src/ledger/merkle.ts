import { hash } from 'node:crypto';

/**
 * The Merkle tree of RFC 6962 (section 2.1) over entry bodies: leaf = SHA-256(0x00 ‖ body), node =
 * SHA-256(0x01 ‖ left ‖ right), split at the largest power of two below the size. Pure: bytes in, hashes out.
 */

export const HASH_BYTES = 32;

/** Root of the tree without leaves: SHA-256 of nothing. */
export const EMPTY_ROOT: Buffer = hash('sha256', '', 'buffer');

/** A leaf's bytes with their prefix, for all bodies that an entry can have. */
const leafInput = Buffer.alloc(1 << 16);
const nodeInput = Buffer.alloc(1 + 2 * HASH_BYTES, 0x01);

/** The hash of a leaf. The prefix keeps a leaf from passing for a node. */
export function leafHash(body: Uint8Array): Buffer {
  if (body.length >= leafInput.length) return sha256(Buffer.concat([Buffer.alloc(1), body]));
  leafInput.set(body, 1);
  return sha256(leafInput.subarray(0, 1 + body.length));
}

/** The hash of an inner node. */
export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  nodeInput.set(left, 1);
  nodeInput.set(right, 1 + HASH_BYTES);
  return sha256(nodeInput);
}

/** By way of a text of bytes, which Node makes several times faster than a buffer of its own. */
function sha256(bytes: Uint8Array): Buffer {
  return Buffer.from(hash('sha256', bytes, 'binary'), 'binary');
}

/** More perfect subtrees than a tree of any size has. */
const MAX_SUBTREES = 54;

/**
 * A tree's right border: the roots of its perfect subtrees, largest first. Enough to append and to compute the
 * root, in memory logarithmic in the size.
 */
export class CompactRange {
  /** The roots one after another. */
  readonly #roots = Buffer.alloc(MAX_SUBTREES * HASH_BYTES);
  #count = 0;
  #size = 0;

  /**
   * The range with these {@link roots}.
   *
   * @throws {RangeError} when there are not as many as the size asks for
   */
  static of(size: number, roots: readonly Uint8Array[]): CompactRange {
    const range = new CompactRange();
    for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) range.#count += rest % 2;
    if (roots.length !== range.#count || roots.some((root) => root.length !== HASH_BYTES)) {
      throw new RangeError(`${roots.length} hashes are not the right border of ${size} leaves`);
    }
    for (const [i, root] of roots.entries()) range.#roots.set(root, i * HASH_BYTES);
    range.#size = size;
    return range;
  }

  /** Number of leaves. */
  get size(): number {
    return this.#size;
  }

  /** Roots of the perfect subtrees, largest first: one for each bit that is set in the size. */
  get roots(): readonly Buffer[] {
    return Array.from({ length: this.#count }, (_, i) => this.#root(i));
  }

  /** A tree of its own with the same leaves. */
  clone(): CompactRange {
    return CompactRange.of(this.#size, this.roots);
  }

  /** Appends a leaf by its hash, see {@link leafHash}. */
  append(leaf: Uint8Array): void {
    this.#roots.set(leaf, this.#count * HASH_BYTES);
    this.#count++;
    // One merge for each set bit at the end of the size: two subtrees of one height lie side by side.
    for (let rest = this.#size; rest % 2 === 1; rest = Math.floor(rest / 2)) {
      this.#count--;
      const left = (this.#count - 1) * HASH_BYTES;
      this.#roots.copy(nodeInput, 1, left, left + 2 * HASH_BYTES);
      this.#roots.write(hash('sha256', nodeInput, 'binary'), left, 'binary');
    }
    this.#size++;
  }

  /** The root over all leaves so far. */
  root(): Buffer {
    if (this.#count === 0) return EMPTY_ROOT;
    let root = this.#root(this.#count - 1);
    for (let i = this.#count - 2; i >= 0; i--) root = nodeHash(this.#root(i), root);
    return root;
  }

  #root(i: number): Buffer {
    return Buffer.from(this.#roots.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES));
  }
}
