import { type Checkpoint, formatCheckpoint } from '../../src/ledger/checkpoint.js';
import { generateKey, type SignerKey } from '../../src/signing/keys.js';
import { addSignature, cosignText, formatNote, parseNote, signText } from '../../src/signing/note.js';

/** A note of a checkpoint, signed by a fresh key under the name of its origin or another. */
export function signedNote(checkpoint: Checkpoint, name: string = checkpoint.origin): Buffer {
  const text = formatCheckpoint(checkpoint);
  return formatNote({ text, signatures: [signText(text, generateKey(name))] });
}

/** A note with a cosignature more. */
export function cosigned(note: Uint8Array, key: SignerKey, time: bigint): Buffer {
  return addSignature(note, cosignText(parseNote(note).text, key, time));
}
