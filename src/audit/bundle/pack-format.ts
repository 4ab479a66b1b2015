import { createHash } from 'node:crypto';

/** Records of an object pack (docs/formats/bundle.md). */

/** What a task file may have, the largest of all objects. */
export const MAX_OBJECT_BYTES = 1024 * 1024 * 1024;
export const SALT_BYTES = 32;
/** More than the first line of any record takes. */
export const MAX_HEADER_BYTES = 256;

const HEADER = /^([0-9a-f]{64}) (?:(0|[1-9][0-9]{0,9})|redacted (0|[1-9][0-9]{0,9}) ([0-9a-f]{64}))$/;

export interface RecordHeader {
  /** SHA-256 of the bytes, 64 hexadecimal digits. */
  readonly hex: string;
  readonly length: number;
  /** 64 hexadecimal digits; null for a record that has its bytes. */
  readonly commitment: string | null;
}

/** Reads a record's first line, without its line feed; null when it is none. */
export function parseRecordHeader(line: string): RecordHeader | null {
  const [, hex, plain, redacted, commitment] = HEADER.exec(line) ?? [];
  const length = Number(plain ?? redacted);
  if (hex === undefined || !(length <= MAX_OBJECT_BYTES)) return null;
  return { hex, length, commitment: commitment ?? null };
}

export function formatRecordHeader({ hex, length, commitment }: RecordHeader): string {
  return commitment === null ? `${hex} ${length}\n` : `${hex} redacted ${length} ${commitment}\n`;
}

/** SHA-256(`boundbook/redaction/1` ‖ 0x00 ‖ salt ‖ bytes), 64 hexadecimal digits. */
export function commitmentOf(salt: Uint8Array, bytes: Uint8Array): string {
  return createHash('sha256').update('boundbook/redaction/1\0').update(salt).update(bytes).digest('hex');
}
