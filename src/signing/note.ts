import { BoundbookError } from '../core/errors.js';
import { decodeUtf8 } from '../core/files.js';
import type { JsonValue } from '../core/json.js';
import { decodeBase64 } from './base64.js';
import { SIGNATURE_BYTES, signEd25519, verifyEd25519 } from './ed25519.js';
import { isKeyName, keyIdText, type SignerKey, type VerifierKey } from './keys.js';

/**
 * Signed notes (c2sp.org/signed-note) and time-stamped cosignatures (c2sp.org/tlog-cosignature, Ed25519 kind). Pure:
 * bytes in, verdict out.
 *
 * One key may sign notes, cosignatures and DSSE envelopes: their messages begin differently (a log's origin without a
 * space, `cosignature/v1\n`, `DSSEv1 `), so that none passes for another.
 */

const MAX_BYTES = 1_000_000;
const MAX_SIGNATURES = 100;
const KEY_ID_BYTES = 4;
const TIME_BYTES = 8;
const MAX_TIME = (1n << 63n) - 1n;
/** Em dash and space. */
const SIGNATURE_PREFIX = '\u2014 ';

export interface NoteSignature {
  readonly name: string;
  readonly keyId: number;
  /** What follows the key id. */
  readonly bytes: Buffer;
}

export interface Note {
  /** Ends with a line break; may hold empty lines. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

export interface VerifiedSignature {
  readonly key: VerifierKey;
  /** POSIX seconds that a cosignature states; null for a plain signature. The earliest one if there are several. */
  readonly time: bigint | null;
}

export interface VerifiedNote extends Note {
  /** One for each known key that signed. Never empty. */
  readonly verified: readonly VerifiedSignature[];
  /** Signatures by keys that the verifier does not know: they count for nothing. */
  readonly unknown: readonly NoteSignature[];
}

/** Writes a note. @throws {BoundbookError} NOTE_INVALID for text or names that a note cannot hold. */
export function formatNote(note: Note): Buffer {
  assertText(note.text);
  if (note.signatures.length === 0) refuse('it has no signature');
  if (note.signatures.length > MAX_SIGNATURES) refuse(`it has more than ${MAX_SIGNATURES} signatures`);
  return Buffer.from(`${note.text}\n${note.signatures.map(formatSignature).join('')}`, 'utf8');
}

/**
 * Reads a note, strictly by writing it again; no signature is checked.
 *
 * @throws {BoundbookError} NOTE_INVALID
 */
export function parseNote(bytes: Uint8Array): Note {
  if (bytes.length > MAX_BYTES) refuse(`it has more than ${MAX_BYTES} bytes`);
  const all = decodeNote(bytes);
  // The text may hold empty lines: the last one is the border.
  const border = all.lastIndexOf('\n\n');
  if (border < 0) return refuse('no empty line parts the text from the signatures');
  const lines = all.slice(border + 2).split('\n');
  if (lines.pop() !== '') refuse('the last line does not end');
  if (lines.length > MAX_SIGNATURES) refuse(`it has more than ${MAX_SIGNATURES} signatures`);
  const note = { text: all.slice(0, border + 1), signatures: lines.map(parseSignature) };
  if (!formatNote(note).equals(bytes)) refuse('its form is not the one its content is written in');
  return note;
}

/**
 * Reads a note and verifies every signature by a known key.
 *
 * @throws {BoundbookError} NOTE_INVALID; SIGNATURE_INVALID when a known key's signature fails, or when no known key
 * signed; KEY_INVALID when two of the given keys share name and id.
 */
export function verifyNote(bytes: Uint8Array, keys: readonly VerifierKey[]): VerifiedNote {
  const known = indexKeys(keys);
  const note = parseNote(bytes);
  const verified = new Map<VerifierKey, VerifiedSignature>();
  const unknown: NoteSignature[] = [];
  for (const signature of note.signatures) {
    const key = known.get(keyHandle(signature.name, signature.keyId));
    if (key === undefined) {
      unknown.push(signature);
      continue;
    }
    const time = verifySignature(note.text, signature, key);
    const before = verified.get(key);
    if (before === undefined || (time !== null && before.time !== null && time < before.time)) {
      verified.set(key, { key, time });
    }
  }
  if (verified.size === 0) refuseUnsigned(note, keys);
  return { ...note, verified: [...verified.values()], unknown };
}

/** Signs a note's text. @throws {BoundbookError} KEY_INVALID for a cosigner's key, NOTE_INVALID for the text. */
export function signText(text: string, key: SignerKey): NoteSignature {
  assertText(text);
  if (key.verifier.type !== 'ed25519') refuseKey(key.verifier, 'signs cosignatures only');
  return signatureOf(key, signEd25519(key.privateKey, Buffer.from(text, 'utf8')));
}

/**
 * Cosigns a note's text at a time in POSIX seconds.
 *
 * @throws {BoundbookError} KEY_INVALID for a key that signs plain notes, NOTE_INVALID for the text or the time.
 */
export function cosignText(text: string, key: SignerKey, time: bigint): NoteSignature {
  assertText(text);
  if (key.verifier.type !== 'cosignature') refuseKey(key.verifier, 'signs plain notes only');
  if (time < 0n || time > MAX_TIME) refuse('the time of a cosignature is outside 0 to 2^63 - 1');
  const stamp = Buffer.alloc(TIME_BYTES);
  stamp.writeBigUInt64BE(time);
  return signatureOf(key, Buffer.concat([stamp, signEd25519(key.privateKey, cosignedMessage(text, time))]));
}

/** A note with one signature more. @throws {BoundbookError} NOTE_INVALID */
export function addSignature(bytes: Uint8Array, signature: NoteSignature): Buffer {
  const note = parseNote(bytes);
  return formatNote({ text: note.text, signatures: [...note.signatures, signature] });
}

/** c2sp.org/tlog-cosignature, "Ed25519 signed message". */
function cosignedMessage(text: string, time: bigint): Buffer {
  return Buffer.from(`cosignature/v1\ntime ${time}\n${text}`, 'utf8');
}

function signatureOf(key: SignerKey, bytes: Buffer): NoteSignature {
  return { name: key.verifier.name, keyId: key.verifier.id, bytes };
}

/** The time that a cosignature states, null for a plain signature. */
function verifySignature(text: string, signature: NoteSignature, key: VerifierKey): bigint | null {
  if (key.type === 'ed25519') {
    if (!verifyEd25519(key.publicKey, Buffer.from(text, 'utf8'), signature.bytes)) refuseSignature(signature);
    return null;
  }
  if (signature.bytes.length !== TIME_BYTES + SIGNATURE_BYTES) refuseSignature(signature);
  const time = signature.bytes.readBigUInt64BE(0);
  const valid =
    time <= MAX_TIME &&
    verifyEd25519(key.publicKey, cosignedMessage(text, time), signature.bytes.subarray(TIME_BYTES));
  if (!valid) refuseSignature(signature);
  return time;
}

function formatSignature(signature: NoteSignature): string {
  if (!isKeyName(signature.name)) refuse('a signature has a name that no key can have');
  const id = Buffer.alloc(KEY_ID_BYTES);
  id.writeUInt32BE(signature.keyId);
  return `${SIGNATURE_PREFIX}${signature.name} ${Buffer.concat([id, signature.bytes]).toString('base64')}\n`;
}

function parseSignature(line: string): NoteSignature {
  if (!line.startsWith(SIGNATURE_PREFIX))
    refuse('a signature line does not begin with an em dash and a space');
  const [name, base64, ...more] = line.slice(SIGNATURE_PREFIX.length).split(' ');
  const blob = base64 === undefined ? undefined : decodeBase64(base64);
  if (name === undefined || !isKeyName(name) || blob === undefined || more.length > 0) {
    return refuse('a signature line is not an em dash, a key name and base64');
  }
  if (blob.length <= KEY_ID_BYTES) refuse('a signature has no bytes after its key id');
  return { name, keyId: blob.readUInt32BE(0), bytes: blob.subarray(KEY_ID_BYTES) };
}

function decodeNote(bytes: Uint8Array): string {
  try {
    return decodeUtf8(bytes, 'the note');
  } catch (error) {
    throw new BoundbookError('NOTE_INVALID', 'the note is refused: it is not UTF-8 text', { cause: error });
  }
}

function assertText(text: string): void {
  if (!text.endsWith('\n')) refuse('its text does not end with a line break');
  if (!text.isWellFormed()) refuse('its text holds a lone surrogate');
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x20 && unit !== 0x0a)
      refuse(`it holds the control character U+${unit.toString(16).padStart(4, '0')}`);
  }
}

function keyHandle(name: string, id: number): string {
  return `${name}+${keyIdText(id)}`;
}

function indexKeys(keys: readonly VerifierKey[]): Map<string, VerifierKey> {
  const index = new Map<string, VerifierKey>();
  for (const key of keys) {
    const handle = keyHandle(key.name, key.id);
    const other = index.get(handle);
    if (other !== undefined && !other.publicKey.equals(key.publicKey)) {
      refuseKey(key, 'shares its name and id with another key');
    }
    index.set(handle, other ?? key);
  }
  return index;
}

function refuse(reason: string, evidence?: JsonValue): never {
  throw new BoundbookError('NOTE_INVALID', `the note is refused: ${reason}`, {
    hint: 'Restore the file from where it came; a note must not be edited, not even its line breaks.',
    ...(evidence === undefined ? {} : { evidence }),
  });
}

function refuseSignature(signature: NoteSignature): never {
  const key = keyHandle(signature.name, signature.keyId);
  throw new BoundbookError('SIGNATURE_INVALID', `the signature of ${key} does not verify`, {
    hint: 'The text was changed after signing, or the signature belongs to another text.',
    evidence: { key, signature: signature.bytes.toString('base64') },
  });
}

function refuseUnsigned(note: Note, keys: readonly VerifierKey[]): never {
  throw new BoundbookError('SIGNATURE_INVALID', 'no known key signed the note', {
    hint: 'Give the public key (vkey) of the signer. Take it from the signer, never from the bundle.',
    evidence: {
      signed_by: note.signatures.map((signature) => keyHandle(signature.name, signature.keyId)),
      known: keys.map((key) => keyHandle(key.name, key.id)),
    },
  });
}

function refuseKey(key: VerifierKey, reason: string): never {
  throw new BoundbookError('KEY_INVALID', `the key ${keyHandle(key.name, key.id)} ${reason}`);
}
