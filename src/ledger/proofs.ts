import { BoundbookError } from '../core/errors.js';
import type { JsonValue } from '../core/json.js';
import { EMPTY_ROOT, HASH_BYTES, nodeHash } from './merkle.js';

/**
 * Proofs over the Merkle tree of RFC 6962: generation as sections 2.1.1 and 2.1.2 define it, verification by the
 * algorithms of RFC 9162 (2.1.3.2 and 2.1.4.2). Sizes of a proof that came from outside are BigInt, up to 2^64 − 1.
 */

/**
 * Gives the roots of perfect subtrees. A proof over n leaves asks for O(log² n) of them at most, so that a ledger
 * never has to be held in memory.
 */
export interface SubtreeSource {
  /** Number of leaves. */
  readonly size: number;
  /** Root over the leaves `index · 2^level` up to, but not including, `(index + 1) · 2^level`. */
  subtree(level: number, index: number): Buffer;
}

/** The tree head over the first `size` leaves. @throws {BoundbookError} PROOF_UNAVAILABLE */
export function rootAt(source: SubtreeSource, size: number): Buffer {
  assertSize(source, size);
  return rangeRoot(source, 0, size);
}

/**
 * The audit path of a leaf in the tree of the first `size` leaves: siblings from the leaf up (RFC 6962, 2.1.1).
 *
 * @throws {BoundbookError} PROOF_UNAVAILABLE when there is no such leaf or tree.
 */
export function inclusionProof(source: SubtreeSource, index: number, size: number): Buffer[] {
  assertSize(source, size);
  if (!Number.isSafeInteger(index) || index < 0 || index >= size) {
    unavailable(`there is no leaf ${index} in a tree of ${size}`);
  }
  const siblings: Buffer[] = [];
  let start = 0;
  let end = size;
  while (end - start > 1) {
    const middle = start + splitOf(end - start);
    if (index < middle) {
      siblings.push(rangeRoot(source, middle, end));
      end = middle;
    } else {
      siblings.push(rangeRoot(source, start, middle));
      start = middle;
    }
  }
  return siblings.reverse();
}

/**
 * The proof that the tree of `newSize` leaves extends that of `oldSize` leaves (RFC 6962, 2.1.2). Empty when the
 * sizes are equal, and when the old tree is empty, where there is nothing to prove.
 *
 * @throws {BoundbookError} PROOF_UNAVAILABLE when there is no such tree.
 */
export function consistencyProof(source: SubtreeSource, oldSize: number, newSize: number): Buffer[] {
  assertSize(source, newSize);
  if (!Number.isSafeInteger(oldSize) || oldSize < 0 || oldSize > newSize) {
    unavailable(`a tree of ${newSize} leaves cannot extend one of ${oldSize}`);
  }
  if (oldSize === 0) return [];
  const nodes: Buffer[] = [];
  let start = 0;
  let end = newSize;
  while (end !== oldSize) {
    const middle = start + splitOf(end - start);
    if (oldSize <= middle) {
      nodes.push(rangeRoot(source, middle, end));
      end = middle;
    } else {
      nodes.push(rangeRoot(source, start, middle));
      start = middle;
    }
  }
  // The verifier knows the old root; it only lacks the last subtree when that is not the whole old tree.
  if (start !== 0) nodes.push(rangeRoot(source, start, end));
  return nodes.reverse();
}

/** Root over the leaves from `start` to before `end`; `start` is a multiple of the range's largest power of two. */
function rangeRoot(source: SubtreeSource, start: number, end: number): Buffer {
  const count = end - start;
  if (count === 0) return EMPTY_ROOT;
  const split = splitOf(count);
  if (count === 1 || count === 2 * split) return source.subtree(Math.log2(count), start / count);
  return nodeHash(rangeRoot(source, start, start + split), rangeRoot(source, start + split, end));
}

/** The largest power of two below a count (1 for a count of 1). */
function splitOf(count: number): number {
  let split = 1;
  while (2 * split < count) split *= 2;
  return split;
}

function assertSize(source: SubtreeSource, size: number): void {
  if (!Number.isSafeInteger(size) || size < 0 || size > source.size) {
    unavailable(`there is no tree of ${size} leaves in a ledger of ${source.size}`);
  }
}

function unavailable(reason: string): never {
  throw new BoundbookError('PROOF_UNAVAILABLE', reason, {
    hint: 'Check that this is the ledger the checkpoint or the slot belongs to.',
  });
}

/** That a leaf is in a tree. */
export interface InclusionClaim {
  readonly index: bigint;
  readonly size: bigint;
  /** Hash of the leaf, see `leafHash`. */
  readonly leaf: Uint8Array;
  readonly root: Uint8Array;
  readonly proof: readonly Uint8Array[];
}

/**
 * Verifies an inclusion proof (RFC 9162, 2.1.3.2).
 *
 * @throws {BoundbookError} PROOF_INVALID; the evidence holds the claim and the root that the proof leads to.
 */
export function verifyInclusion(claim: InclusionClaim): void {
  const { index, size, leaf, root, proof } = claim;
  const refuse: (reason: string, computed?: Uint8Array) => never = (reason, computed) =>
    invalid(`the inclusion proof of leaf ${index} in a tree of ${size} fails: ${reason}`, {
      kind: 'inclusion',
      index: String(index),
      size: String(size),
      leaf: hex(leaf),
      root: hex(root),
      computed_root: computed === undefined ? null : hex(computed),
      proof: proof.map(hex),
    });
  if (!isSize(index) || !isSize(size) || index >= size) refuse('there is no such leaf');
  if (![leaf, root, ...proof].every(isHash)) refuse('a hash has not 32 bytes');
  const path = climb(index, size - 1n, proof.length);
  if (path === undefined) refuse('it has the wrong number of hashes');
  const computed = path.reduce<Uint8Array>((node, side, i) => {
    const sibling = proof[i] ?? node;
    return side === 'left' ? nodeHash(sibling, node) : nodeHash(node, sibling);
  }, leaf);
  if (!equal(computed, root)) refuse('it leads to another root', computed);
}

/** That one tree is a prefix of another. */
export interface ConsistencyClaim {
  readonly oldSize: bigint;
  readonly oldRoot: Uint8Array;
  readonly newSize: bigint;
  readonly newRoot: Uint8Array;
  readonly proof: readonly Uint8Array[];
}

/**
 * Verifies a consistency proof (RFC 9162, 2.1.4.2). An old tree without leaves is refused: every tree extends it,
 * so that a proof says nothing.
 *
 * @throws {BoundbookError} PROOF_INVALID; the evidence holds both roots, the roots computed, and the proof.
 */
export function verifyConsistency(claim: ConsistencyClaim): void {
  const { oldSize, oldRoot, newSize, newRoot, proof } = claim;
  const refuse: (reason: string, computed?: RootPair) => never = (reason, computed) =>
    invalid(`the proof that a tree of ${newSize} extends one of ${oldSize} fails: ${reason}`, {
      kind: 'consistency',
      old_size: String(oldSize),
      old_root: hex(oldRoot),
      new_size: String(newSize),
      new_root: hex(newRoot),
      computed_old_root: computed === undefined ? null : hex(computed.old),
      computed_new_root: computed === undefined ? null : hex(computed.new),
      proof: proof.map(hex),
    });
  if (!isSize(oldSize) || !isSize(newSize) || oldSize > newSize) refuse('the sizes are out of order');
  if (oldSize === 0n) refuse('an empty tree proves nothing');
  if (oldSize === newSize) {
    if (proof.length > 0) refuse('equal sizes need no hashes');
    if (!equal(oldRoot, newRoot)) refuse('the sizes are equal and the roots differ');
    return;
  }
  if (![oldRoot, newRoot, ...proof].every(isHash)) refuse('a hash has not 32 bytes');
  const computed = consistentRoots(claim);
  if (computed === undefined) refuse('it has the wrong number of hashes');
  if (!equal(computed.old, oldRoot)) refuse('it leads to another old root', computed);
  if (!equal(computed.new, newRoot)) refuse('it leads to another new root', computed);
}

interface RootPair {
  readonly old: Uint8Array;
  readonly new: Uint8Array;
}

/** Both roots that a consistency proof leads to, or undefined when it has the wrong length. 0 < old < new. */
function consistentRoots(claim: ConsistencyClaim): RootPair | undefined {
  let last = claim.oldSize - 1n;
  let end = claim.newSize - 1n;
  while (last & 1n) {
    last >>= 1n;
    end >>= 1n;
  }
  // A power of two: the old tree is a whole subtree of the new one, and its root is not repeated in the proof.
  const [first, ...rest] = last === 0n ? [claim.oldRoot, ...claim.proof] : claim.proof;
  const path = climb(last, end, rest.length);
  if (first === undefined || path === undefined) return undefined;
  let old = first;
  let current = first;
  for (const [i, side] of path.entries()) {
    const node = rest[i];
    if (node === undefined) return undefined;
    if (side === 'left') {
      old = nodeHash(node, old);
      current = nodeHash(node, current);
    } else {
      current = nodeHash(current, node);
    }
  }
  return { old, new: current };
}

/**
 * On which side each sibling of a path lies, from a node up to the root, where `last` is the position of the last
 * node on the same level. Undefined when the path has not exactly `length` steps.
 */
function climb(position: bigint, last: bigint, length: number): ('left' | 'right')[] | undefined {
  const sides: ('left' | 'right')[] = [];
  let at = position;
  let end = last;
  while (end !== 0n) {
    if (sides.length === length) return undefined;
    if (at & 1n || at === end) {
      sides.push('left');
      // A node without a right neighbour moves up unchanged, until it is a right child.
      while (!(at & 1n) && at !== 0n) {
        at >>= 1n;
        end >>= 1n;
      }
    } else {
      sides.push('right');
    }
    at >>= 1n;
    end >>= 1n;
  }
  return sides.length === length ? sides : undefined;
}

function isSize(value: bigint): boolean {
  return value >= 0n && value < 1n << 64n;
}

function isHash(value: Uint8Array): boolean {
  return value.length === HASH_BYTES;
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function invalid(message: string, evidence: JsonValue): never {
  throw new BoundbookError('PROOF_INVALID', message, {
    hint: 'Keep the proof and both roots: together they show that one of them was not computed from this ledger.',
    evidence,
  });
}
