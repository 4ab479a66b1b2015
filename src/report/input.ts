import type { Digest } from '../core/digest.js';
import type { Book } from '../ledger/book.js';
import { carriedSlots } from '../ledger/carried-slots.js';
import type { Entry } from '../ledger/entries/entry.js';
import type { LedgerFold } from '../ledger/fold.js';
import type { SlotBook } from '../ledger/slot-book.js';
import type { IdentifiedManifest, Manifest } from '../manifest/manifest.js';
import { expandSlots } from '../slots/plan.js';
import { recheckInputs } from './rechecks.js';
import type { ManifestInput, ReportInput, SlotOutcome, Successor } from './report-input.js';
import { revisionsOf } from './revisions.js';
import { tallyEntries } from './tally.js';

/** What a report is made from, however it was opened. */
export interface ReportSource {
  readonly manifest: Manifest;
  readonly manifestDigest: Digest;
  /** The plans that it supersedes, the latest first. */
  readonly superseded: readonly IdentifiedManifest[];
  readonly fold: LedgerFold;
  readonly head: { readonly size: number; readonly leaf: string | null; readonly root: string };
  /** The entries that {@link fold} has taken, in order. */
  readonly entries: Iterable<Entry>;
}

/**
 * Reads everything that a report needs out of an opened book.
 *
 * @param superseded the plans that its plan supersedes, the latest first
 */
export function bookInput(book: Book, superseded: readonly IdentifiedManifest[] = []): ReportInput {
  const { manifest, manifestDigest, fold, store } = book;
  return reportInput({
    manifest,
    manifestDigest,
    superseded,
    fold,
    head: book.head(),
    entries: foldedEntries(store, fold),
  });
}

export function reportInput({
  manifest,
  manifestDigest,
  superseded,
  fold,
  head,
  entries,
}: ReportSource): ReportInput {
  const { protocol, taskIds, plan } = fold.context;
  const { first, replacement, regrade } = fold.attempts;
  const costs = fold.costs();
  const { regradings, ...tally } = tallyEntries(entries, (slot) => fold.slots.key(slot)?.arm ?? '', protocol);
  return {
    manifest: manifestInput(manifest, manifestDigest),
    protocol,
    taskIds,
    plan: { count: plan.count, digest: plan.digest },
    ledger: {
      name: fold.opened?.ledger ?? '',
      entries: head.size,
      leaf: head.leaf ?? '',
      root: head.root,
    },
    unblinded: fold.unblinded === null ? null : { partial: fold.unblinded.partial },
    slots: slotOutcomes(fold),
    attempts: {
      first,
      replacement,
      regrade,
      recovered: fold.recovered,
      after_unblinding: fold.startedAfterUnblinding,
    },
    revisions: revisionsOf({ manifest, digest: manifestDigest }, superseded),
    successor: successorIn(fold),
    carried: carriedSlots(fold),
    ...tally,
    regradings: regradings.inputs(fold),
    rechecks: recheckInputs(fold.rechecks.all, protocol.analysis.interval.level),
    restorations: fold.restorations.map(({ incarnation, seq, known, lost, reason }) => ({
      incarnation,
      seq,
      known,
      lost,
      reason,
    })),
    costs,
    noted: fold.noted.map(({ seq, time, text, selector, slots, afterUnblinding }) => ({
      entry: seq,
      time,
      text,
      selector,
      slots: slots.count,
      slots_digest: slots.digest,
      after_unblinding: afterUnblinding,
    })),
  };
}

function successorIn({ amended }: LedgerFold): Successor | null {
  if (amended === null) return null;
  const { successor, revision, reason, seq } = amended;
  return { manifest: successor, revision, reason, entry: seq };
}

/** A run may append while a report is made; the report is of what was folded. */
function* foldedEntries(store: Book['store'], fold: LedgerFold): Generator<Entry> {
  const { size } = fold;
  for (const { entry } of store.entries()) {
    if (entry.seq >= size) return;
    yield entry;
  }
}

/** Every touched slot, in the order of the plan. */
export function* slotOutcomes(fold: LedgerFold): Generator<SlotOutcome> {
  const { protocol, taskIds } = fold.context;
  for (const { id, ...key } of expandSlots(protocol, taskIds)) {
    const value = fold.slots.value(id);
    if (value !== null) yield { key, state: 'settled', value };
    else if (fold.slots.isTouched(id)) yield { key, state: openState(fold.slots, id) };
  }
}

function openState(slots: SlotBook, id: string): 'unresolved' | 'pending' {
  return slots.state(id).phase === 'unresolved' ? 'unresolved' : 'pending';
}

function manifestInput(manifest: Manifest, digest: Digest): ManifestInput {
  const { sequence, supersedes, task_use } = manifest;
  return {
    digest,
    sequence,
    supersedes,
    task_use: task_use.map(({ binding, plans }) => ({ binding, plans })),
  };
}
