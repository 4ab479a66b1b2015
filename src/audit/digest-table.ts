import { randomBytes } from 'node:crypto';
import type { Digest } from '../core/digest.js';

const KEY_WORDS = 8;
const MAX_LOAD = 0.8;
const GROWTH = 1.6;

/**
 * Numbers by digest, in about 60 bytes each: a map of a million digests as strings takes three times as much. A place is
 * found with a secret of the process, so that nobody can choose digests that crowd one place.
 */
export class DigestTable {
  readonly #secret: readonly [number, number];
  readonly #key = new Uint32Array(KEY_WORDS);
  #capacity = 1024;
  #keys = new Uint32Array(this.#capacity * KEY_WORDS);
  /** The number plus one; 0 for an empty place. */
  #values = new Float64Array(this.#capacity);
  #size = 0;

  constructor() {
    const secret = randomBytes(8);
    this.#secret = [secret.readUInt32LE(0), secret.readUInt32LE(4)];
  }

  get size(): number {
    return this.#size;
  }

  /** undefined when the digest is not in the table. */
  get(digest: Digest): number | undefined {
    readKey(digest, this.#key);
    const value = this.#values[this.#place(this.#key, 0)] ?? 0;
    return value === 0 ? undefined : value - 1;
  }

  /** @param value a whole number from 0 */
  set(digest: Digest, value: number): void {
    readKey(digest, this.#key);
    let place = this.#place(this.#key, 0);
    if (this.#values[place] === 0) {
      if (this.#size + 1 > this.#capacity * MAX_LOAD) {
        this.#grow();
        place = this.#place(this.#key, 0);
      }
      this.#keys.set(this.#key, place * KEY_WORDS);
      this.#size++;
    }
    this.#values[place] = value + 1;
  }

  /** Where a key lies, or the empty place where it would. */
  #place(keys: Uint32Array, at: number): number {
    const capacity = this.#capacity;
    let place = this.#hash(keys, at) % capacity;
    while (this.#values[place] !== 0 && !this.#isAt(place, keys, at)) place = (place + 1) % capacity;
    return place;
  }

  #hash(keys: Uint32Array, at: number): number {
    const a = (keys[at] ?? 0) ^ this.#secret[0];
    const b = (keys[at + 1] ?? 0) ^ this.#secret[1];
    const mixed = Math.imul(a ^ (a >>> 15), 0x2c1b3c6d) ^ Math.imul(b ^ (b >>> 13), 0x297a2d39);
    return (mixed ^ (mixed >>> 16)) >>> 0;
  }

  #isAt(place: number, keys: Uint32Array, at: number): boolean {
    const from = place * KEY_WORDS;
    for (let i = 0; i < KEY_WORDS; i++) if (this.#keys[from + i] !== keys[at + i]) return false;
    return true;
  }

  #grow(): void {
    const [keys, values] = [this.#keys, this.#values];
    this.#capacity = Math.ceil(this.#capacity * GROWTH);
    this.#keys = new Uint32Array(this.#capacity * KEY_WORDS);
    this.#values = new Float64Array(this.#capacity);
    for (const [i, value] of values.entries()) {
      if (value === 0) continue;
      const place = this.#place(keys, i * KEY_WORDS);
      this.#keys.set(keys.subarray(i * KEY_WORDS, (i + 1) * KEY_WORDS), place * KEY_WORDS);
      this.#values[place] = value;
    }
  }
}

const FIRST_DIGIT = 'sha256:'.length;

/** The hash of a digest as words: cheaper than to have its digits read by native code. */
function readKey(digest: Digest, into: Uint32Array): void {
  for (let i = 0, at = FIRST_DIGIT; i < KEY_WORDS; i++) {
    let word = 0;
    for (let digit = 0; digit < 8; digit++, at++) {
      const code = digest.charCodeAt(at);
      word = (word << 4) | (code <= 0x39 ? code - 0x30 : code - 0x57);
    }
    into[i] = word;
  }
}
