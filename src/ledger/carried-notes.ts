import { canonicalText } from '../core/canonical-json.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { TaskIds } from '../protocol/tasks.js';
import { selectionDigest, toSelector } from '../slots/selector.js';
import type { DraftOf } from './entries/entry.js';
import type { LedgerFold } from './fold.js';
import type { NotedDeviation } from './plan-book.js';

/** The plan that carries. */
export interface CarriedPlan {
  readonly protocol: Protocol;
  readonly taskIds: TaskIds;
}

/** A deviation that was noted under the superseded plan, with the slots of the new one that it touches. */
export interface DueNote extends DraftOf<'deviation.noted'> {
  /** Position of the entry in the superseded ledger. */
  readonly seq: number;
}

/**
 * Deviations that a ledger must note again because it carries from one that noted them: those whose selector accepts a
 * slot of its plan, each once (B9). An amendment does not wash them out.
 *
 * @param size of the state that is carried
 */
export function* dueNotes(
  before: LedgerFold,
  size: number,
  { protocol, taskIds }: CarriedPlan,
): Generator<DueNote> {
  const seen = new Set<string>();
  for (const note of before.noted) {
    const selector = toSelector(note.selector);
    if (note.seq >= size || selector === null || seen.has(noteKey(note))) continue;
    seen.add(noteKey(note));
    const slots = selectionDigest(selector, protocol, taskIds);
    if (slots.count === 0) continue;
    const { seq, text } = note;
    yield { type: 'deviation.noted', seq, text, selector: note.selector, slots };
  }
}

/** Equal for notes that say the same of the same slots. */
export function noteKey({ text, selector }: Pick<NotedDeviation, 'text' | 'selector'>): string {
  return canonicalText([text, selector]);
}
