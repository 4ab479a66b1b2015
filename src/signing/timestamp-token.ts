import { BoundbookError } from '../core/errors.js';
import type { JsonValue } from '../core/json.js';
import { childrenOf, type DerValue, expectTag, integerOf, oidOf, readDer, TAG } from './der.js';

/**
 * Reads what an RFC 3161 time stamp says, without trusting any of it: nothing here is verified. Pure: bytes in,
 * values out.
 */

/** Object identifier of SHA-256. */
export const SHA256_OID = '2.16.840.1.101.3.4.2.1';

const SIGNED_DATA = '1.2.840.113549.1.7.2';
const TST_INFO = '1.2.840.113549.1.9.16.1.4';
const MAX_BYTES = 1_000_000;

export interface TimestampInfo {
  /** Object identifier of the authority's policy. */
  readonly policy: string;
  /** Object identifier of the hash function, and the digest that was stamped. */
  readonly hash: string;
  readonly digest: Buffer;
  readonly serial: bigint;
  /** genTime as RFC 3339 in UTC, with the fraction that the token has. */
  readonly time: string;
  /** genTime in POSIX seconds, rounded down. */
  readonly seconds: number;
  /** How far genTime may be off to either side, in microseconds; null when the token does not say. */
  readonly accuracy: bigint | null;
  /** What the query asked to be repeated; null when the token has none. */
  readonly nonce: bigint | null;
}

/**
 * Reads a TimeStampResp (2.4.2) or a bare TimeStampToken.
 *
 * @throws {BoundbookError} TIMESTAMP_INVALID for another form, or when the authority granted nothing.
 */
export function readTimestamp(bytes: Uint8Array): { readonly bare: boolean; readonly info: TimestampInfo } {
  if (bytes.length > MAX_BYTES) refuse(`it has more than ${MAX_BYTES} bytes`);
  const outer = readDer(Buffer.from(bytes));
  const [first, second, ...more] = childrenOf(outer, TAG.sequence);
  if (first?.tag === TAG.oid) return { bare: true, info: readToken(outer) };
  const [status, text] = childrenOf(first, TAG.sequence);
  const code = integerOf(expectTag(status, TAG.integer));
  // 0 granted, 1 granted with modifications.
  if (code > 1n)
    refuse(`the authority refused (status ${code})`, { status: String(code), text: statusText(text) });
  if (second === undefined || more.length > 0) refuse('it holds no token');
  return { bare: false, info: readToken(second) };
}

/** ContentInfo of a CMS SignedData whose content is a TSTInfo. */
function readToken(token: DerValue | undefined): TimestampInfo {
  const [type, wrapped] = childrenOf(token, TAG.sequence);
  if (oidOf(type) !== SIGNED_DATA) refuse('its token is not signed data');
  const [signedData] = childrenOf(wrapped, TAG.context0);
  const [, , content] = childrenOf(signedData, TAG.sequence);
  const [contentType, explicit] = childrenOf(content, TAG.sequence);
  if (oidOf(contentType) !== TST_INFO) refuse('its token does not hold a TSTInfo');
  const [octets] = childrenOf(explicit, TAG.context0);
  return readInfo(readDer(expectTag(octets, TAG.octetString).content));
}

/** TSTInfo: version, policy, messageImprint, serialNumber, genTime, then optional fields. */
function readInfo(value: DerValue): TimestampInfo {
  const [version, policy, imprint, serial, time, ...optional] = childrenOf(value, TAG.sequence);
  if (integerOf(expectTag(version, TAG.integer)) !== 1n) refuse('its TSTInfo is not of version 1');
  const [algorithm, digest] = childrenOf(imprint, TAG.sequence);
  const [hash] = childrenOf(algorithm, TAG.sequence);
  // After the time: accuracy (SEQUENCE), ordering (BOOLEAN), nonce (INTEGER), tsa and extensions (context tags).
  const [accuracy] = optional;
  const nonce = optional.find(({ tag }) => tag === TAG.integer);
  return {
    policy: oidOf(policy),
    hash: oidOf(hash),
    digest: expectTag(digest, TAG.octetString).content,
    serial: integerOf(expectTag(serial, TAG.integer)),
    ...readTime(expectTag(time, TAG.generalizedTime).content.toString('latin1')),
    accuracy: accuracy?.tag === TAG.sequence ? readAccuracy(accuracy) : null,
    nonce: nonce === undefined ? null : integerOf(nonce),
  };
}

/** GeneralizedTime as RFC 3161 restricts it: `YYYYMMDDhhmmss[.s…]Z`, no trailing zero in the fraction. */
function readTime(text: string): { time: string; seconds: number } {
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\.\d{0,17}[1-9])?Z$/.exec(text);
  const [, year, month, day, hour, minute, second, fraction = ''] = parts ?? [];
  const whole = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  const date = new Date(`${whole}Z`);
  // The date is written again, so that 30 February and 25 o'clock are no times.
  if (parts === null || Number.isNaN(date.getTime()) || date.toISOString() !== `${whole}.000Z`) {
    refuse('its time is not a time');
  }
  return { time: `${whole}${fraction}Z`, seconds: date.getTime() / 1000 };
}

/** Accuracy: seconds, then [0] milliseconds and [1] microseconds, all optional. In microseconds. */
function readAccuracy(value: DerValue): bigint {
  const units = new Map<number, bigint>([
    [TAG.integer, 1_000_000n],
    [TAG.contextPrimitive0, 1000n],
    [TAG.contextPrimitive1, 1n],
  ]);
  return childrenOf(value, TAG.sequence).reduce(
    (sum, part) => sum + integerOf(part) * (units.get(part.tag) ?? 0n),
    0n,
  );
}

function statusText(value: DerValue | undefined): string {
  if (value?.tag !== TAG.sequence) return '';
  const texts = childrenOf(value, TAG.sequence).filter((part) => part.tag === TAG.utf8String);
  return texts
    .map((part) => part.content.toString('utf8'))
    .join(' ')
    .slice(0, 500);
}

function refuse(reason: string, evidence?: JsonValue): never {
  throw new BoundbookError('TIMESTAMP_INVALID', `the time stamp is refused: ${reason}`, {
    hint: 'Ask the authority again, or choose another one.',
    ...(evidence === undefined ? {} : { evidence }),
  });
}
