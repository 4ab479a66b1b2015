import type { BareRow, LedgerRow } from '../ledger/chain.js';

/** The rows of a ledger as they lie there. */
export interface RowSource {
  /**
   * A row's bytes may be valid until the next row only.
   *
   * @throws {BoundbookError} LEDGER_DAMAGED with the position up to which it could be read.
   */
  rows(from?: number): Iterable<BareRow | LedgerRow>;
}
