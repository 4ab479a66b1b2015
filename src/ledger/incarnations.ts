import { canonicalText } from '../core/canonical-json.js';
import { BoundbookError } from '../core/errors.js';
import { checkpointOf } from './checkpoint.js';
import type { EntryDraft, EntryOf } from './entries/entry.js';
import { type LedgerIdentity, parseOrigin } from './origin.js';

/** What `ledger.opened` says when an older copy was put back. Pure. */

type Opened = EntryOf<'ledger.opened'>;
type OpenedDraft = Extract<EntryDraft, { type: 'ledger.opened' }>;
export type Restored = NonNullable<OpenedDraft['restored']>;

/** An older copy that was put back, as reports and audits tell of it. */
export interface Restoration {
  /** Position of its opening: the number of entries that the copy had. */
  readonly seq: number;
  readonly time: string;
  readonly incarnation: number;
  /** Number of entries that were known outside. */
  readonly known: number;
  /** Of those, the ones that the copy lacked; what they held is not known here. */
  readonly lost: number;
  readonly reason: string;
}

/** What the first opening of a ledger must not say; null when it is in order. */
export function firstOpeningFault({ incarnation, restored }: OpenedDraft): string | null {
  if (restored !== null) return 'a ledger that begins here was not restored';
  return incarnation === 1 ? null : `a ledger begins as incarnation 1, not ${incarnation}`;
}

/**
 * Why a further opening is not lawful; null when it is: the same ledger, the next incarnation, and a state known outside
 * that has more entries than there are.
 *
 * @param before the opening before it
 * @param restored what it quotes
 * @param size number of entries before it
 */
export function reopeningFault(
  before: OpenedDraft,
  entry: OpenedDraft,
  restored: Restored,
  size: number,
): string | null {
  if (sameLedger(entry) !== sameLedger(before)) return 'it opens another ledger than the first entry';
  if (restored.root === null && restored.leaf === null) return 'what it quotes has neither root nor leaf';
  if (restored.size <= size)
    return `it quotes ${restored.size} entries; ${size} are here, so that none was lost`;
  const quoted = quotedIdentity(restored);
  if (quoted === 'other') return 'its note does not say what it quotes';
  if (quoted !== null && quoted.ledger !== entry.ledger) return 'its note is of another ledger';
  const due = nextIncarnation(before, quoted);
  return entry.incarnation === due ? null : `it is incarnation ${due}, not ${entry.incarnation}`;
}

/** The copy may be of an incarnation before the quoted one: no number is given twice, as far as that can be told. */
export function nextIncarnation({ incarnation }: LedgerIdentity, quoted: LedgerIdentity | null): number {
  return Math.max(incarnation, quoted?.incarnation ?? 0) + 1;
}

export function restorationOf({ seq, time, incarnation, restored }: Opened): Restoration | null {
  if (restored === null) return null;
  const { size: known, reason } = restored;
  return { seq, time, incarnation, known, lost: known - seq, reason };
}

/** The ledger that a quoted note is of; null without a note, `other` when it says another size or root. */
function quotedIdentity({ note, size, root }: Restored): LedgerIdentity | 'other' | null {
  if (note === null) return null;
  try {
    const checkpoint = checkpointOf(Buffer.from(note, 'utf8'));
    const same = checkpoint.size === BigInt(size) && checkpoint.root.toString('hex') === root;
    return same ? (parseOrigin(checkpoint.origin) ?? 'other') : 'other';
  } catch (error) {
    if (error instanceof BoundbookError) return 'other';
    throw error;
  }
}

function sameLedger({ ledger, manifest, manifest_object, plan, task_objects, carries }: OpenedDraft): string {
  return canonicalText({ ledger, manifest, manifest_object, plan, task_objects, carries });
}
