import { BoundbookError } from '../core/errors.js';
import { isTime } from '../core/time.js';
import type { LedgerRecord } from './chain.js';
import { encodeEntry } from './codec.js';
import type { EntryDraft } from './entries/entry.js';
import { leafHash } from './merkle.js';

/** The end of a ledger: what the next entry follows. */
export interface Tail {
  readonly size: number;
  readonly leaf: Buffer | null;
  readonly time: string | null;
}

export const NO_ENTRIES: Tail = { size: 0, leaf: null, time: null };

/**
 * The next entry after a tail, with position, link and time.
 *
 * @throws {BoundbookError} ENTRY_REFUSED; INTERNAL when the clock gives no time.
 */
export function encodeAfter(draft: EntryDraft, tail: Tail, now: () => string): LedgerRecord {
  const clock = now();
  if (!isTime(clock)) throw new BoundbookError('INTERNAL', `the clock gave ${JSON.stringify(clock)}`);
  // A clock that was set back must not make the book contradict itself.
  const time = tail.time !== null && clock < tail.time ? tail.time : clock;
  const frame = { seq: tail.size, prev: tail.leaf?.toString('hex') ?? null, time };
  const { entry, body } = encodeEntry(draft, frame);
  return { entry, body, leaf: leafHash(body) };
}

export function tailAfter({ entry, leaf }: LedgerRecord): Tail {
  return { size: entry.seq + 1, leaf, time: entry.time };
}
