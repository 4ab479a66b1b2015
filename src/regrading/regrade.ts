import { randomBytes } from 'node:crypto';
import { canonicalBytes } from '../core/canonical-json.js';
import { type Digest, digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { type AnswerGrader, isAnswerGrader } from '../grading/answer.js';
import { regradeAnswer } from '../grading/regrade.js';
import type { Book } from '../ledger/book.js';
import type { DraftOf, EntryOf } from '../ledger/entries/entry.js';
import { type LedgerObject, toObject } from '../ledger/objects.js';
import { regradableSlots } from '../ledger/regradings.js';
import type { LedgerStore } from '../ledger/store.js';
import { slotsDigest } from '../slots/selector.js';

export interface RegradeRequest {
  readonly grader: AnswerGrader;
  /** Conditions whose outputs are graded again; null: all whose grader reads an answer. */
  readonly conditions: readonly string[] | null;
  readonly reason: string;
}

/** What of a slot is graded again. */
interface Output {
  readonly slot: string;
  readonly candidate: Digest;
  readonly finishReason: string | null;
  readonly before: DraftOf<'regrading.recorded'>['before'];
}

/** Slots that share a commit. */
const BATCH = 200;

/**
 * Grades all outputs of some conditions again, beside what their slots settled on (B6). What a killed process left open
 * under the same grader goes on.
 *
 * @throws {BoundbookError} REGRADE_REFUSED; TASKS_INVALID for a reference that the grader cannot use, before anything is
 * written; and as the store.
 */
export function regrade(book: Book<LedgerStore>, request: RegradeRequest): EntryOf<'regrading.closed'> {
  const conditions = conditionsOf(book, request);
  const { protocol } = book.context;
  const { open } = book.fold.regradings;
  const grader = toObject(canonicalBytes(request.grader));
  if (open !== null && (open.grader !== grader.digest || open.conditions.join() !== conditions.join())) {
    throw refuse(`the regrading ${open.id} with another grader is not closed`, {
      hint: `Finish it first: run regrade with the grader ${open.grader} on ${open.conditions.join(', ')}.`,
    });
  }
  const slots = regradableSlots(book.fold.slots, conditions, protocol);
  if (slots.length === 0) throw refuse('no report of these conditions settled a slot', {});
  assertNew(book, grader.digest, conditions, slots);
  const results = new Map(
    outputsOf(book, new Set(slots)).map((output) => [output.slot, grade(book, request.grader, output)]),
  );
  const regrading = open?.id ?? randomBytes(16).toString('hex');
  if (open === null) {
    const { reason } = request;
    const opened = {
      type: 'regrading.opened',
      regrading,
      grader: grader.digest,
      conditions,
      reason,
    } as const;
    book.store.append([{ ...opened, conditions: [...conditions], slots: slotsDigest(slots) }], [grader]);
  }
  const left = slots.filter((slot) => !book.fold.regradings.recorded.has(slot));
  for (let at = 0; at < left.length; at += BATCH)
    record(book, regrading, left.slice(at, at + BATCH), results);
  const { changed, same, truncated } = book.fold.regradings.counts;
  const [closed] = book.store.append([{ type: 'regrading.closed', regrading, changed, same, truncated }]);
  if (closed?.type !== 'regrading.closed')
    throw new BoundbookError('INTERNAL', 'a regrading without its end');
  return closed;
}

/** The same grader on the same outputs says what it said before. */
function assertNew(
  { fold }: Book<LedgerStore>,
  grader: Digest,
  conditions: readonly string[],
  slots: readonly string[],
): void {
  const due = slotsDigest(slots);
  const same = fold.regradings.all.find(
    (one) =>
      one.closed &&
      one.grader === grader &&
      one.slots.digest === due.digest &&
      one.conditions.join() === conditions.join(),
  );
  if (same === undefined) return;
  throw refuse(`these ${due.count} outputs were graded with this grader before, from entry ${same.seq} on`, {
    hint: 'Nothing is new: boundbook report shows what it changed.',
  });
}

interface Graded {
  readonly output: Output;
  readonly result: DraftOf<'regrading.recorded'>['result'];
  readonly objects: readonly LedgerObject[];
}

function record(
  book: Book<LedgerStore>,
  regrading: string,
  slots: readonly string[],
  results: ReadonlyMap<string, Graded>,
): void {
  const graded = slots.flatMap((slot) => results.get(slot) ?? []);
  const drafts = graded.map(
    ({ output: { slot, candidate, before }, result }): DraftOf<'regrading.recorded'> => ({
      type: 'regrading.recorded',
      regrading,
      slot,
      candidate,
      before,
      result,
    }),
  );
  book.store.append(
    drafts,
    graded.flatMap(({ objects }) => objects),
  );
}

function grade(book: Book<LedgerStore>, grader: AnswerGrader, output: Output): Graded {
  const key = book.fold.slots.key(output.slot);
  const queue = key === null ? undefined : book.context.protocol.queues[key.queue];
  const fields = key === null ? undefined : book.tasks.tasks.get(queue?.tasks ?? '')?.get(key.task)?.fields;
  if (key === null || fields === undefined)
    throw new BoundbookError('INTERNAL', `slot ${output.slot} has no task`);
  const { finishReason, candidate } = output;
  const bytes = book.store.getObject(candidate);
  const regraded = regradeAnswer({ grader, task: key.task, fields, candidate: bytes, finishReason });
  if (regraded.kind === 'truncated') return { output, result: regraded, objects: [] };
  const { value, report } = regraded;
  return { output, result: { kind: 'graded', value, report: digestOf(report) }, objects: [toObject(report)] };
}

/** What the slots settled on, and how their outputs ended: one pass over the entries. */
function outputsOf(book: Book<LedgerStore>, slots: ReadonlySet<string>): readonly Output[] {
  const finish = new Map<string, string | null>();
  const graded = new Map<string, Digest>();
  const outputs = new Map<string, Output>();
  for (const { entry } of book.store.entries()) {
    if (entry.type === 'stage.finished' && slots.has(entry.slot)) {
      const { result } = entry;
      if (result.kind === 'candidate') finish.set(entry.slot, entry.finish_reason);
      else if (result.kind === 'report') graded.set(entry.slot, result.candidate);
    } else if (entry.type === 'slot.settled' && slots.has(entry.slot) && entry.basis.kind === 'report') {
      const { slot, value, basis } = entry;
      const candidate = graded.get(slot);
      if (candidate === undefined) continue;
      const finishReason = finish.get(slot) ?? null;
      outputs.set(slot, { slot, candidate, finishReason, before: { value, report: basis.report } });
    }
  }
  return [...outputs.values()];
}

function conditionsOf(book: Book<LedgerStore>, { conditions }: RegradeRequest): readonly string[] {
  const declared = book.context.protocol.conditions;
  const readsAnswers = (name: string) => {
    const grader = declared[name]?.grader;
    return grader !== undefined && isAnswerGrader(grader);
  };
  if (conditions === null) {
    const names = Object.keys(declared).filter(readsAnswers).sort();
    if (names.length > 0) return names;
    throw refuse('every grader of this plan is a command, whose reports are not made again', {});
  }
  const names = [...new Set(conditions)].sort();
  const unknown = names.find((name) => !Object.hasOwn(declared, name));
  if (unknown !== undefined) {
    throw refuse(`the plan has no condition ${JSON.stringify(unknown)}`, {
      hint: `It has ${Object.keys(declared).join(', ')}.`,
    });
  }
  const command = names.find((name) => !readsAnswers(name));
  if (command !== undefined) {
    throw refuse(
      `the grader of ${JSON.stringify(command)} is a command, whose reports are not made again`,
      {},
    );
  }
  return names;
}

function refuse(message: string, details: { readonly hint?: string }): BoundbookError {
  return new BoundbookError('REGRADE_REFUSED', message, details);
}
