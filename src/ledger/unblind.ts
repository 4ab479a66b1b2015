import { BoundbookError } from '../core/errors.js';
import { inForce, successorOf } from '../manifest/succession.js';
import { readWorkspace } from '../manifest/workspace.js';
import { type Book, openBook } from './book.js';
import { countUnjudged } from './completeness.js';
import type { EntryOf } from './entries.js';
import type { LedgerStore } from './store.js';

export interface Unblinding {
  readonly entry: EntryOf<'unblinded'>;
  /** Whether outcomes were unblinded before, so that nothing was recorded now. */
  readonly before: boolean;
  /** Unresolved slots on which no adjudicator gave a verdict; a verdict from now on is late and changes nothing. */
  readonly unjudged: number;
}

/**
 * Records that outcomes may be read from here on (P22). With everything confirmatory closed, nothing is started in this
 * ledger any more.
 *
 * @param partial whether to unblind although confirmatory slots are open: what is run afterwards is exploratory
 * @throws {BoundbookError} UNBLIND_TOO_EARLY with the counts, and as the store.
 */
export function unblind(book: Book<LedgerStore>, partial: boolean): Unblinding {
  const { fold, store } = book;
  const { result, entries } = store.transact<EntryOf<'unblinded'> | null>(() => {
    if (fold.unblinded !== null) return { drafts: [], result: fold.unblinded };
    const complete = fold.obstacles().length === 0;
    if (!complete && !partial) throw tooEarly(book);
    const { planned, settled, unresolved, pending, open } = fold.slots.total();
    const draft = {
      type: 'unblinded' as const,
      partial: !complete,
      planned,
      settled,
      unresolved,
      pending: pending + open,
    };
    return { drafts: [draft], result: null };
  });
  const [recorded] = entries;
  const entry = result ?? (recorded?.type === 'unblinded' ? recorded : null);
  if (entry === null) throw new BoundbookError('INTERNAL', 'an unblinding without its entry');
  return { entry, before: result !== null, unjudged: countUnjudged(fold.slots) };
}

/**
 * Checks that a superseded plan's outcomes may be shown: the plan in force carries them, so that it is unblinded first.
 *
 * @throws {BoundbookError} UNBLIND_TOO_EARLY, and as `readWorkspace` and `openBook`.
 */
export async function assertSuccessorUnblinded(root: string, { stored }: Book): Promise<void> {
  const { manifests } = await readWorkspace(root);
  if (successorOf(stored, manifests) === null) return;
  const newest = inForce(stored, manifests);
  if (await isUnblinded(root, newest)) return;
  throw new BoundbookError(
    'UNBLIND_TOO_EARLY',
    `${stored.file} was amended, and the plan in force carries its outcomes: they would be seen before they may be`,
    { hint: `Unblind ${newest.file} first.`, evidence: { manifest: stored.digest, newest: newest.digest } },
  );
}

async function isUnblinded(root: string, stored: Book['stored']): Promise<boolean> {
  try {
    const book = await openBook(root, stored, 'read');
    book.close();
    return book.fold.unblinded !== null;
  } catch (error) {
    if (error instanceof BoundbookError && error.code === 'LEDGER_NOT_FOUND') return false;
    throw error;
  }
}

function tooEarly({ fold }: Book): BoundbookError {
  const counts = fold.slots.counts();
  return new BoundbookError(
    'UNBLIND_TOO_EARLY',
    'the plan is not complete: what is still open could be chosen after outcomes are seen',
    {
      hint: 'Let `boundbook run` finish. --partial unblinds now, and marks all that follows as exploratory.',
      faults: fold.obstacles().map(({ where, message }) => ({ where, message })),
      evidence: { counts: counts.map((count) => ({ ...count })) },
    },
  );
}
