import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { isCut } from '../grading/regrade.js';
import type { Book } from '../ledger/book.js';
import type { DraftOf } from '../ledger/entries/entry.js';

/** What of a slot is graded again. */
export interface Output {
  readonly slot: string;
  readonly candidate: Digest;
  /** Whether a limit cut it. */
  readonly isCut: boolean;
  readonly before: DraftOf<'regrading.recorded'>['before'];
}

/** The task that a slot is about. */
export interface OutputTask {
  readonly id: string;
  readonly fields: JsonObject;
}

/** What slots settled on before an entry, and how their outputs ended, by ascending id: one pass over the entries. */
export function outputsOf(
  book: Book,
  arms: ReadonlySet<string>,
  end: number = Number.POSITIVE_INFINITY,
): readonly Output[] {
  const cut = new Set<string>();
  const graded = new Map<string, Digest>();
  const outputs: Output[] = [];
  for (const { entry } of book.store.entries()) {
    if (entry.seq >= end) break;
    if (entry.type === 'stage.finished') {
      const { result, slot } = entry;
      if (result.kind === 'report') graded.set(slot, result.candidate);
      else if (result.kind === 'candidate' && isCut(entry.finish_reason)) cut.add(slot);
      else if (result.kind === 'candidate') cut.delete(slot);
    } else if (entry.type === 'slot.settled' && entry.basis.kind === 'report') {
      const { slot, value, basis } = entry;
      const candidate = graded.get(slot);
      graded.delete(slot);
      if (candidate === undefined || !arms.has(book.fold.slots.key(slot)?.arm ?? '')) continue;
      outputs.push({ slot, candidate, isCut: cut.has(slot), before: { value, report: basis.report } });
    }
  }
  return outputs.sort((a, b) => (a.slot < b.slot ? -1 : 1));
}

export function taskOf(book: Book, slot: string): OutputTask {
  const key = book.fold.slots.key(slot);
  const queue = key === null ? undefined : book.context.protocol.queues[key.queue];
  const fields = key === null ? undefined : book.tasks.tasks.get(queue?.tasks ?? '')?.get(key.task)?.fields;
  if (key === null || fields === undefined) throw new BoundbookError('INTERNAL', `slot ${slot} has no task`);
  return { id: key.task, fields };
}
