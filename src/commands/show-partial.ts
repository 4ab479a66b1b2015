import { isDigest } from '../core/digest.js';
import type { JsonObject } from '../core/json.js';
import type { Book } from '../ledger/book.js';
import { slotKeyOf } from '../ledger/lookup.js';
import { questionOf } from '../runner/adapters/openai-request.js';
import { StreamReader } from '../runner/adapters/openai-stream.js';
import { jobOf } from '../runner/plan-queue.js';

/** What had come of a streamed answer that failed. */
export interface PartialAnswer {
  readonly attempt: string;
  readonly text: string;
}

/**
 * The text of the kept streams among the entries of a slot that ended in a failure. It looks at nothing that these entries
 * do not name, so that nothing is shown that is masked.
 */
export function partialAnswers(
  book: Book,
  slot: string,
  entries: readonly JsonObject[],
): readonly PartialAnswer[] {
  const { protocol } = book.context;
  const { runner } = protocol;
  if (runner.adapter !== 'openai' || runner.stream !== true) return [];
  const job = jobOf(protocol, book.tasks.tasks, { ...slotKeyOf(book, slot), id: slot });
  if (job === null) return [];
  return entries.flatMap(({ type, attempt, result, objects }) => {
    const { kind } = (result ?? {}) as JsonObject;
    const { response } = (objects ?? {}) as JsonObject;
    if (type !== 'stage.finished' || kind !== 'failure' || !isDigest(response)) return [];
    const reader = new StreamReader(questionOf(runner, job.work));
    reader.feed(book.store.getObject(response));
    return reader.text === '' ? [] : [{ attempt: String(attempt), text: reader.text }];
  });
}

const MAX_SHOWN = 2000;

/** Paragraphs for people. */
export function partialText(answers: readonly PartialAnswer[]): readonly string[] {
  return answers.map(({ attempt, text }) => {
    const more = text.length > MAX_SHOWN ? `\n(cut here; --json prints all ${text.length} characters)` : '';
    return `Attempt ${attempt.slice(0, 8)} had said, when it failed:\n${text.slice(0, MAX_SHOWN).toWellFormed()}${more}`;
  });
}
