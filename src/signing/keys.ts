import { hash, type KeyObject } from 'node:crypto';
import { BoundbookError } from '../core/errors.js';
import { decodeBase64 } from './base64.js';
import {
  generatePrivateKey,
  PUBLIC_KEY_BYTES,
  privateKeyOf,
  publicKeyObject,
  publicKeyOf,
  SEED_BYTES,
  seedOf,
} from './ed25519.js';

/**
 * Keys of signed notes (c2sp.org/signed-note) and their texts: the vkey of a verifier, and the skey of a signer as
 * golang.org/x/mod/sumdb/note writes it.
 */

/** `ed25519` signs a note's text; `cosignature` is the time-stamped kind of c2sp.org/tlog-cosignature. */
export type KeyType = 'ed25519' | 'cosignature';

/** Signature type bytes of c2sp.org/signed-note. */
const TYPE_BYTES: Readonly<Record<KeyType, number>> = { ed25519: 0x01, cosignature: 0x04 };

const SKEY_PREFIX = 'PRIVATE+KEY+';
const MAX_KEY_TEXT = 1000;

export interface VerifierKey {
  /** Who signs, best a URL without scheme. For the key of a log: its origin. */
  readonly name: string;
  readonly type: KeyType;
  /** Hint that finds the key of a signature; an unsigned 32-bit integer. */
  readonly id: number;
  /** 32 bytes of Ed25519. */
  readonly publicKey: Buffer;
}

export interface SignerKey {
  readonly verifier: VerifierKey;
  readonly privateKey: KeyObject;
}

/** Whether a text can name a key: not empty, well-formed, without white space, control characters and `+`. */
export function isKeyName(name: string): boolean {
  return name !== '' && name.isWellFormed() && !/[\p{White_Space}\p{Cc}+]/u.test(name);
}

/** Key id: the first four bytes of SHA-256(name ‖ 0x0A ‖ type ‖ public key), big-endian. */
export function keyId(name: string, type: KeyType, publicKey: Uint8Array): number {
  const head = Buffer.from(`${name}\n`, 'utf8');
  return hash('sha256', Buffer.concat([head, Buffer.of(TYPE_BYTES[type]), publicKey]), 'buffer').readUInt32BE(
    0,
  );
}

/** A key's id as it is written: eight lower-case hexadecimal digits. */
export function keyIdText(id: number): string {
  return id.toString(16).padStart(8, '0');
}

/** @throws {BoundbookError} KEY_INVALID for a name or public key that cannot be one. */
export function verifierKey(name: string, type: KeyType, publicKey: Uint8Array): VerifierKey {
  if (!isKeyName(name)) refuse('a key name is not empty and has neither white space nor "+"');
  if (publicKey.length !== PUBLIC_KEY_BYTES) refuse(`an Ed25519 public key has ${PUBLIC_KEY_BYTES} bytes`);
  return Object.freeze({ name, type, id: keyId(name, type, publicKey), publicKey: Buffer.from(publicKey) });
}

/** @throws {BoundbookError} KEY_INVALID for a name that cannot be one. */
export function signerKey(name: string, type: KeyType, privateKey: KeyObject): SignerKey {
  return Object.freeze({ verifier: verifierKey(name, type, publicKeyOf(privateKey)), privateKey });
}

/** A new key pair. @throws {BoundbookError} KEY_INVALID for a name that cannot be one. */
export function generateKey(name: string, type: KeyType = 'ed25519'): SignerKey {
  return signerKey(name, type, generatePrivateKey());
}

/** `<name>+<id>+<base64 of type and public key>`. */
export function formatVerifierKey(key: VerifierKey): string {
  return `${key.name}+${keyIdText(key.id)}+${typedBase64(key.type, key.publicKey)}`;
}

/** Reads a vkey, strictly by writing it again. @throws {BoundbookError} KEY_INVALID */
export function parseVerifierKey(text: string): VerifierKey {
  const { name, type, bytes } = parseKeyText(text, 'a public key text (vkey)');
  const key = verifierKey(name, type, bytes);
  if (formatVerifierKey(key) !== text) refuse('the key id of the vkey does not belong to its name and key');
  return key;
}

/** `PRIVATE+KEY+<name>+<id>+<base64 of type and seed>`. A secret. */
export function formatSignerKey(key: SignerKey): string {
  const { name, id, type } = key.verifier;
  return `${SKEY_PREFIX}${name}+${keyIdText(id)}+${typedBase64(type, seedOf(key.privateKey))}`;
}

/** Reads an skey, strictly by writing it again. Its text never appears in an error. @throws {BoundbookError} KEY_INVALID */
export function parseSignerKey(text: string): SignerKey {
  if (!text.startsWith(SKEY_PREFIX)) refuse(`a private key text (skey) begins with ${SKEY_PREFIX}`);
  const { name, type, bytes } = parseKeyText(text.slice(SKEY_PREFIX.length), 'a private key text (skey)');
  if (bytes.length !== SEED_BYTES) refuse(`an Ed25519 seed has ${SEED_BYTES} bytes`);
  const key = signerKey(name, type, privateKeyOf(bytes));
  if (formatSignerKey(key) !== text) refuse('the key id of the skey does not belong to its name and key');
  return key;
}

/** The public key as PEM (RFC 8410), for `openssl pkeyutl -verify -rawin`. */
export function publicPem(key: VerifierKey): string {
  return publicKeyObject(key.publicKey).export({ format: 'pem', type: 'spki' }).toString();
}

/** The private key as unencrypted PEM (PKCS #8). A secret. */
export function privatePem(key: SignerKey): string {
  return key.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
}

function typedBase64(type: KeyType, bytes: Uint8Array): string {
  return Buffer.concat([Buffer.of(TYPE_BYTES[type]), bytes]).toString('base64');
}

/** `<name>+<8 hex>+<base64>`; only the last part may hold further `+`. */
function parseKeyText(text: string, what: string): { name: string; type: KeyType; bytes: Buffer } {
  const parts = text.length <= MAX_KEY_TEXT ? /^([^+]+)\+[0-9a-f]{8}\+(.+)$/.exec(text) : null;
  const [, name, base64] = parts ?? [];
  const blob = base64 === undefined ? undefined : decodeBase64(base64);
  if (name === undefined || blob === undefined) {
    return refuse(`${what} has the form <name>+<8 hexadecimal digits>+<base64>`);
  }
  const type = typeOfByte(blob[0]);
  if (type === undefined) return refuse(`${what} is neither of Ed25519 (01) nor of its cosignatures (04)`);
  return { name, type, bytes: blob.subarray(1) };
}

function typeOfByte(byte: number | undefined): KeyType | undefined {
  if (byte === TYPE_BYTES.ed25519) return 'ed25519';
  return byte === TYPE_BYTES.cosignature ? 'cosignature' : undefined;
}

function refuse(reason: string): never {
  throw new BoundbookError('KEY_INVALID', `the key is refused: ${reason}`, {
    hint: 'Copy the whole line that `boundbook keygen` printed.',
  });
}
