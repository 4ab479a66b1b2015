import { PLANNED, type SlotState } from '../attempts/slot-state.js';
import { type Digest, isDigest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { JsonObject, JsonValue } from '../core/json.js';
import { expandSlots } from '../slots/plan.js';
import { type SlotKey, slotTuple } from '../slots/slot.js';
import type { Book } from './book.js';
import { decodeEntry } from './codec.js';
import type { Entry } from './entries/entry.js';
import { asJson, isRecheck, MASK, maskEntry, maskHistory, maskState } from './mask.js';

/** One thing in a ledger, as it may be shown now. */
export type Found =
  | { readonly kind: 'entry'; readonly leaf: string; readonly entry: JsonObject; readonly masked: boolean }
  | {
      readonly kind: 'slot';
      readonly slot: string;
      readonly key: readonly (string | number | null)[];
      readonly state: JsonObject;
      readonly entries: readonly JsonObject[];
      readonly masked: boolean;
    }
  | {
      readonly kind: 'object';
      readonly digest: Digest;
      readonly bytes: Buffer;
      /** `seq` is null where the position may not be shown. */
      readonly named_by: readonly { readonly seq: number | null; readonly as: string }[];
    };

/** Names under which an entry refers to an object that shows no outcome. */
const HARMLESS = /^(manifest|manifest_object|task_objects\..*|request|effective|timestamps\..*)$/;

/**
 * Finds an entry by its position, a slot or an attempt by its id, or an object by its digest.
 *
 * @throws {BoundbookError} USAGE for any other form; SLOT_NOT_PLANNED; OBJECT_MISSING; OUTCOME_BLINDED for an object that
 * shows an outcome, while outcomes are blinded.
 */
export function lookUp(book: Book, what: string): Found {
  if (isDigest(what)) return findObject(book, what);
  if (/^[0-9a-f]{32}$/.test(what)) return findSlot(book, what);
  if (/^(0|[1-9][0-9]{0,15})$/.test(what)) return findEntry(book, Number(what));
  throw new BoundbookError('USAGE', `${JSON.stringify(what)} is no position, slot, attempt or digest`, {
    hint: 'Give an entry number, 32 hexadecimal digits of a slot or attempt, or sha256: and 64 digits.',
  });
}

function findEntry(book: Book, seq: number): Found {
  for (const { entry, leaf } of book.store.entries(seq)) {
    const shown = show(book, entry);
    return { kind: 'entry', leaf: leaf.toString('hex'), entry: shown, masked: isMasked(shown) };
  }
  throw new BoundbookError('USAGE', `there is no entry ${seq}: the ledger has ${book.head().size}`, {
    hint: `The last one is ${book.head().size - 1}.`,
  });
}

function findSlot(book: Book, id: string): Found {
  const named = [...entriesNaming(book, id)];
  const slot = named.map((entry) => ('slot' in entry ? entry.slot : '')).find((each) => each !== '') ?? id;
  const key = slotKeyOf(book, slot);
  const all = slot === id ? named : [...entriesNaming(book, slot)];
  const own = all.filter((entry) => 'slot' in entry && entry.slot === slot);
  const state = book.fold.slots.state(slot);
  const visible = book.fold.outcomesVisible;
  const entries = visible ? own.map(asJson) : maskHistory(own, state);
  const shown = visible ? plainState(state) : maskState(state);
  const masked = [shown, ...entries].some(isMasked);
  return { kind: 'slot', slot, key: slotTuple(key), state: shown, entries, masked };
}

function plainState(state: SlotState): JsonObject {
  return asJson(state === PLANNED ? { phase: 'planned', attempts: [], replacements: 0, regrades: 0 } : state);
}

/** What a slot id stands for. @throws {BoundbookError} SLOT_NOT_PLANNED. */
export function slotKeyOf(book: Book, id: string): SlotKey {
  const touched = book.fold.slots.key(id);
  if (touched !== null) return touched;
  for (const slot of expandSlots(book.context.protocol, book.context.taskIds))
    if (slot.id === id) return slot;
  throw new BoundbookError(
    'SLOT_NOT_PLANNED',
    `${id} is neither a slot of this plan nor an attempt in its ledger`,
    {
      hint: '`boundbook plan` lists slots; `boundbook show` with an entry number shows ids.',
    },
  );
}

function findObject(book: Book, digest: Digest): Found {
  const naming = [...entriesNaming(book, digest)];
  const references = naming.flatMap((entry) => {
    const seq = show(book, entry).type === MASK ? null : entry.seq;
    return fieldsNaming(entry, digest).map((as) => ({ seq, as }));
  });
  // What no entry vouches for may be anything.
  const harmless = references.length > 0 && references.every(({ as }) => HARMLESS.test(as));
  if (!harmless && !book.fold.outcomesVisible) {
    if (references.length === 0) book.store.getObject(digest);
    throw new BoundbookError(
      'OUTCOME_BLINDED',
      `the object ${digest} shows an outcome, which is blinded until unblinding`,
      {
        hint: 'Run `boundbook unblind` when the plan is complete. The bytes stay where they are.',
        evidence: { digest },
      },
    );
  }
  return { kind: 'object', digest, bytes: book.store.getObject(digest), named_by: references };
}

/**
 * Entries that hold a text and may be found by it, in order: while outcomes are blinded, nothing leads to a recheck. The fold
 * has verified them all, so the bytes are searched as they lie.
 */
function* entriesNaming(book: Book, text: string): Generator<Entry> {
  const sought = Buffer.from(text);
  for (const { body } of book.store.rows()) {
    const decoded = body.includes(sought) ? decodeEntry(body) : null;
    if (decoded?.ok !== true) continue;
    if (book.fold.outcomesVisible || !isRecheck(decoded.entry)) yield decoded.entry;
  }
}

function fieldsNaming(value: unknown, text: string, path = ''): string[] {
  if (value === text) return [path];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) =>
    fieldsNaming(part, text, path === '' ? name : `${path}.${name}`),
  );
}

function show(book: Book, entry: Entry): JsonObject {
  if (book.fold.outcomesVisible) return asJson(entry);
  return maskEntry(entry, 'slot' in entry ? book.fold.slots.state(entry.slot) : null);
}

function isMasked(value: JsonValue): boolean {
  if (typeof value !== 'object' || value === null) return value === MASK;
  return Object.values(value).some((part: JsonValue) => isMasked(part));
}
