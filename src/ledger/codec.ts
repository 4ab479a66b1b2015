import { isAscii, isUtf8 } from 'node:buffer';
import { canonicalBytes, canonicalText } from '../core/canonical-json.js';
import { BoundbookError } from '../core/errors.js';
import { isTime } from '../core/time.js';
import { type Entry, type EntryDraft, type EntryFrame, entryDraftSchema } from './entries/entry.js';
import { readCommonEntry } from './entry-form.js';

/** Largest body of an entry, in bytes; what is larger becomes an object. */
export const MAX_BODY_BYTES = 60_000;

/** In canonical JSON a quote that is part of a string has a backslash before it. */
const PROTOTYPE_KEY = /(?<!\\)"__proto__":/;
const LEAF = /^[0-9a-f]{64}$/;

/**
 * The bytes of an entry: canonical JSON of the draft with its frame.
 *
 * @throws {BoundbookError} ENTRY_REFUSED when the draft has not the declared form or the bytes are too many.
 */
export function encodeEntry(
  draft: EntryDraft,
  frame: EntryFrame,
): { readonly entry: Entry; readonly body: Buffer } {
  const checked = entryDraftSchema.safeParse(draft);
  if (!checked.success) {
    const issues = checked.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
    throw new BoundbookError(
      'ENTRY_REFUSED',
      `${String(draft.type)} has not the declared form: ${issues.join('; ')}`,
      {
        hint: 'This is a fault of the program that wrote the entry; nothing was recorded.',
        evidence: { type: String(draft.type), issues },
      },
    );
  }
  // zod hands out a copy of the draft; extending it is several times as fast as spreading both.
  const entry: Entry = Object.assign(checked.data, { seq: frame.seq, prev: frame.prev, time: frame.time });
  const body = canonicalBytes(entry);
  if (body.length > MAX_BODY_BYTES) {
    throw new BoundbookError(
      'ENTRY_REFUSED',
      `${draft.type} would take ${body.length} bytes; at most ${MAX_BODY_BYTES} are kept`,
      {
        hint: 'Large content belongs into an object that the entry names by digest.',
        evidence: { type: draft.type, bytes: body.length },
      },
    );
  }
  return { entry, body };
}

export type Decoded =
  | { readonly ok: true; readonly entry: Entry }
  | { readonly ok: false; readonly reason: string };

/** Reads the bytes of an entry strictly: canonical JSON of a declared type with a well-formed frame. Never throws. */
export function decodeEntry(body: Buffer): Decoded {
  if (body.length > MAX_BODY_BYTES) return refused(`the body has ${body.length} bytes`);
  const ascii = isAscii(body);
  if (!ascii && !isUtf8(body)) return refused('the body is not UTF-8');
  const text = ascii ? body.toString('latin1') : body.toString('utf8');
  const common = readCommonEntry(text);
  if (common !== null) return { ok: true, entry: common };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refused('the body is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return refused('the body is no object');
  if (!isCanonical(value, text)) return refused('the body is not canonical JSON');
  // Schemas pass over this key, so that the entry would say less than its bytes.
  if (PROTOTYPE_KEY.test(text)) return refused('the body holds the key "__proto__"');
  const { seq, prev, time, ...draft } = value as Record<string, unknown>;
  if (!isSeq(seq) || !(prev === null || (typeof prev === 'string' && LEAF.test(prev))) || !isTime(time)) {
    return refused('seq, prev or time is malformed');
  }
  const checked = entryDraftSchema.safeParse(draft);
  if (!checked.success) {
    const issue = checked.error.issues[0];
    return refused(
      `the entry has not the declared form (${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''})`,
    );
  }
  // zod hands out a copy of the draft; it becomes the entry.
  return { ok: true, entry: Object.assign(checked.data, { seq, prev, time }) };
}

function isSeq(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** Native code settles the common case: equal text after a round trip, and keys in order. */
function isCanonical(value: object, text: string): boolean {
  if (JSON.stringify(value) === text && keysInOrder(value)) return true;
  try {
    return canonicalText(value) === text;
  } catch {
    return false;
  }
}

function keysInOrder(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(keysInOrder);
  let last: string | null = null;
  for (const key of Object.keys(value)) {
    if (last !== null && key <= last) return false;
    if (!keysInOrder((value as Record<string, unknown>)[key])) return false;
    last = key;
  }
  return true;
}

function refused(reason: string): Decoded {
  return { ok: false, reason };
}
