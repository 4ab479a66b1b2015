import { join } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import { exists } from '../core/files.js';
import type { Manifest } from '../manifest/manifest.js';
import { notAtHand, successorOf, supersededBy } from '../manifest/succession.js';
import { readWorkspace, type StoredManifest } from '../manifest/workspace.js';
import type { TaskSets } from '../protocol/tasks.js';
import { type Book, ledgerFolder, openBook } from './book.js';
import { type CarriedPlan, dueNotes } from './carried-notes.js';
import {
  type CarryPlan,
  Closings,
  carriedDraft,
  carryObstacle,
  type Predecessor,
  planCarry,
} from './carry.js';
import { decodeEntry } from './codec.js';
import type { DraftOf } from './entries/entry.js';
import type { LedgerFold } from './fold.js';
import type { Carry } from './new-ledger.js';
import { LEDGER_FILE } from './schema.js';

/**
 * The ledger whose closed slots a plan carries: that of the plan it supersedes, or when that one never ran, of the one
 * before, and so on. null when none of them ran.
 *
 * @throws {BoundbookError} MANIFEST_NOT_FOUND when a superseded manifest is not in the workspace.
 */
export async function findPredecessor(
  root: string,
  manifest: Manifest,
  all: readonly StoredManifest[],
): Promise<StoredManifest | null> {
  const { plans, missing } = supersededBy(manifest, all);
  for (const stored of plans) {
    if (await exists(join(ledgerFolder(root, stored.file), LEDGER_FILE))) return stored;
  }
  if (missing === null) return null;
  throw notAtHand(missing);
}

/**
 * An opened book as the plan that another carries from.
 *
 * @throws {BoundbookError} MANIFEST_NOT_FOUND and as `openBook`, for the ledgers that it carries from itself.
 */
export async function toPredecessor(
  root: string,
  { manifest, tasks, fold, store }: Book,
  all: readonly StoredManifest[],
): Promise<Predecessor> {
  const closings = new Closings();
  const mark = Buffer.from('"type":"slot.');
  for (const { seq, body } of store.rows()) {
    if (seq >= fold.size) break;
    const decoded = body.includes(mark) ? decodeEntry(body) : null;
    if (decoded?.ok === true) closings.take(decoded.entry);
  }
  return { manifest, tasks, fold, closings, earlier: await earlierFolds(root, fold, all) };
}

async function earlierFolds(
  root: string,
  fold: LedgerFold,
  all: readonly StoredManifest[],
): Promise<readonly LedgerFold[]> {
  const earlier: LedgerFold[] = [];
  for (let carries = fold.opened?.carries ?? null; carries !== null; ) {
    const { manifest } = carries;
    const stored = all.find(({ digest }) => digest === manifest);
    if (stored === undefined) throw notAtHand(manifest);
    const book = await openBook(root, stored, 'read');
    book.close();
    earlier.push(book.fold);
    carries = book.opened.carries;
  }
  return earlier;
}

/**
 * What the first run of an amended plan takes over. An amendment whose entry in the old ledger is missing is completed
 * first.
 *
 * @param tasks of the new plan
 * @returns null when there is nothing to carry from
 * @throws {BoundbookError} GATE_REFUSED when slots of the new plan are under way in the old ledger; MANIFEST_NOT_FOUND;
 * and as `openBook`.
 */
export async function prepareCarry(
  root: string,
  stored: StoredManifest,
  tasks: TaskSets,
  now: () => string,
): Promise<Carry | null> {
  const { manifests } = await readWorkspace(root);
  const from = await findPredecessor(root, stored.manifest, manifests);
  if (from === null) return null;
  const book = await openSealed(root, from, manifests, now);
  try {
    const before = await toPredecessor(root, book, manifests);
    const plan = planCarry(before, { manifest: stored.manifest, tasks });
    const obstacle = carryObstacle(plan);
    if (obstacle !== null) {
      const { message, hint, slots } = obstacle;
      throw new BoundbookError(
        'GATE_REFUSED',
        `${from.file} leaves slots of this plan that may not be run: ${message}`,
        {
          hint,
          evidence: { superseded: from.digest, slots },
        },
      );
    }
    const { size, root: treeRoot } = book.head();
    const { again, dropped } = plan;
    const state = {
      manifest: from.digest,
      ledger: book.opened.ledger,
      size,
      root: treeRoot,
      again,
      dropped,
    };
    const after = { protocol: stored.manifest.protocol, taskIds: tasks.ids };
    return { state, drafts: draftsOf(before, plan, size, after) };
  } finally {
    book.close();
  }
}

/** A superseded plan's ledger with the amendment in it, which is completed when a crash kept it out. */
async function openSealed(
  root: string,
  from: StoredManifest,
  all: readonly StoredManifest[],
  now: () => string,
): Promise<Book> {
  const book = await openBook(root, from, 'read');
  if (book.fold.amended !== null) return book;
  book.close();
  await completeAmendment(root, from, all, now);
  return openBook(root, from, 'read');
}

/**
 * Records in a superseded plan's ledger that another revision took its place, unless it is recorded.
 *
 * @returns whether an entry was written now
 */
export async function completeAmendment(
  root: string,
  superseded: StoredManifest,
  all: readonly StoredManifest[],
  now: () => string,
): Promise<boolean> {
  const successor = successorOf(superseded, all);
  if (successor === null) return false;
  const draft = amendedDraft(successor);
  const book = await openBook(root, superseded, 'write', now);
  try {
    return book.store.transact(() => ({
      drafts: book.fold.amended === null ? [draft] : [],
      result: book.fold.amended === null,
    })).result;
  } finally {
    book.close();
  }
}

/** The entry by which a plan's ledger learns of its successor. */
export function amendedDraft({ manifest, digest }: StoredManifest): DraftOf<'amended'> {
  const { revision, reason } = manifest;
  return { type: 'amended', successor: digest, revision, reason: reason ?? '' };
}

function* draftsOf(
  before: Predecessor,
  { carried }: CarryPlan,
  size: number,
  after: CarriedPlan,
): Generator<DraftOf<'slot.carried' | 'deviation.noted'>> {
  for (const slot of carried) yield carriedDraft(before, slot);
  for (const { seq: _, ...draft } of dueNotes(before.fold, size, after)) yield draft;
}
