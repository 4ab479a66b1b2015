import { open } from 'node:fs/promises';
import { BoundbookError } from '../core/errors.js';
import type { JsonValue } from '../core/json.js';
import { parseStrictJson } from '../core/strict-json.js';

/** The cap of the safetensors format itself. */
const MAX_HEADER_BYTES = 100_000_000;

const BITS: Readonly<Record<string, number>> = {
  BOOL: 8,
  U8: 8,
  I8: 8,
  F8_E5M2: 8,
  F8_E4M3: 8,
  F8_E8M0: 8,
  U16: 16,
  I16: 16,
  F16: 16,
  BF16: 16,
  U32: 32,
  I32: 32,
  F32: 32,
  U64: 64,
  I64: 64,
  F64: 64,
  C64: 64,
  F4: 4,
  F6_E2M3: 6,
  F6_E3M2: 6,
};

/** The tensors of a file with their bytes, or what is wrong with its header. */
export type TensorTable =
  | { readonly ok: true; readonly tensors: ReadonlyMap<string, number> }
  | { readonly ok: false; readonly problem: string };

/**
 * Reads the header of a safetensors file and holds it against the file's size; the data is not read again (F-29,
 * F-41). System errors are thrown as they are.
 */
export async function readTensorTable(absolute: string): Promise<TensorTable> {
  const file = await open(absolute, 'r');
  try {
    const { size } = await file.stat();
    if (size < 8) return wrong(`has ${size} bytes; a safetensors file begins with 8 bytes of header length`);
    const prefix = Buffer.alloc(8);
    await file.read(prefix, 0, 8, 0);
    const length = prefix.readBigUInt64LE();
    if (length === 0n) return wrong('has a header of length zero; the copy was interrupted or zero-filled');
    if (length > BigInt(MAX_HEADER_BYTES) || length > BigInt(size - 8)) {
      return wrong(`names a header of ${length} bytes in a file of ${size} bytes`);
    }
    const header = Buffer.alloc(Number(length));
    const { bytesRead } = await file.read(header, 0, header.length, 8);
    if (bytesRead !== header.length) return wrong('became shorter while it was read');
    return parseTensorTable(header, size - 8 - header.length);
  } finally {
    await file.close();
  }
}

/** Judges the bytes of a header against the bytes of data that follow it. */
export function parseTensorTable(header: Uint8Array, dataBytes: number): TensorTable {
  if (header.every((byte) => byte === 0)) return wrong('has a header of zeros only');
  let value: JsonValue;
  try {
    value = parseStrictJson(header, 'the header');
  } catch (error) {
    if (error instanceof BoundbookError) return wrong(`has a damaged header: ${error.message}`);
    throw error;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return wrong('has a header that is no JSON object');
  }
  const spans: { readonly name: string; readonly begin: number; readonly end: number }[] = [];
  for (const [name, entry] of Object.entries(value)) {
    if (name === '__metadata__') continue;
    const span = spanOf(entry);
    if (typeof span === 'string')
      return wrong(`has a faulty entry for tensor ${JSON.stringify(name)}: ${span}`);
    spans.push({ name, ...span });
  }
  spans.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let at = 0;
  for (const { name, begin, end } of spans) {
    if (begin !== at)
      return wrong(`has a gap or an overlap before tensor ${JSON.stringify(name)} (byte ${at})`);
    at = end;
  }
  if (at !== dataBytes) return wrong(`holds ${dataBytes} bytes of data where its header describes ${at}`);
  return { ok: true, tensors: new Map(spans.map(({ name, begin, end }) => [name, end - begin])) };
}

/** The span of one tensor, or what is wrong with it. */
function spanOf(entry: unknown): { begin: number; end: number } | string {
  if (typeof entry !== 'object' || entry === null) return 'no object';
  const { dtype, shape, data_offsets: offsets } = entry as Record<string, unknown>;
  if (typeof dtype !== 'string') return 'no dtype';
  if (!isCounts(shape)) return 'no shape of whole numbers';
  if (!isCounts(offsets)) return 'no data_offsets';
  const [begin, end] = offsets;
  if (offsets.length !== 2 || begin === undefined || end === undefined || end < begin)
    return 'bad data_offsets';
  const bits = BITS[dtype];
  const expected = bits === undefined ? null : (shape.reduce((a, b) => a * b, 1) * bits) / 8;
  if (expected !== null && expected !== end - begin) {
    return `${dtype} of shape [${shape.join(', ')}] has ${expected} bytes, its offsets span ${end - begin}`;
  }
  return { begin, end };
}

function isCounts(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
}

function wrong(problem: string): TensorTable {
  return { ok: false, problem };
}
