import type { Book } from '../ledger/book.js';
import type { LedgerFold } from '../ledger/fold.js';
import type { Slot } from '../slots/slot.js';
import type { Work } from './adapters/adapter.js';
import { PlanQueue } from './plan-queue.js';
import { type RunSelection, selectedSlots } from './selection.js';
import type { Workshop } from './workshop.js';

/** Everything can be worked on at the same time when no service has to be up for it. */
export const ANYWHERE = '';

export interface QueueOptions {
  readonly selection: RunSelection;
  /** How many slots may be taken up; null: all; 0: none but those that were started before. */
  readonly limit: number | null;
  readonly progress: (line: string) => void;
}

/** The slots that a session works on, in the order of the plan; nothing new once the ledger is sealed. */
export function sessionQueue(book: Book, workshop: Workshop, options: QueueOptions): PlanQueue {
  const { protocol, taskIds } = book.context;
  const { selection, limit, progress } = options;
  const sealed = book.fold.isSealed;
  if (sealed) progress('outcomes were unblinded: nothing more may be started');
  const finishing = limit === 0;
  const selected = selectedSlots(selection, protocol, taskIds, book.fold.slots.closedByNumber());
  return new PlanQueue({
    slots: finishing ? startedSlots(selected, book.fold) : selected,
    protocol,
    tasks: book.tasks.tasks,
    fold: book.fold,
    limit: sealed ? 0 : finishing || limit === null ? Number.POSITIVE_INFINITY : limit,
    stationOf: (work: Work) => (workshop.kind === 'openai' ? work.model : ANYWHERE),
  });
}

/** Slots that an attempt was started for. */
function* startedSlots(slots: Iterable<Slot>, fold: LedgerFold): Generator<Slot> {
  for (const slot of slots) if (fold.slots.isTouched(slot.id)) yield slot;
}
