import { z } from 'zod';
import { ADJUDICATION_ENTRIES } from './adjudication.js';
import { ATTEMPT_ENTRIES } from './attempts.js';
import { CHECKPOINT_ENTRIES } from './checkpoint.js';
import { OPENING_ENTRIES } from './opening.js';
import { PLAN_ENTRIES } from './plan.js';
import { RECHECK_ENTRIES } from './rechecks.js';
import { REGRADING_ENTRIES } from './regradings.js';
import { SERVICE_ENTRIES } from './services.js';
import { SESSION_ENTRIES } from './sessions.js';

/**
 * What a ledger can hold (DESIGN §8). An entry is the canonical JSON of one of these, with `seq`, `prev` and `time`
 * filled in by the store. Entries are small (< 60 KB): everything large is an object, named by its digest.
 */
export const entryDraftSchema = z.discriminatedUnion('type', [
  ...OPENING_ENTRIES,
  ...SESSION_ENTRIES,
  ...SERVICE_ENTRIES,
  ...ATTEMPT_ENTRIES,
  ...REGRADING_ENTRIES,
  ...RECHECK_ENTRIES,
  ...CHECKPOINT_ENTRIES,
  ...PLAN_ENTRIES,
  ...ADJUDICATION_ENTRIES,
]);

/** What a writer hands to the store. */
export type EntryDraft = z.infer<typeof entryDraftSchema>;
export type EntryType = EntryDraft['type'];
export type DraftOf<T extends EntryType> = Extract<EntryDraft, { type: T }>;

/** What the store adds: position, link and time. */
export interface EntryFrame {
  /** 0-based position. */
  readonly seq: number;
  /** Leaf hash of the entry before, 64 hexadecimal digits; null for the first. */
  readonly prev: string | null;
  /** UTC, RFC 3339 with milliseconds. Never earlier than the entry before (the store sees to it). */
  readonly time: string;
}

export type Entry = EntryDraft & EntryFrame;
export type EntryOf<T extends EntryType> = Extract<Entry, { type: T }>;
