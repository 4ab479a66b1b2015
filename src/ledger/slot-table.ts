/** How the records of a table are spelled, behind the slot's id. */
export interface RecordForm<T> {
  /** A multiple of 4. */
  readonly bytes: number;
  readonly write: (bytes: Buffer, at: number, record: T) => void;
  readonly read: (bytes: Buffer, at: number, slot: string) => T;
  /** The slot's number in the plan, without the rest. */
  readonly readIndex: (bytes: Buffer, at: number) => number;
}

/** Bytes of a slot id, which comes first in a record. */
const ID_BYTES = 16;

/** Records are kept in chunks of so many, so that growing copies nothing. */
export const CHUNK_RECORDS = 4096;

interface Chunk {
  readonly bytes: Buffer;
  /** The same bytes; ids are compared word by word. */
  readonly words: Uint32Array;
}

/**
 * One record of fixed length for each of many slots, in the order in which they came; nothing is changed or removed. The
 * records are the form in which the state cache keeps them, too. Ids are hash values, so that their first word serves as
 * one.
 */
export class SlotTable<T> {
  readonly #form: RecordForm<T>;
  readonly #recordBytes: number;
  readonly #chunks: Chunk[] = [];
  /** Open addressing; record number + 1, or 0 where nothing is. */
  #index = new Uint32Array(1024);
  #size = 0;
  readonly #id = Buffer.from(new ArrayBuffer(ID_BYTES));
  readonly #idWords = new Uint32Array(this.#id.buffer);

  constructor(form: RecordForm<T>) {
    this.#form = form;
    this.#recordBytes = ID_BYTES + form.bytes;
  }

  /** Bytes of a record with its slot's id. */
  get recordBytes(): number {
    return this.#recordBytes;
  }

  /** Number of slots. */
  get size(): number {
    return this.#size;
  }

  /** @param slot 32 hexadecimal digits; not in the table yet */
  add(slot: string, record: T): void {
    const { bytes } = this.#room();
    const at = (this.#size % CHUNK_RECORDS) * this.#recordBytes;
    bytes.write(slot, at, 'hex');
    this.#form.write(bytes, at + ID_BYTES, record);
    this.#take(1);
  }

  has(slot: string): boolean {
    return this.#find(slot) >= 0;
  }

  get(slot: string): T | undefined {
    const record = this.#find(slot);
    return record < 0 ? undefined : this.#at(record);
  }

  *values(): Generator<T> {
    for (let record = 0; record < this.#size; record++) yield this.#at(record);
  }

  /** Numbers of the slots in the plan. */
  *indices(): Generator<number> {
    for (let record = 0; record < this.#size; record++) {
      const at = (record % CHUNK_RECORDS) * this.#recordBytes;
      yield this.#form.readIndex(this.#chunkOf(record).bytes, at + ID_BYTES);
    }
  }

  /** Ids of the slots that came after the first `count` ones. */
  *idsAfter(count: number): Generator<string> {
    for (let record = count; record < this.#size; record++) {
      const at = (record % CHUNK_RECORDS) * this.#recordBytes;
      yield this.#chunkOf(record).bytes.toString('hex', at, at + ID_BYTES);
    }
  }

  /** The records of one chunk as bytes, for as long as nothing is added; empty beyond the last one. */
  chunk(number: number): Buffer {
    const records = Math.min(CHUNK_RECORDS, this.#size - number * CHUNK_RECORDS);
    return (
      this.#chunks[number]?.bytes.subarray(0, Math.max(0, records) * this.#recordBytes) ?? Buffer.alloc(0)
    );
  }

  /** Takes over what {@link chunk} gave: every chunk in order, all but the last of them full. */
  addChunk(records: Uint8Array): void {
    const count = records.length / this.#recordBytes;
    if (!Number.isInteger(count) || count > CHUNK_RECORDS || this.#size % CHUNK_RECORDS !== 0) {
      throw new RangeError(`${records.length} bytes are no chunk after ${this.#size} records`);
    }
    this.#room().bytes.set(records);
    this.#take(count);
  }

  /** The chunk that takes the next record. */
  #room(): Chunk {
    const chunk = this.#chunks[Math.floor(this.#size / CHUNK_RECORDS)];
    if (chunk !== undefined) return chunk;
    const buffer = new ArrayBuffer(CHUNK_RECORDS * this.#recordBytes);
    const made = { bytes: Buffer.from(buffer), words: new Uint32Array(buffer) };
    this.#chunks.push(made);
    return made;
  }

  /** Counts and indexes records that were written behind the last one. */
  #take(count: number): void {
    const first = this.#size;
    this.#size += count;
    if (2 * this.#size > this.#index.length) this.#reindex();
    else for (let record = first; record < this.#size; record++) this.#enter(record);
  }

  #reindex(): void {
    let length = this.#index.length;
    while (2 * this.#size > length) length *= 2;
    this.#index = new Uint32Array(length);
    for (let record = 0; record < this.#size; record++) this.#enter(record);
  }

  #enter(record: number): void {
    const mask = this.#index.length - 1;
    const word = this.#chunkOf(record).words[(record % CHUNK_RECORDS) * (this.#recordBytes / 4)] ?? 0;
    let at = word & mask;
    while (this.#index[at] !== 0) at = (at + 1) & mask;
    this.#index[at] = record + 1;
  }

  /** Number of a slot's record; -1 when it has none. */
  #find(slot: string): number {
    if (this.#size === 0 || slot.length !== 2 * ID_BYTES || this.#id.write(slot, 'hex') !== ID_BYTES)
      return -1;
    const mask = this.#index.length - 1;
    for (let at = (this.#idWords[0] ?? 0) & mask; ; at = (at + 1) & mask) {
      const record = (this.#index[at] ?? 0) - 1;
      if (record < 0 || this.#isId(record)) return record;
    }
  }

  #isId(record: number): boolean {
    const { words } = this.#chunkOf(record);
    const at = (record % CHUNK_RECORDS) * (this.#recordBytes / 4);
    const id = this.#idWords;
    return (
      words[at] === id[0] && words[at + 1] === id[1] && words[at + 2] === id[2] && words[at + 3] === id[3]
    );
  }

  #at(record: number): T {
    const at = (record % CHUNK_RECORDS) * this.#recordBytes;
    const { bytes } = this.#chunkOf(record);
    return this.#form.read(bytes, at + ID_BYTES, bytes.toString('hex', at, at + ID_BYTES));
  }

  #chunkOf(record: number): Chunk {
    const chunk = this.#chunks[Math.floor(record / CHUNK_RECORDS)];
    if (chunk === undefined) throw new RangeError(`no record ${record} in ${this.#size}`);
    return chunk;
  }
}
