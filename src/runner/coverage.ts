import { nextAction } from '../attempts/next-action.js';
import type { Book } from '../ledger/book.js';
import { slotRules } from '../ledger/plan-index.js';
import type { SlotKey } from '../slots/slot.js';
import { anyOrderSlots, isWholePlan, type RunSelection } from './selection.js';

/** How many of the selected slots are closed. */
export class Coverage {
  readonly #book: Book;
  readonly #wholePlan: boolean;
  /** Selected slots that were closed before this session. */
  #before = 0;
  #selected = 0;
  #closed = 0;
  /** Selected slots that another session has closed meanwhile. */
  #elsewhere = 0;

  constructor(book: Book, selection: RunSelection) {
    this.#book = book;
    this.#wholePlan = isWholePlan(selection);
    const { context, fold } = book;
    if (this.#wholePlan) {
      this.#selected = context.plan.count;
      return;
    }
    for (const slot of anyOrderSlots(selection, context.protocol, context.taskIds)) {
      this.#selected++;
      if (fold.slots.isTouched(slot.id) && this.#isClosed(slot.id, slot)) this.#before++;
    }
  }

  get selected(): number {
    return this.#selected;
  }

  /** Slots that this session closed. */
  get closed(): number {
    return this.#closed;
  }

  get done(): number {
    if (!this.#wholePlan) return this.#before + this.#closed + this.#elsewhere;
    const { settled, unresolved } = this.#book.fold.slots.total();
    return settled + unresolved;
  }

  /** Tells that a slot was looked after, by this session or, as it turned out, by another. */
  worked(slot: string, key: SlotKey, own: boolean): void {
    if (!this.#isClosed(slot, key)) return;
    if (own) this.#closed++;
    else this.#elsewhere++;
  }

  #isClosed(slot: string, key: SlotKey): boolean {
    const { context, fold } = this.#book;
    if (fold.slots.isClosed(slot)) return true;
    return nextAction(fold.slots.state(slot), slotRules(context.protocol, key)) === null;
  }
}
