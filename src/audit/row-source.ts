import type { LedgerRow } from '../ledger/chain.js';

/** The rows of a ledger as they lie there. */
export interface RowSource {
  /** @throws {BoundbookError} LEDGER_DAMAGED with the position up to which it could be read. */
  rows(from?: number): Iterable<LedgerRow>;
}
