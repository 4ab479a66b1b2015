import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { SignerKey } from '../signing/keys.js';
import { parseNote } from '../signing/note.js';
import { parseCheckpoint, signCheckpoint } from './checkpoint.js';
import type { DraftOf } from './entries/entry.js';
import type { CompactRange } from './merkle.js';
import { keyOfLedger, type LedgerIdentity, parseOrigin } from './origin.js';

/** `checkpoint` entries: how they are made, and whether what they say is so. Pure. */

/**
 * The checkpoint over all entries of a tree.
 *
 * @param key signs it; null: the entry has no note, and proves nothing to others
 * @throws {BoundbookError} KEY_INVALID.
 */
export function checkpointDraft(
  tree: CompactRange,
  identity: LedgerIdentity,
  key: SignerKey | null,
  timestamps: readonly Digest[],
): DraftOf<'checkpoint'> {
  const { size } = tree;
  const root = tree.root();
  const note = key === null ? null : signTree(keyOfLedger(key, identity), size, root);
  return { type: 'checkpoint', size, root: root.toString('hex'), note, timestamps: [...timestamps] };
}

function signTree(key: SignerKey, size: number, root: Buffer): string {
  return signCheckpoint({ origin: key.verifier.name, size: BigInt(size), root }, key).toString('utf8');
}

/**
 * What is wrong with a checkpoint entry: its root against the tree before it, its note against both. Signatures are
 * another matter: they need a key from elsewhere.
 *
 * @param tree over all entries before it
 * @param identity of the ledger at that point; null when it is not known
 */
export function checkpointFaults(
  entry: Pick<DraftOf<'checkpoint'>, 'size' | 'root' | 'note'>,
  tree: CompactRange,
  identity: LedgerIdentity | null,
): readonly string[] {
  const root = tree.root().toString('hex');
  const faults = entry.root === root ? [] : [`its root is ${entry.root}; the entries before it make ${root}`];
  return entry.note === null ? faults : [...faults, ...noteFaults(entry.note, entry, identity)];
}

/** What a note says that the entry which it belongs to does not. */
export function noteFaults(
  text: string,
  entry: Pick<DraftOf<'checkpoint'>, 'size' | 'root'>,
  identity: LedgerIdentity | null,
): readonly string[] {
  try {
    const note = parseNote(Buffer.from(text, 'utf8'));
    const { origin, size, root } = parseCheckpoint(note.text);
    const faults: string[] = [];
    if (size !== BigInt(entry.size)) faults.push(`its note says size ${size}`);
    if (root.toString('hex') !== entry.root) faults.push(`its note says the root ${root.toString('hex')}`);
    const named = parseOrigin(origin);
    const own =
      named !== null &&
      (identity === null || (named.ledger === identity.ledger && named.incarnation === identity.incarnation));
    if (!own) faults.push(`its note is of "${origin}", another ledger or incarnation`);
    if (!note.signatures.some(({ name }) => name === origin)) {
      faults.push('its note has no signature under the name of its origin');
    }
    return faults;
  } catch (error) {
    if (!(error instanceof BoundbookError)) throw error;
    return [error.message];
  }
}
