import { nextAction } from '../attempts/machine.js';
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
    if (!this.#wholePlan) return this.#before + this.#closed;
    const { settled, unresolved } = this.#book.fold.slots.total();
    return settled + unresolved;
  }

  /** Tells that this session has worked on a slot. */
  worked(slot: string, key: SlotKey): void {
    if (this.#isClosed(slot, key)) this.#closed++;
  }

  #isClosed(slot: string, key: SlotKey): boolean {
    const { context, fold } = this.#book;
    return nextAction(fold.slots.state(slot), slotRules(context.protocol, key)) === null;
  }
}
