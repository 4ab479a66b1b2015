import { canonicalText } from '../core/canonical-json.js';
import { BoundbookError } from '../core/errors.js';
import type { Book } from './book.js';
import type { Checkpoint } from './checkpoint.js';
import { decodeEntry } from './codec.js';
import { newestNote } from './cosignatures.js';
import type { Entry } from './entries/entry.js';
import { ledgerTree } from './ledger-tree.js';
import { slotKeyOf } from './lookup.js';
import { asJson, MASK, maskEntry } from './mask.js';
import { inclusionProof } from './proofs.js';
import { formatTlogProof, parseTlogProof, verifyTlogProof } from './tlog-proof.js';
import { type Trust, verifyTrusted } from './trust.js';

/**
 * Proof files for what became of one slot. The entry that closed it is the file's extra data, so that a stranger needs
 * nothing but the file and a public key. While outcomes are blinded the entry is left out: the proof then binds an
 * entry that is shown after unblinding.
 */

export interface SlotProof {
  /** A c2sp.org/tlog-proof@v1 file. */
  readonly bytes: Buffer;
  /** Position of the entry that closed the slot. */
  readonly index: number;
  /** Its type, or that it is masked. */
  readonly type: Entry['type'] | typeof MASK;
  /** Number of entries of the checkpoint that it is proved against. */
  readonly size: number;
  /** Whether the file holds the entry. */
  readonly shown: boolean;
}

/**
 * Proves that the entry which closed a slot is in the ledger that its newest signed checkpoint describes.
 *
 * @throws {BoundbookError} PROOF_UNAVAILABLE when the slot is not closed, or no signed checkpoint covers its end;
 * SLOT_NOT_PLANNED.
 */
export async function proveSlot(book: Book, slot: string): Promise<SlotProof> {
  const found = closingEntry(book, slot);
  if (found === null) throw notClosed(book, slot);
  const { entry, body } = found;
  const { size, note } = await newestNote(book, entry.seq + 1);
  const hashes = inclusionProof(ledgerTree(book.store, size), entry.seq, size);
  const shown = mayBeShown(book, entry);
  const proof = { index: BigInt(entry.seq), hashes, checkpoint: note, ...(shown ? { extra: body } : {}) };
  const type = shown ? entry.type : MASK;
  return { bytes: formatTlogProof(proof), index: entry.seq, type, size, shown };
}

/** What a verified proof file proves. */
export interface ProvedEntry {
  readonly entry: Entry;
  readonly checkpoint: Checkpoint;
}

/**
 * Verifies a proof file by keys of the reader alone.
 *
 * @param given the entry's bytes; null: those that the file holds
 * @throws {BoundbookError} NOTE_INVALID, SIGNATURE_INVALID, QUORUM_UNMET; PROOF_INVALID when the proof fails or what it
 * proves is no entry; PROOF_UNAVAILABLE when neither the file nor the caller has the entry.
 */
export function verifyProof(bytes: Uint8Array, given: Uint8Array | null, trust: Trust): ProvedEntry {
  const body = given ?? parseTlogProof(bytes).extra;
  if (body === undefined) {
    throw new BoundbookError('PROOF_UNAVAILABLE', 'the proof file does not hold the entry that it is about', {
      hint: 'It was written while outcomes were blinded. Give the entry with --entry FILE.',
    });
  }
  const { index, checkpoint } = verifyTlogProof(bytes, body, (note) => verifyTrusted(note, trust));
  const decoded = decodeEntry(Buffer.from(body));
  if (!decoded.ok || BigInt(decoded.entry.seq) !== index) {
    throw new BoundbookError('PROOF_INVALID', 'what the file proves is no entry at that position', {
      hint: 'The leaf is in the tree, but its bytes are not those of an entry.',
      evidence: { index: String(index) },
    });
  }
  return { entry: decoded.entry, checkpoint };
}

/** The last entry that closed a slot, with its bytes. */
function closingEntry(book: Book, slot: string): { readonly entry: Entry; readonly body: Buffer } | null {
  const sought = Buffer.from(slot);
  let last: { readonly entry: Entry; readonly body: Buffer } | null = null;
  for (const { body } of book.store.rows()) {
    const decoded = body.includes(sought) ? decodeEntry(body) : null;
    if (decoded?.ok !== true || !isClosing(decoded.entry) || decoded.entry.slot !== slot) continue;
    last = { entry: decoded.entry, body: Buffer.from(body) };
  }
  return last;
}

function isClosing(entry: Entry): entry is Extract<Entry, { slot: string }> {
  return entry.type === 'slot.settled' || entry.type === 'slot.unresolved' || entry.type === 'slot.carried';
}

/** Law 8: an entry whose masked form is its own form shows no outcome. */
function mayBeShown({ fold }: Book, entry: Entry): boolean {
  if (fold.outcomesVisible) return true;
  const state = 'slot' in entry ? fold.slots.state(entry.slot) : null;
  return canonicalText(maskEntry(entry, state)) === canonicalText(asJson(entry));
}

function notClosed(book: Book, slot: string): BoundbookError {
  slotKeyOf(book, slot);
  return new BoundbookError('PROOF_UNAVAILABLE', `the slot ${slot} is not closed yet`, {
    hint: 'There is nothing to prove before it is settled or finally unresolved.',
  });
}
