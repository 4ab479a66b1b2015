import { createHash } from 'node:crypto';
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import type { Digest } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { writeError } from '../../core/files.js';

const BUFFER_BYTES = 1 << 18;

export interface WrittenFile {
  readonly size: number;
  readonly digest: Digest;
}

/** A new file that is written from its beginning to its end, in bounded memory; its digest is known at the end. */
export class HashedFile {
  readonly #path: string;
  readonly #file: number;
  readonly #hash = createHash('sha256');
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #filled = 0;
  #size = 0;
  #open = true;

  /** @throws {BoundbookError} FILE_EXISTS, FILE_UNWRITABLE, DISK_FULL. */
  constructor(path: string, mode = 0o644) {
    this.#path = path;
    try {
      this.#file = openSync(path, 'wx', mode);
    } catch (error) {
      throw writeError(path, error);
    }
  }

  /** Bytes written so far. */
  get size(): number {
    return this.#size;
  }

  /** @throws {BoundbookError} DISK_FULL, FILE_UNWRITABLE. */
  write(data: Uint8Array | string): void {
    const bytes = typeof data === 'string' ? Buffer.from(data, 'utf8') : data;
    this.#size += bytes.length;
    if (this.#filled + bytes.length > BUFFER_BYTES) this.#flush();
    if (bytes.length > BUFFER_BYTES) {
      this.#put(bytes);
      return;
    }
    this.#buffer.set(bytes, this.#filled);
    this.#filled += bytes.length;
  }

  /** Ends the file: it is durable when this returns. @throws {BoundbookError} DISK_FULL, FILE_UNWRITABLE. */
  finish(): WrittenFile {
    this.#flush();
    try {
      fsyncSync(this.#file);
    } catch (error) {
      throw writeError(this.#path, error);
    }
    this.abandon();
    return { size: this.#size, digest: `sha256:${this.#hash.digest('hex')}` };
  }

  /** Closes the file as it is; nothing after {@link finish}. */
  abandon(): void {
    if (!this.#open) return;
    this.#open = false;
    closeSync(this.#file);
  }

  #flush(): void {
    if (this.#filled > 0) this.#put(this.#buffer.subarray(0, this.#filled));
    this.#filled = 0;
  }

  #put(bytes: Uint8Array): void {
    if (!this.#open) throw new BoundbookError('INTERNAL', `${this.#path} was written after its end`);
    this.#hash.update(bytes);
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at);
    } catch (error) {
      throw writeError(this.#path, error);
    }
  }
}
