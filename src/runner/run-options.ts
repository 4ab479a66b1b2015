import type { RestoreRequest } from '../ledger/restore.js';
import type { Product } from '../manifest/product.js';
import type { SignerKey } from '../signing/keys.js';
import type { RunSelection } from './selection.js';

export interface RunOptions {
  readonly root: string;
  readonly manifest?: string | undefined;
  readonly workers: number;
  readonly selection: RunSelection;
  /** Goes on with an older copy that was put back, on the record. */
  readonly restore?: RestoreRequest | undefined;
  /** How many slots may be taken up; null: all; 0: none but those that were started before. */
  readonly limit: number | null;
  /** Generates this share of the stopped outputs again, without the stop rule, and takes up no slot; absent: works on the plan. */
  readonly recheck?: string | undefined;
  readonly terminal: boolean;
  readonly progress: (line: string) => void;
  /** Stops the session in order: what is in flight may end. */
  readonly signal: AbortSignal;
  /** Stops it at once: what is in flight is cut. */
  readonly force?: AbortSignal | undefined;
  readonly now: () => string;
  /** Signs the checkpoints; null: they have no note. */
  readonly key?: SignerKey | null | undefined;
  /** The running program; tests hand in another. */
  readonly product?: Product | undefined;
  /** How often bound files are looked at, in milliseconds. */
  readonly watchMs?: number | undefined;
  /** How often the ledger gets an entry at least, in seconds. */
  readonly heartbeatSeconds?: number | undefined;
  readonly onHash?: ((done: number, total: number) => void) | undefined;
}
