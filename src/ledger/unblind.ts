import { BoundbookError } from '../core/errors.js';
import type { Manifest } from '../manifest/manifest.js';
import { loadManifest } from '../manifest/select.js';
import { inForce, successorOf } from '../manifest/succession.js';
import { readWorkspace, type StoredManifest } from '../manifest/workspace.js';
import { type Book, openBook } from './book.js';
import { countUnjudged, type Obstacle } from './completeness.js';
import type { EntryOf } from './entries/entry.js';
import type { LedgerHead } from './reader.js';
import type { LedgerStore } from './store.js';

/** Pending items of a manifest that are named one by one. */
const LISTED = 20;

export interface Unblinding {
  readonly entry: EntryOf<'unblinded'>;
  /** Whether outcomes were unblinded before, so that nothing was recorded now. */
  readonly before: boolean;
  /** Unresolved slots on which no adjudicator gave a verdict; a verdict from now on is late and changes nothing. */
  readonly unjudged: number;
}

/**
 * Opens the outcomes of a plan, see {@link unblind}.
 *
 * @param selector as for `loadManifest`
 * @throws {BoundbookError} UNBLIND_TOO_EARLY with what is missing; and as `loadManifest` and `openBook`.
 */
export async function unblindPlan(
  root: string,
  selector: string | undefined,
  partial: boolean,
  now: () => string,
): Promise<Unblinding & { readonly stored: StoredManifest; readonly head: LedgerHead }> {
  const stored = await loadManifest(root, selector);
  // Such a plan cannot have a ledger, and that one is missing would be half of the truth.
  const unbound = bindingObstacles(stored.manifest);
  if (unbound.length > 0 && !partial) throw tooEarly(unbound, {});
  const newest = await newestRevision(root, stored);
  const book = await openBook(root, stored, 'write', now);
  try {
    const unblinding = unblind(book, partial, newest);
    return { ...unblinding, stored, head: book.head() };
  } finally {
    book.close();
  }
}

/** The revision that took a plan's place, and whether its outcomes are open; null for a plan that is in force. */
export interface NewestRevision {
  readonly stored: StoredManifest;
  readonly isUnblinded: boolean;
}

async function newestRevision(root: string, stored: StoredManifest): Promise<NewestRevision | null> {
  const { manifests } = await readWorkspace(root);
  if (successorOf(stored, manifests) === null) return null;
  const newest = inForce(stored, manifests);
  return { stored: newest, isUnblinded: await isUnblinded(root, newest) };
}

/**
 * Records that outcomes may be read from here on (P22). With everything confirmatory closed, nothing is started in this
 * ledger any more. All preconditions are looked at in the transaction of the entry: what another process appended
 * until then counts.
 *
 * @param partial whether to unblind although preconditions are missing: what is run afterwards is exploratory
 * @param newest of a plan that was superseded when the book was opened
 * @throws {BoundbookError} UNBLIND_TOO_EARLY with what is missing; also, whatever `partial` says, for a superseded plan
 * whose outcomes the plan in force carries and has not opened yet; and as the store.
 */
export function unblind(
  book: Book<LedgerStore>,
  partial: boolean,
  newest: NewestRevision | null = null,
): Unblinding {
  const { fold, store } = book;
  const { result, entries } = store.transact<EntryOf<'unblinded'> | null>(() => {
    if (fold.unblinded !== null) return { drafts: [], result: fold.unblinded };
    assertSuccessorUnblinded(book, newest);
    const missing = [...bindingObstacles(book.manifest), ...fold.obstacles()];
    if (missing.length > 0 && !partial) {
      throw tooEarly(missing, { counts: fold.slots.counts().map((count) => ({ ...count })) });
    }
    const { planned, settled, unresolved, pending, open } = fold.slots.total();
    const draft = {
      type: 'unblinded' as const,
      partial: missing.length > 0,
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

/** The plan in force carries a superseded plan's outcomes, so that it is unblinded first. */
function assertSuccessorUnblinded({ fold, stored }: Book, newest: NewestRevision | null): void {
  const isSuperseded = newest !== null || fold.amended !== null;
  if (!isSuperseded || newest?.isUnblinded === true) return;
  throw new BoundbookError(
    'UNBLIND_TOO_EARLY',
    `${stored.file} was amended, and the plan in force carries its outcomes: they would be seen before they may be`,
    {
      hint: `Unblind ${newest?.stored.file ?? 'the new revision'} first.`,
      evidence: { manifest: stored.digest, newest: newest?.stored.digest ?? fold.amended?.successor ?? null },
    },
  );
}

async function isUnblinded(root: string, stored: StoredManifest): Promise<boolean> {
  try {
    const book = await openBook(root, stored, 'read');
    book.close();
    return book.fold.unblinded !== null;
  } catch (error) {
    if (error instanceof BoundbookError && error.code === 'LEDGER_NOT_FOUND') return false;
    throw error;
  }
}

/** Arms of which something is not bound were never run under the gate (P10). */
function bindingObstacles({ execution_ready, pending }: Manifest): readonly Obstacle[] {
  if (execution_ready) return [];
  const listed = pending.slice(0, LISTED).join(', ');
  const rest = pending.length > LISTED ? ` and ${pending.length - LISTED} more` : '';
  const message = `not everything is bound: ${listed}${rest}`;
  return [{ kind: 'bindings', where: 'bindings', message, clause: 'P10' }];
}

const REMEDIES: Readonly<Record<Obstacle['kind'], string>> = {
  bindings: 'Bind what is missing with `boundbook bind`, and run the plan.',
  slots: 'Let `boundbook run` finish; `boundbook run --limit 0` finishes what was started.',
  adjudication: 'An adjudicator closes undetermined slots with `boundbook adjudicate`.',
  round: '`boundbook adjudicate --close` applies the verdicts of the round.',
  superseded: 'A plan that was amended is never complete again.',
};
const PARTIAL = '--partial unblinds now, and marks all that follows as exploratory.';

function tooEarly(
  missing: readonly Obstacle[],
  evidence: Exclude<BoundbookError['evidence'], undefined>,
): BoundbookError {
  const remedies = new Set(missing.map(({ kind }) => REMEDIES[kind]));
  return new BoundbookError(
    'UNBLIND_TOO_EARLY',
    'the plan is not complete: what is still open could be chosen after outcomes are seen',
    {
      hint: [...remedies, PARTIAL].join(' '),
      faults: missing.map(({ where, message }) => ({ where, message })),
      evidence,
    },
  );
}
