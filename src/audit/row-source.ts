import type { BareRow, LedgerRow } from '../ledger/chain.js';
import type { Manifest } from '../manifest/manifest.js';
import type { ObjectSource } from './objects.js';

/** The rows of a ledger as they lie there. */
export interface RowSource {
  /**
   * A row's bytes may be valid until the next row only.
   *
   * @throws {BoundbookError} LEDGER_DAMAGED with the position up to which it could be read.
   */
  rows(from?: number): Iterable<BareRow | LedgerRow>;
}

/** One ledger, wherever it lies: a folder of a workspace, or a part of a bundle. Nothing about it is trusted. */
export interface LedgerSource extends RowSource {
  readonly objects: ObjectSource;
  /** The report schemas that a manifest binds, by binding name, as far as they are at hand. */
  schemas(manifest: Manifest): ReadonlyMap<string, Uint8Array>;
  /** What it states of the ids in task files that are redacted, by task set. */
  taskIds(): ReadonlyMap<string, readonly string[]>;
}
