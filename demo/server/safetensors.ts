import { z } from 'zod';

/** A tensor widened to 32-bit floats, row-major. */
export interface Tensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

const entrySchema = z.object({
  dtype: z.string(),
  shape: z.array(z.int().nonnegative()),
  data_offsets: z.tuple([z.int().nonnegative(), z.int().nonnegative()]),
});
const headerSchema = z.record(z.string(), z.unknown());

/**
 * The value of an IEEE 754 half-precision number given by its 16 bits.
 * A table-free conversion: Node 20 has no `Float16Array`.
 */
export function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/**
 * Reads a safetensors file: an 8-byte little-endian header length, a JSON header, then the tensors.
 * Only `F16` is read, the precision the models here are saved in.
 *
 * @throws Error when the file is cut short, the header isn't what the format says, or a weight isn't finite.
 */
export function parseSafetensors(bytes: Uint8Array): Map<string, Tensor> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.byteLength < 8) throw new Error('shorter than its header length');
  const headerLength = view.getBigUint64(0, true);
  if (headerLength > BigInt(bytes.byteLength - 8))
    throw new Error('header reaches beyond the end of the file');
  const start = 8 + Number(headerLength);
  const header = headerSchema.parse(
    JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(8, start))),
  );

  const tensors = new Map<string, Tensor>();
  for (const [name, raw] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    const entry = entrySchema.parse(raw);
    if (entry.dtype !== 'F16') throw new Error(`tensor ${name}: dtype ${entry.dtype}, only F16 is read`);
    const [from, to] = entry.data_offsets;
    const size = entry.shape.reduce((product, length) => product * length, 1);
    if (to - from !== 2 * size || start + to > bytes.byteLength) {
      throw new Error(`tensor ${name}: offsets ${from} to ${to} don't fit its shape or the file`);
    }
    const data = new Float32Array(size);
    for (let i = 0; i < size; i++) {
      const value = fromHalf(view.getUint16(start + from + 2 * i, true));
      if (!Number.isFinite(value)) throw new Error(`tensor ${name}: a weight isn't finite`);
      data[i] = value;
    }
    tensors.set(name, { shape: entry.shape, data });
  }
  return tensors;
}
