import { awaitsVerdict } from '../attempts/slot-state.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { EntryOf } from './entries/entry.js';
import type { SlotBook } from './slot-book.js';

/** Something that stands between a ledger and reading its outcomes as those of the whole plan (P22). */
export interface Obstacle {
  readonly kind: 'bindings' | 'slots' | 'adjudication' | 'round' | 'superseded';
  /** A queue; otherwise `bindings`, `adjudication` or `plan`. */
  readonly where: string;
  readonly message: string;
  readonly clause: string;
}

/** What of a folded ledger the question hangs on. */
export interface Completion {
  readonly slots: SlotBook;
  readonly protocol: Protocol;
  readonly amended: EntryOf<'amended'> | null;
  /** The round of adjudication that is not closed. */
  readonly round: string | null;
}

/**
 * Why outcomes may not be read as those of a complete plan yet; empty when they may be: every confirmatory slot is
 * closed, no attempt is under way anywhere, adjudication that the protocol requires is done and no round of it is open, and
 * the plan is in force.
 */
export function obstacles({ slots, protocol, amended, round }: Completion): readonly Obstacle[] {
  const found: Obstacle[] = slots
    .counts()
    .filter(({ role, pending, open }) => open > 0 || (role === 'confirmatory' && pending > 0))
    .map(({ queue, role, pending, open }) => ({
      kind: 'slots',
      where: queue,
      message: `${pending} pending and ${open} open (${role})`,
      clause: 'P22',
    }));
  const unjudged = protocol.attempts.adjudication === 'required' ? countUnjudged(slots) : 0;
  if (unjudged > 0) {
    const message = `${unjudged} undetermined slots have no adjudicator's verdict, which the protocol requires`;
    found.push({ kind: 'adjudication', where: 'adjudication', message, clause: 'P14' });
  }
  if (round !== null) {
    const message = `the round ${round} is open: its verdicts are committed and not applied yet`;
    found.push({ kind: 'round', where: 'adjudication', message, clause: 'P14' });
  }
  if (amended !== null) {
    const message = `the plan was amended: revision ${amended.revision} (${amended.successor}) took its place`;
    found.push({ kind: 'superseded', where: 'plan', message, clause: 'P22' });
  }
  return found;
}

/** Unresolved slots that no rule could attribute and on which no adjudicator gave a verdict. */
export function countUnjudged(slots: SlotBook): number {
  let count = 0;
  for (const { state } of slots.unresolved()) if (awaitsVerdict(state)) count++;
  return count;
}
