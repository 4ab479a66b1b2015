import { type CarriedPlan, dueNotes, noteKey } from '../ledger/carried-notes.js';
import type { EntryOf } from '../ledger/entries/entry.js';
import type { LedgerFold } from '../ledger/fold.js';
import type { PlanContext } from '../ledger/plan-index.js';
import { selectionDigest, toSelector } from '../slots/selector.js';
import type { Findings } from './finding.js';

/** Recomputes which slots a noted deviation touches (B9). */
export function checkDeviation(
  { seq, selector, slots }: EntryOf<'deviation.noted'>,
  { protocol, taskIds }: PlanContext,
  findings: Findings,
): void {
  const known = toSelector(selector);
  if (known === null) {
    const names = Object.keys(selector).join(', ');
    const message = `the note selects by ${JSON.stringify(names.slice(0, 200))}, which are not all parts of a slot`;
    findings.add({ code: 'DEVIATION_DIFFERS', where: { seq, pointer: '/selector' }, message });
    return;
  }
  const due = selectionDigest(known, protocol, taskIds);
  if (due.count === slots.count && due.digest === slots.digest) return;
  findings.add({
    code: 'DEVIATION_DIFFERS',
    where: { seq, pointer: '/slots' },
    message: `the note says that it touches ${slots.count} slots; its selector gives ${due.count} (${due.digest})`,
    evidence: { expected: { ...due }, actual: { ...slots } },
  });
}

/** What was noted under the superseded plan about slots of this one is noted again (B9). */
export function checkCarriedNotes(
  fold: LedgerFold,
  before: LedgerFold,
  carriedSize: number,
  after: CarriedPlan,
  findings: Findings,
): void {
  const told = new Set(fold.noted.map(noteKey));
  for (const note of dueNotes(before, carriedSize, after)) {
    if (told.has(noteKey(note))) continue;
    const message = `the deviation noted with entry ${note.seq} of the superseded ledger is not noted again: ${note.text.slice(0, 200)}`;
    findings.add({ code: 'DEVIATION_OMITTED', where: { seq: 0 }, message });
  }
}
