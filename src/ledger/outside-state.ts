import { BoundbookError } from '../core/errors.js';
import { decodeUtf8, readFileBounded } from '../core/files.js';
import { parseAnchor } from './anchor.js';
import { checkpointOf } from './checkpoint.js';
import { type LedgerIdentity, parseOrigin } from './origin.js';

/** The state of a ledger as somebody outside has it: a checkpoint note, or the head that lies beside its folder. */
export interface OutsideState {
  readonly size: number;
  /** Root over those entries, 64 hexadecimal digits; null when only the last leaf is known. */
  readonly root: string | null;
  readonly leaf: string | null;
  readonly note: string | null;
  /** Which ledger it is of; null when it does not say. */
  readonly identity: LedgerIdentity | null;
}

/** A note that an entry can quote. */
const MAX_BYTES = 16_384;

/**
 * Reads a checkpoint note or a `.head` file. Signatures are not looked at: what it claims is put on record with it.
 *
 * @throws {BoundbookError} NOTE_INVALID when it is neither; LEDGER_DAMAGED for a head that cannot be understood; as
 * `readFileBounded`.
 */
export async function readOutsideState(path: string): Promise<OutsideState> {
  const bytes = await readFileBounded(path, { maxBytes: MAX_BYTES });
  if (bytes[0] === 0x7b) {
    const { size, leaf } = parseAnchor(bytes, path);
    return { size, leaf, root: null, note: null, identity: null };
  }
  const { origin, size, root } = checkpointOf(bytes);
  const identity = parseOrigin(origin);
  if (identity === null || size < 1n || size > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new BoundbookError(
      'NOTE_INVALID',
      `${path} is no checkpoint of a Boundbook ledger ("${origin}", ${size})`,
      {
        hint: 'Name a note out of checkpoints/, or the .head file that lay beside the ledger.',
      },
    );
  }
  const { ledger, incarnation } = identity;
  return {
    size: Number(size),
    root: root.toString('hex'),
    leaf: null,
    note: decodeUtf8(bytes, path),
    identity: { ledger, incarnation },
  };
}
