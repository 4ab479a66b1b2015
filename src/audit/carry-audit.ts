import { canonicalText } from '../core/canonical-json.js';
import { type CarryPlan, carriedDraft, type Predecessor, planCarry } from '../ledger/carry.js';
import type { PlannedTasks } from '../ledger/carry-conditions.js';
import type { EntryOf } from '../ledger/entries/entry.js';
import type { LedgerFold } from '../ledger/fold.js';
import { checkCarriedNotes } from './deviations.js';
import type { Findings } from './finding.js';

/** How many slots of one kind are named one by one. */
const LISTED = 100;

type Carries = NonNullable<EntryOf<'ledger.opened'>['carries']>;

/**
 * Holds what a ledger carries against the superseded plan's ledger (P22): every closed slot with the same conditions is
 * there, word for word, and no other.
 *
 * @param fold of the ledger that carries
 */
export function checkCarried(
  fold: LedgerFold,
  carries: Carries,
  before: Predecessor,
  after: PlannedTasks,
  findings: Findings,
): void {
  const plan = planCarry(before, after);
  checkCounts(carries, plan, findings);
  const { protocol } = after.manifest;
  checkCarriedNotes(fold, before.fold, carries.size, { protocol, taskIds: after.tasks.ids }, findings);
  const due = new Set(plan.carried);
  const omitted = plan.carried.filter((slot) => fold.slots.carriedSlot(slot) === null);
  for (const slot of omitted.slice(0, LISTED)) {
    const message = `slot ${slot} was closed under the superseded plan and is not carried`;
    findings.add({ code: 'CARRY_OMITTED', where: { seq: 0, slot }, message });
  }
  let unfounded = 0;
  for (const slot of fold.slots.carriedIds()) {
    if (due.has(slot)) compare(fold, slot, before, findings);
    else if (++unfounded <= LISTED) {
      const message = `slot ${slot} is carried, although it was not closed there under the same conditions`;
      findings.add({ code: 'CARRY_UNFOUNDED', where: { slot }, message });
    }
  }
  for (const [slots, what] of [
    [plan.unfinished, 'was started under the superseded plan and not closed there'],
    [plan.revived, 'was run under an earlier revision and given up by a later one'],
  ] as const) {
    for (const slot of slots.slice(0, LISTED)) {
      const message = `slot ${slot} ${what}, and is planned again`;
      findings.add({ code: 'CARRY_UNFOUNDED', where: { slot }, message });
    }
  }
}

function checkCounts(carries: Carries, plan: CarryPlan, findings: Findings): void {
  for (const part of ['again', 'dropped'] as const) {
    if (carries[part] === plan[part]) continue;
    findings.add({
      code: 'CARRIED_DIFFERS',
      where: { seq: 0, pointer: `/carries/${part}` },
      message: `the opening says ${carries[part]}; the superseded ledger gives ${plan[part]}`,
      evidence: { expected: plan[part], actual: carries[part] },
    });
  }
}

function compare(fold: LedgerFold, slot: string, before: Predecessor, findings: Findings): void {
  const carried = fold.slots.carriedSlot(slot);
  const { closed_by, attempts, outcome } = carriedDraft(before, slot);
  const expected = { closed_by, attempts, outcome };
  const actual = {
    closed_by: carried?.closedBy ?? -1,
    attempts: carried?.attempts ?? -1,
    outcome: carried?.outcome ?? null,
  };
  if (canonicalText(expected) === canonicalText(actual)) return;
  findings.add({
    code: 'CARRIED_DIFFERS',
    where: { slot },
    message: `slot ${slot} is carried as ${canonicalText(actual)}; the superseded ledger has ${canonicalText(expected)}`,
    evidence: { expected, actual },
    outcome: true,
  });
}
