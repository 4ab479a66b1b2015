import type { EntryOf } from '../ledger/entries.js';
import type { PlanContext } from '../ledger/plan-index.js';
import { SELECTABLE, type SelectField, selectionDigest } from '../slots/selector.js';
import type { Findings } from './finding.js';

/** Recomputes which slots a noted deviation touches (B9). */
export function checkDeviation(
  { seq, selector, slots }: EntryOf<'deviation.noted'>,
  { protocol, taskIds }: PlanContext,
  findings: Findings,
): void {
  const known = new Map<SelectField, ReadonlySet<string>>();
  for (const [name, values] of Object.entries(selector)) {
    const field = SELECTABLE.find((one) => one === name);
    if (field === undefined) {
      const message = `the note selects by ${JSON.stringify(name)}, which is no part of a slot`;
      findings.add({ code: 'DEVIATION_DIFFERS', where: { seq, pointer: '/selector' }, message });
      return;
    }
    known.set(field, new Set(values));
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
