import { canonicalBytes } from '../core/canonical-json.js';
import { BoundbookError } from '../core/errors.js';
import { assertPlanned, type Selector, selectionDigest } from '../slots/selector.js';
import type { Book } from './book.js';
import { MAX_BODY_BYTES } from './codec.js';
import type { DraftOf, EntryOf } from './entries/entry.js';
import type { LedgerStore } from './store.js';

/** How the note begins by which a bundle that leaves a blinded ledger is recorded. */
export const EXPORTED_BLINDED = 'Exported before unblinding, with every outcome by arm: ';

/** A deviation's text is a note, not a report. */
const MAX_TEXT = 4000;
/** Room for everything else of the entry. */
const MAX_SELECTOR_BYTES = MAX_BODY_BYTES - 6 * MAX_TEXT - 2000;

/**
 * Records a change that was made in mid-run, and the slots that it touches (B9). It changes no slot.
 *
 * @param selector empty for all slots
 * @throws {BoundbookError} USAGE for a text or a selector that no entry can hold; SLOT_NOT_PLANNED when nothing is
 * selected; and as the store.
 */
export function noteDeviation(
  book: Book<LedgerStore>,
  text: string,
  selector: Selector,
): EntryOf<'deviation.noted'> {
  const { protocol, taskIds } = book.context;
  const draft: Omit<DraftOf<'deviation.noted'>, 'slots'> = {
    type: 'deviation.noted',
    text: checkedText(text),
    selector: Object.fromEntries([...selector].map(([field, values]) => [field, [...values].sort()])),
  };
  assertRoom(draft.selector);
  assertPlanned(selector, protocol, taskIds);
  const slots = selectionDigest(selector, protocol, taskIds);
  const [entry] = book.store.append([{ ...draft, slots }]);
  if (entry?.type !== 'deviation.noted') throw new BoundbookError('INTERNAL', 'a note without its entry');
  return entry;
}

function checkedText(text: string): string {
  const trimmed = text.trim();
  if (trimmed !== '' && trimmed.length <= MAX_TEXT) return trimmed.toWellFormed();
  throw new BoundbookError(
    'USAGE',
    trimmed === ''
      ? 'a note needs a text'
      : `a note has at most ${MAX_TEXT} characters, not ${trimmed.length}`,
    {
      hint: 'Say what was changed, when and why. What is longer lies better in a file whose digest the note names.',
    },
  );
}

function assertRoom(selector: DraftOf<'deviation.noted'>['selector']): void {
  const size = canonicalBytes(selector).length;
  if (size <= MAX_SELECTOR_BYTES) return;
  throw new BoundbookError(
    'USAGE',
    `the selector takes ${size} bytes; at most ${MAX_SELECTOR_BYTES} are kept`,
    {
      hint: 'Select by queue, arm or seed, or write several notes.',
    },
  );
}
