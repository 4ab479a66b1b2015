import { join } from 'node:path';
import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { exists } from '../core/files.js';
import { readWorkspace, type StoredManifest } from '../manifest/workspace.js';
import { type Book, ledgerFolder } from './book.js';
import type { Entry, EntryOf } from './entries/entry.js';
import type { LedgerFold } from './fold.js';
import { LedgerReader } from './reader.js';
import { LEDGER_FILE } from './schema.js';

/** What a ledger took over from the superseded plan's: counts, and no outcome by arm. */
export interface CarriedSlots {
  readonly manifest: Digest;
  readonly ledger: string;
  /** Size and root of the state that it was taken from. */
  readonly entries: number;
  readonly root: string;
  readonly settled: number;
  readonly unresolved: number;
  /** Attempts that were started for them there. */
  readonly attempts: number;
  /** Slots closed there and executed again here, under other conditions. */
  readonly again: number;
  /** Slots closed there that this plan does not hold. */
  readonly dropped: number;
}

/** null when nothing was carried. */
export function carriedSlots({ opened, slots }: Pick<LedgerFold, 'opened' | 'slots'>): CarriedSlots | null {
  const carries = opened?.carries ?? null;
  if (carries === null) return null;
  const { manifest, ledger, size, root, again, dropped } = carries;
  return { manifest, ledger, entries: size, root, ...slots.carried, again, dropped };
}

/** A ledger from which slots were carried. */
export interface CarrySource {
  readonly manifest: Digest;
  /** Its manifest's file; null when that, or its ledger, is not in the workspace. */
  readonly file: string | null;
  readonly ledger: string;
}

/** Where a carried slot comes from. */
export interface CarriedFrom extends CarrySource {
  /** Position there of the entry that closed it. */
  readonly closed_by: number;
  /** What that entry is: `slot.carried` when it came there from a still earlier ledger; null when it is not at hand. */
  readonly by: Entry['type'] | null;
  /** Attempts that were started for it, all told. */
  readonly attempts: number;
}

/**
 * The ledgers through which a slot was carried into a book, the latest first; the last of them is where it was run. Empty
 * for a slot that is the ledger's own.
 *
 * @throws {BoundbookError} as `readWorkspace`, and as `LedgerReader.open` for a ledger that is there and cannot be read.
 */
export async function carriedFrom(root: string, book: Book, slot: string): Promise<readonly CarriedFrom[]> {
  const found: CarriedFrom[] = [];
  let closing = book.fold.slots.carriedSlot(slot);
  if (closing === null) return found;
  let { closedBy, attempts } = closing;
  closing = null;
  for await (const { source, reader } of earlierLedgers(root, book)) {
    const entry = reader?.entryAt(closedBy) ?? null;
    found.push({ ...source, closed_by: closedBy, by: entry?.type ?? null, attempts });
    if (entry?.type !== 'slot.carried') break;
    ({ closed_by: closedBy, attempts } = entry);
  }
  return found;
}

/**
 * The ledger, among those that a book carries from, that holds an object; null when none does.
 *
 * @throws {BoundbookError} as {@link carriedFrom}; OBJECT_ALTERED.
 */
export async function carriedObject(root: string, book: Book, digest: Digest): Promise<CarrySource | null> {
  for await (const { source, reader } of earlierLedgers(root, book)) {
    if (reader !== null && reader.findObject(digest) !== null) return source;
  }
  return null;
}

/** Each is closed again when the next one is asked for. */
async function* earlierLedgers(
  root: string,
  { opened }: Book,
): AsyncGenerator<{ readonly source: CarrySource; readonly reader: LedgerReader | null }> {
  const { manifests } = await readWorkspace(root);
  for (let carries = opened.carries; carries !== null; ) {
    const { manifest, ledger } = carries;
    const stored = manifests.find(({ digest }) => digest === manifest);
    const reader = stored === undefined ? null : await openExisting(root, stored);
    try {
      const file = reader === null ? null : (stored?.file ?? null);
      yield { source: { manifest, file, ledger }, reader };
      carries = reader === null ? null : openingOf(reader).carries;
    } finally {
      reader?.close();
    }
  }
}

async function openExisting(root: string, { file }: StoredManifest): Promise<LedgerReader | null> {
  const folder = ledgerFolder(root, file);
  return (await exists(join(folder, LEDGER_FILE))) ? LedgerReader.open(folder) : null;
}

function openingOf(reader: LedgerReader): EntryOf<'ledger.opened'> {
  const first = reader.entryAt(0);
  if (first?.type === 'ledger.opened') return first;
  throw new BoundbookError('LEDGER_DAMAGED', `${reader.file} does not begin with its opening`, {
    hint: 'Restore it from a copy. boundbook audit lists what is wrong with it.',
  });
}
