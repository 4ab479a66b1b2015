import { canonicalText } from '../core/canonical-json.js';
import { type AnswerGrader, isAnswerGrader } from '../grading/answer.js';
import { expectedTests, referenceAnswer } from '../grading/reference.js';
import type { Book } from '../ledger/book.js';
import type { DraftOf } from '../ledger/entries/entry.js';
import type { LedgerObject } from '../ledger/objects.js';
import { type Regrading, type RegradingCommand, regradableSlots } from '../ledger/regradings.js';
import type { Decision, LedgerStore } from '../ledger/store.js';
import type { CommandGrader } from '../protocol/schema/command-grader.js';
import { slotsDigest } from '../slots/selector.js';
import { refused } from './conditions.js';
import type { CorrectedGrader } from './grader-file.js';
import type { GraderSources } from './grader-sources.js';
import { taskOf } from './outputs.js';

export type WriteBook = Book<LedgerStore>;
type Process = RegradingCommand['process'];

/** A regrading as it was asked for. */
export interface Asked {
  readonly grader: CorrectedGrader;
  /** The grader's canonical JSON. */
  readonly object: LedgerObject;
  /** Of a command. */
  readonly sources: GraderSources | null;
  readonly conditions: readonly string[];
  readonly reason: string;
}

/**
 * The regrading that is under way, if it is this one.
 *
 * @throws {BoundbookError} REGRADE_REFUSED for another one
 */
export function underWay({ fold }: WriteBook, { object, sources, conditions }: Asked): Regrading | null {
  const { open } = fold.regradings;
  if (open === null) return null;
  if (open.grader !== object.digest || open.conditions.join() !== conditions.join()) {
    throw refused(
      `the regrading ${open.id} with another grader is not closed`,
      `Finish it first: run regrade with the grader ${open.grader} on ${open.conditions.join(', ')}.`,
    );
  }
  if (!isOfFiles(open, sources)) {
    throw refused(
      `the files of the grader are not those that the regrading ${open.id} was opened with`,
      'Restore them to finish it: the entry names their digests (boundbook show).',
    );
  }
  return open;
}

/**
 * Opens the regrading, or goes on with it, as one step that no other process can come between.
 *
 * @param found what {@link underWay} gave
 * @param process that which runs the command from now on; null for a grader that reads answers
 * @throws {BoundbookError} REGRADE_REFUSED; TASKS_INVALID for a task that the grader cannot use; then nothing is written
 */
export function take(
  book: WriteBook,
  asked: Asked,
  found: Pick<Regrading, 'id' | 'command'> | null,
  regrading: string,
  process: Process | null,
): void {
  book.store.transact((): Decision<undefined> => {
    const { open } = book.fold.regradings;
    const isAsSeen = found === null ? open === null : open?.id === found.id;
    if (!isAsSeen || !isSame(open?.command?.process ?? null, found?.command?.process ?? null)) {
      throw refused(
        'another process began to grade these outputs',
        'Wait for it; boundbook show tells of it.',
      );
    }
    if (open !== null) {
      const resumed = process === null ? [] : [{ type: 'regrading.resumed', regrading, process } as const];
      return { drafts: resumed, result: undefined };
    }
    return { ...opening(book, asked, regrading, process), result: undefined };
  });
}

function opening(book: WriteBook, asked: Asked, regrading: string, process: Process | null) {
  const { fold, context } = book;
  const { grader, object, sources, conditions, reason } = asked;
  const slots = regradableSlots(fold.slots, conditions, context.protocol);
  if (slots.length === 0) throw refused('no report of these conditions settled a slot');
  const due = slotsDigest(slots);
  assertNew(book, asked, due);
  assertUsable(book, grader, slots);
  const command = sources === null || process === null ? {} : { command: { ...sources.recorded, process } };
  const opened: DraftOf<'regrading.opened'> = {
    type: 'regrading.opened',
    regrading,
    grader: object.digest,
    conditions: [...conditions],
    reason,
    slots: due,
    ...command,
  };
  const schema = sources?.schema ?? null;
  return { drafts: [opened], objects: schema === null ? [object] : [object, schema.object] };
}

/** The same grader on the same outputs says what it said before; where its command failed, it may be asked again. */
function assertNew({ fold }: WriteBook, asked: Asked, due: Regrading['slots']): void {
  const { object, sources, conditions } = asked;
  const same = fold.regradings.all.find(
    (one) =>
      one.closed &&
      one.failed === 0 &&
      one.grader === object.digest &&
      one.slots.digest === due.digest &&
      one.conditions.join() === conditions.join() &&
      isOfFiles(one, sources),
  );
  if (same === undefined) return;
  throw refused(
    `these outputs were graded with this grader before, from entry ${same.seq} on`,
    'Nothing is new: boundbook report shows what it changed.',
  );
}

/** Every task must have what the grader reads of it. */
function assertUsable(book: WriteBook, grader: CorrectedGrader, slots: readonly string[]): void {
  const seen = new Set<unknown>();
  for (const slot of slots) {
    const { fields } = taskOf(book, slot);
    if (seen.has(fields)) continue;
    seen.add(fields);
    if (isReading(grader)) referenceAnswer(grader, fields);
    else expectedTests(grader, fields);
  }
}

export function isReading(grader: CorrectedGrader): grader is AnswerGrader {
  return isAnswerGrader(grader as Exclude<CorrectedGrader, CommandGrader>);
}

function isOfFiles({ command }: Pick<Regrading, 'command'>, sources: GraderSources | null): boolean {
  if (command === null || sources === null) return command === null && sources === null;
  const { process: _process, ...recorded } = command;
  return canonicalText(recorded) === canonicalText(sources.recorded);
}

export function isSame(one: Process | null, other: Process | null): boolean {
  return canonicalText(one) === canonicalText(other);
}
