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

/** By way of hexadecimal text, which Node makes three times faster than a buffer of its own. */
function sha256(bytes: Uint8Array): Buffer {
  return Buffer.from(hash('sha256', bytes, 'hex'), 'hex');
}

/** A perfect subtree: its root and how many leaves it covers (a power of two). */
interface Subtree {
  readonly leaves: number;
  readonly root: Buffer;
}

/**
 * A tree's right border: the roots of its perfect subtrees, largest first. Enough to append and to compute the
 * root, in memory logarithmic in the size.
 */
export class CompactRange {
  readonly #subtrees: Subtree[] = [];
  #size = 0;

  /**
   * The range with these {@link roots}.
   *
   * @throws {RangeError} when there are not as many as the size asks for
   */
  static of(size: number, roots: readonly Uint8Array[]): CompactRange {
    const range = new CompactRange();
    for (let leaves = 2 ** 52, rest = size; leaves >= 1; leaves /= 2) {
      if (rest < leaves) continue;
      const root = roots[range.#subtrees.length];
      if (root?.length !== HASH_BYTES) break;
      range.#subtrees.push({ leaves, root: Buffer.from(root) });
      range.#size += leaves;
      rest -= leaves;
    }
    if (range.#size === size && range.#subtrees.length === roots.length) return range;
    throw new RangeError(`${roots.length} hashes are not the right border of ${size} leaves`);
  }

  /** Number of leaves. */
  get size(): number {
    return this.#size;
  }

  /** Roots of the perfect subtrees, largest first: one for each bit that is set in the size. */
  get roots(): readonly Buffer[] {
    return this.#subtrees.map(({ root }) => root);
  }

  /** A tree of its own with the same leaves. */
  clone(): CompactRange {
    const copy = new CompactRange();
    copy.#subtrees.push(...this.#subtrees);
    copy.#size = this.#size;
    return copy;
  }

  /** Appends a leaf by its hash, see {@link leafHash}. */
  append(leaf: Uint8Array): void {
    let subtree: Subtree = { leaves: 1, root: Buffer.from(leaf) };
    for (let last = this.#subtrees.at(-1); last?.leaves === subtree.leaves; last = this.#subtrees.at(-1)) {
      this.#subtrees.pop();
      subtree = { leaves: 2 * subtree.leaves, root: nodeHash(last.root, subtree.root) };
    }
    this.#subtrees.push(subtree);
    this.#size++;
  }

  /** The root over all leaves so far. */
  root(): Buffer {
    let root: Buffer | undefined;
    for (let i = this.#subtrees.length - 1; i >= 0; i--) {
      const subtree = this.#subtrees[i];
      if (subtree === undefined) break;
      root = root === undefined ? subtree.root : nodeHash(subtree.root, root);
    }
    return root ?? EMPTY_ROOT;
  }
}
