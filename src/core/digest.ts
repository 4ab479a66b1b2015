import { hash } from 'node:crypto';
import { canonicalText } from './canonical-json.js';

/** `sha256:` followed by 64 lower-case hexadecimal digits. */
export type Digest = `sha256:${string}`;

const DIGEST = /^sha256:[0-9a-f]{64}$/;

export function isDigest(value: unknown): value is Digest {
  return typeof value === 'string' && DIGEST.test(value);
}

/** SHA-256 of bytes, or of a string's UTF-8 bytes, as 64 hexadecimal digits. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex');
}

/** SHA-256 of bytes as a {@link Digest}. */
export function digestOf(data: string | Uint8Array): Digest {
  return `sha256:${sha256Hex(data)}`;
}

/** SHA-256 of a value's canonical JSON (RFC 8785). */
export function digestOfJson(value: unknown): Digest {
  return digestOf(canonicalText(value));
}

/** The 64 hexadecimal digits of a digest. */
export function hexOf(digest: Digest): string {
  return digest.slice('sha256:'.length);
}
