import { randomBytes } from 'node:crypto';
import { type Digest, hexOf } from '../core/digest.js';

const KEY_BYTES = 32;
const MAX_LOAD = 0.8;
const GROWTH = 1.6;

/**
 * Numbers by digest, in about 60 bytes each: a map of a million digests as strings takes three times as much. A place is
 * found with a secret of the process, so that nobody can choose digests that crowd one place.
 */
export class DigestTable {
  readonly #secret = randomBytes(8);
  readonly #key = Buffer.alloc(KEY_BYTES);
  #capacity = 1024;
  #keys = Buffer.alloc(this.#capacity * KEY_BYTES);
  /** The number plus one; 0 for an empty place. */
  #values = new Float64Array(this.#capacity);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** undefined when the digest is not in the table. */
  get(digest: Digest): number | undefined {
    this.#key.write(hexOf(digest), 'hex');
    const value = this.#values[this.#place(this.#key, 0)] ?? 0;
    return value === 0 ? undefined : value - 1;
  }

  /** @param value a whole number from 0 */
  set(digest: Digest, value: number): void {
    this.#key.write(hexOf(digest), 'hex');
    let place = this.#place(this.#key, 0);
    if (this.#values[place] === 0) {
      if (this.#size + 1 > this.#capacity * MAX_LOAD) {
        this.#grow();
        place = this.#place(this.#key, 0);
      }
      this.#key.copy(this.#keys, place * KEY_BYTES);
      this.#size++;
    }
    this.#values[place] = value + 1;
  }

  /** Where a key lies, or the empty place where it would. */
  #place(keys: Buffer, at: number): number {
    const capacity = this.#capacity;
    let place = this.#hash(keys, at) % capacity;
    while (this.#values[place] !== 0 && !this.#isAt(place, keys, at)) place = (place + 1) % capacity;
    return place;
  }

  #hash(keys: Buffer, at: number): number {
    const a = keys.readUInt32LE(at) ^ this.#secret.readUInt32LE(0);
    const b = keys.readUInt32LE(at + 4) ^ this.#secret.readUInt32LE(4);
    const mixed = Math.imul(a ^ (a >>> 15), 0x2c1b3c6d) ^ Math.imul(b ^ (b >>> 13), 0x297a2d39);
    return (mixed ^ (mixed >>> 16)) >>> 0;
  }

  #isAt(place: number, keys: Buffer, at: number): boolean {
    const from = place * KEY_BYTES;
    return keys.compare(this.#keys, from, from + KEY_BYTES, at, at + KEY_BYTES) === 0;
  }

  #grow(): void {
    const [keys, values] = [this.#keys, this.#values];
    this.#capacity = Math.ceil(this.#capacity * GROWTH);
    this.#keys = Buffer.alloc(this.#capacity * KEY_BYTES);
    this.#values = new Float64Array(this.#capacity);
    for (const [i, value] of values.entries()) {
      if (value === 0) continue;
      const place = this.#place(keys, i * KEY_BYTES);
      keys.copy(this.#keys, place * KEY_BYTES, i * KEY_BYTES, (i + 1) * KEY_BYTES);
      this.#values[place] = value;
    }
  }
}
