import { BoundbookError } from '../core/errors.js';

/** A small reader of DER (X.690): definite, shortest lengths and low tag numbers only. Pure: bytes in, values out. */

export const TAG = {
  integer: 0x02,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  generalizedTime: 0x18,
  sequence: 0x30,
  context0: 0xa0,
  contextPrimitive0: 0x80,
  contextPrimitive1: 0x81,
} as const;

export interface DerValue {
  readonly tag: number;
  readonly content: Buffer;
}

/** Reads one value that fills the bytes. @throws {BoundbookError} TIMESTAMP_INVALID */
export function readDer(bytes: Buffer): DerValue {
  const [value, ...more] = readAll(bytes);
  if (value === undefined || more.length > 0) return refuse('there is not exactly one value');
  return value;
}

/** The values inside a constructed one. @throws {BoundbookError} TIMESTAMP_INVALID for another tag or broken content. */
export function childrenOf(value: DerValue | undefined, tag: number): DerValue[] {
  return readAll(expectTag(value, tag).content);
}

/** @throws {BoundbookError} TIMESTAMP_INVALID for another tag or no value. */
export function expectTag(value: DerValue | undefined, tag: number): DerValue {
  if (value?.tag === tag) return value;
  return refuse(`a value with tag 0x${tag.toString(16)} is missing`);
}

/** A non-negative INTEGER. */
export function integerOf(value: DerValue): bigint {
  const { content } = value;
  const [first, second] = content;
  if (first === undefined || first >= 0x80) return refuse('an integer is empty or negative');
  if (first === 0 && second !== undefined && second < 0x80) refuse('an integer is not in its shortest form');
  return BigInt(`0x${content.toString('hex')}`);
}

/** An OBJECT IDENTIFIER in dotted form. */
export function oidOf(value: DerValue | undefined): string {
  const { content } = expectTag(value, TAG.oid);
  const arcs: bigint[] = [];
  let arc = 0n;
  for (const [i, byte] of content.entries()) {
    arc = (arc << 7n) | BigInt(byte & 0x7f);
    if (byte < 0x80) {
      arcs.push(arc);
      arc = 0n;
    } else if (i === content.length - 1) {
      refuse('an object identifier is cut short');
    }
  }
  const [first, ...rest] = arcs;
  if (first === undefined) return refuse('an object identifier is empty');
  const root = first < 80n ? first / 40n : 2n;
  return [root, first - root * 40n, ...rest].join('.');
}

function readAll(bytes: Buffer): DerValue[] {
  const values: DerValue[] = [];
  let at = 0;
  while (at < bytes.length) {
    const tag = bytes[at] ?? 0;
    if ((tag & 0x1f) === 0x1f) refuse('a tag has more than one byte');
    const { start, end } = readLength(bytes, at + 1);
    values.push({ tag, content: bytes.subarray(start, end) });
    at = end;
  }
  return values;
}

/** Where the content begins and ends, for a length that begins at an offset. */
function readLength(bytes: Buffer, offset: number): { start: number; end: number } {
  const first = bytes[offset];
  if (first === undefined) return refuse('it is cut short');
  let start = offset + 1;
  let length = first;
  if (first >= 0x80) {
    const width = first & 0x7f;
    if (width === 0 || width > 4 || start + width > bytes.length)
      refuse('a length is indefinite or too long');
    length = bytes.readUIntBE(start, width);
    if (length < 0x80 || length < 2 ** (8 * (width - 1))) refuse('a length is not in its shortest form');
    start += width;
  }
  if (start + length > bytes.length) refuse('it is cut short');
  return { start, end: start + length };
}

function refuse(reason: string): never {
  throw new BoundbookError('TIMESTAMP_INVALID', `the time stamp is not in the form of DER: ${reason}`, {
    hint: 'Ask the authority again; the file is damaged, or it is no RFC 3161 response.',
  });
}
