/** A metadata value: a text, an unsigned 32-bit number, or a list of texts. */
type Value = string | number | readonly string[];

const UINT32 = 4;
const STRING = 8;
const ARRAY = 9;

/** Bytes of a GGUF file, version 3, little-endian, without tensors (docs/gguf.md of ggml). */
export function ggufBytes(metadata: Readonly<Record<string, Value>>): Buffer {
  const entries = Object.entries(metadata);
  return Buffer.concat([
    Buffer.from('GGUF'),
    u32(3),
    u64(0),
    u64(entries.length),
    ...entries.flatMap(([key, value]) => [text(key), typed(value)]),
  ]);
}

function typed(value: Value): Buffer {
  if (typeof value === 'string') return Buffer.concat([u32(STRING), text(value)]);
  if (typeof value === 'number') return Buffer.concat([u32(UINT32), u32(value)]);
  return Buffer.concat([u32(ARRAY), u32(STRING), u64(value.length), ...value.map(text)]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
