import { HashTiles } from './hash-tiles.js';
import { consistencyProof } from './proofs.js';
import type { LedgerReader } from './reader.js';

/**
 * The tree of a ledger's first entries, to prove from. The leaves are taken as stored: open the ledger as a book first,
 * which verifies them.
 *
 * @param size number of entries
 * @throws {BoundbookError} LEDGER_DAMAGED.
 */
export function ledgerTree(reader: LedgerReader, size: number): HashTiles {
  const tree = new HashTiles((start, end) => reader.leaves(start, end));
  for (const leaf of reader.leaves(0, size)) tree.append(leaf);
  return tree;
}

/** {@link consistencyProof} between two sizes of a ledger. @throws {BoundbookError} PROOF_UNAVAILABLE, LEDGER_DAMAGED. */
export function ledgerConsistency(reader: LedgerReader, oldSize: number, newSize: number): Buffer[] {
  return consistencyProof(ledgerTree(reader, newSize), oldSize, newSize);
}
