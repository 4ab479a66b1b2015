import { createHash } from 'node:crypto';
import { readSync } from 'node:fs';
import type { Digest } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { readError } from '../../core/files.js';

const CHUNK_BYTES = 1 << 20;
const NEAR_BYTES = 80;

/** One file of a bundle: a stretch of an open file. */
export interface Region {
  /** Path in the bundle, for messages. */
  readonly path: string;
  readonly file: number;
  readonly start: number;
  readonly size: number;
}

/**
 * Fills a buffer from a place in a region.
 *
 * @returns how many bytes were read: fewer than the buffer has at the region's end only
 * @throws {BoundbookError} FILE_CHANGED when the file became shorter; FILE_UNREADABLE.
 */
export function readRegion({ path, file, start, size }: Region, at: number, into: Buffer): number {
  const due = Math.min(into.length, size - at);
  let filled = 0;
  while (filled < due) {
    let count: number;
    try {
      count = readSync(file, into, filled, due - filled, start + at + filled);
    } catch (error) {
      throw readError(path, error);
    }
    if (count === 0) throw new BoundbookError('FILE_CHANGED', `${path} became shorter while it was read`);
    filled += count;
  }
  return filled;
}

/** The bytes of a small region. @throws {BoundbookError} FILE_TOO_LARGE, and as {@link readRegion}. */
export function readWhole(region: Region, maxBytes: number): Buffer {
  const { path, size } = region;
  if (size > maxBytes) {
    throw new BoundbookError('FILE_TOO_LARGE', `${path} has ${size} bytes; at most ${maxBytes} are read`);
  }
  const bytes = Buffer.alloc(size);
  readRegion(region, 0, bytes);
  return bytes;
}

/** The digest of a region, read in pieces. @throws {BoundbookError} as {@link readRegion}. */
export function digestOfRegion(region: Region): Digest {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(1, region.size)));
  for (let at = 0; at < region.size; ) {
    const count = readRegion(region, at, buffer);
    hash.update(count === buffer.length ? buffer : buffer.subarray(0, count));
    at += count;
  }
  return `sha256:${hash.digest('hex')}`;
}

/** Reads a region from its beginning to its end in large pieces. */
export class RegionCursor {
  readonly #region: Region;
  readonly #buffer: Buffer;
  /** Position of the buffer's first byte. */
  #from = 0;
  /** Bytes of the buffer that hold something. */
  #filled = 0;
  /** The next byte, in the buffer. */
  #next = 0;

  constructor(region: Region, chunkBytes = CHUNK_BYTES) {
    this.#region = region;
    this.#buffer = Buffer.allocUnsafe(chunkBytes);
  }

  /** Position of the next byte. */
  get position(): number {
    return this.#from + this.#next;
  }

  /** Bytes that are left. */
  get left(): number {
    return this.#region.size - this.position;
  }

  /**
   * The bytes up to the next line feed, without it, which is passed over: a view that is valid until the next call. null
   * when there is none among the next `maxBytes` + 1 bytes.
   *
   * @param maxBytes less than half a chunk
   */
  line(maxBytes: number): Buffer | null {
    let end = this.#lineEnd(maxBytes);
    if (end === -1 && this.#filled - this.#next <= maxBytes && this.#refill()) end = this.#lineEnd(maxBytes);
    if (end === -1) return null;
    const line = this.#buffer.subarray(this.#next, end);
    this.#next = end + 1;
    return line;
  }

  /** Passes over everything up to and with the next line feed; false when the region ends before one. */
  skipLine(): boolean {
    do {
      const end = this.#buffer.subarray(0, this.#filled).indexOf(0x0a, this.#next);
      this.#next = end === -1 ? this.#filled : end + 1;
      if (end !== -1) return true;
    } while (this.#refill());
    return false;
  }

  /** The next `length` bytes, as a copy; null when fewer are left. */
  take(length: number): Buffer | null {
    if (this.left < length) return null;
    if (this.#next + length <= this.#filled) {
      const bytes = Buffer.allocUnsafe(length);
      this.#buffer.copy(bytes, 0, this.#next, this.#next + length);
      this.#next += length;
      return bytes;
    }
    if (length <= this.#buffer.length / 2) this.#refill();
    const bytes = Buffer.allocUnsafe(length);
    const ready = this.#buffer.copy(bytes, 0, this.#next, Math.min(this.#filled, this.#next + length));
    if (ready < length) readRegion(this.#region, this.position + ready, bytes.subarray(ready));
    this.skip(length);
    return bytes;
  }

  /** Passes over bytes. */
  skip(length: number): void {
    const target = Math.min(this.#region.size, this.position + length);
    if (target <= this.#from + this.#filled) this.#next = target - this.#from;
    else {
      this.#from = target;
      this.#filled = 0;
      this.#next = 0;
    }
  }

  /** Goes back, or on, to a place. */
  rewind(place: number): void {
    this.#from = place;
    this.#filled = 0;
    this.#next = 0;
  }

  #lineEnd(maxBytes: number): number {
    const stop = Math.min(this.#filled, this.#next + maxBytes + 1);
    // Most lines of a pack are short: a look at each byte is cheaper than a call.
    const near = Math.min(stop, this.#next + NEAR_BYTES);
    for (let at = this.#next; at < near; at++) if (this.#buffer[at] === 0x0a) return at;
    return near === stop ? -1 : this.#buffer.subarray(0, stop).indexOf(0x0a, near);
  }

  /** Reads on behind what is left in the buffer; false when there is nothing more. */
  #refill(): boolean {
    this.#buffer.copy(this.#buffer, 0, this.#next, this.#filled);
    this.#from += this.#next;
    this.#filled -= this.#next;
    this.#next = 0;
    const count = readRegion(this.#region, this.#from + this.#filled, this.#buffer.subarray(this.#filled));
    this.#filled += count;
    return count > 0;
  }
}
