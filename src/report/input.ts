import type { Digest } from '../core/digest.js';
import type { Book } from '../ledger/book.js';
import type { Entry } from '../ledger/entries.js';
import type { LedgerFold } from '../ledger/fold.js';
import type { SlotBook } from '../ledger/slot-book.js';
import type { Manifest } from '../manifest/manifest.js';
import { expandSlots } from '../slots/plan.js';
import type { ManifestInput, ReportInput, SlotOutcome } from './report-input.js';
import { tallyEntries } from './tally.js';

/** What a report is made from, however it was opened. */
export interface ReportSource {
  readonly manifest: Manifest;
  readonly manifestDigest: Digest;
  readonly fold: LedgerFold;
  readonly head: { readonly size: number; readonly leaf: string | null; readonly root: string };
  /** The entries that {@link fold} has taken, in order. */
  readonly entries: Iterable<Entry>;
}

/** Reads everything that a report needs out of an opened book. */
export function bookInput(book: Book): ReportInput {
  const { manifest, manifestDigest, fold, store } = book;
  return reportInput({
    manifest,
    manifestDigest,
    fold,
    head: book.head(),
    entries: foldedEntries(store, fold),
  });
}

export function reportInput({ manifest, manifestDigest, fold, head, entries }: ReportSource): ReportInput {
  const { protocol, taskIds, plan } = fold.context;
  const { first, replacement, regrade } = fold.attempts;
  const costs = fold.costs();
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
    attempts: { first, replacement, regrade, recovered: fold.recovered },
    ...tallyEntries(entries, (slot) => fold.slots.key(slot)?.arm ?? ''),
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
  const { sequence, supersedes, exposure, reason, task_use } = manifest;
  return {
    digest,
    sequence,
    supersedes,
    amendment:
      exposure === null
        ? null
        : {
            reason,
            slots_run: exposure.slots_run,
            settled: exposure.settled,
            unblinded: exposure.unblinded,
            declared: exposure.declared,
          },
    task_use: task_use.map(({ binding, plans }) => ({ binding, plans })),
  };
}
