import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { writeError } from '../../core/files.js';
import type { ObjectFolder } from '../../ledger/objects.js';
import { MAX_INLINE_BYTES } from '../../ledger/schema.js';
import type { Evidence } from './adapter.js';
import { damageCode } from './room-damage.js';

/** An object that is larger cannot be looked at in a bundle. */
const MAX_KEPT_BYTES = 2 ** 28;
const TAIL_BYTES = 500;
const BLOCK_BYTES = 1 << 20;

/** How much of a stream is kept under a declared `output_bytes`. */
export function keptBytes(declared: number): number {
  return Math.min(declared, MAX_KEPT_BYTES);
}

/**
 * The first bytes of a stream: as long as they fit into the ledger in memory, then in a file without a name, which the
 * process that writes the stream cannot reach. What comes beyond the cap is counted and dropped, so that the writer never
 * blocks and neither memory nor disk grows with it.
 */
export class Spool {
  readonly #path: string;
  readonly #cap: number;
  #held: Buffer[] = [];
  #file: number | null = null;
  #fault: unknown = null;
  #tail = Buffer.alloc(0);
  #seen = 0;
  #kept = 0;

  /** @param path where the file is made, and at once unlinked, when one is needed */
  constructor(path: string, cap: number) {
    this.#path = path;
    this.#cap = keptBytes(cap);
  }

  /** Bytes that the stream had. */
  get seen(): number {
    return this.#seen;
  }

  /** Bytes of them that are kept. */
  get kept(): number {
    return this.#kept;
  }

  /** Why it could not be kept, when somebody took away the folder that it is kept in. */
  get lost(): string | null {
    const code = this.#fault === null ? null : damageCode(this.#fault);
    return code === null ? null : `the folder of the attempt cannot be used (${code})`;
  }

  readonly take = (chunk: Buffer): void => {
    this.#seen += chunk.length;
    const joined = chunk.length >= TAIL_BYTES ? chunk : Buffer.concat([this.#tail, chunk]);
    // A copy: a view would keep the whole chunk.
    this.#tail = Buffer.from(joined.subarray(-TAIL_BYTES));
    if (this.#kept >= this.#cap || this.#fault !== null) return;
    const kept = chunk.subarray(0, this.#cap - this.#kept);
    try {
      this.#keep(kept);
      this.#kept += kept.length;
    } catch (error) {
      this.#fault = error;
    }
  };

  /** The end of the stream, for people. */
  text(): string {
    return this.#tail.toString('utf8');
  }

  /**
   * What is kept, as evidence: bytes, or an object that is durable; null for an empty stream, and for one that was
   * {@link lost}. To be called once, at the end.
   *
   * @throws {BoundbookError} DISK_FULL or FILE_UNWRITABLE, also for what could not be written before.
   */
  async evidence(objects: ObjectFolder): Promise<Evidence | null> {
    try {
      if (this.lost !== null) return null;
      if (this.#fault !== null) throw writeError(this.#path, this.#fault);
      if (this.#file === null) return this.#kept === 0 ? null : Buffer.concat(this.#held);
      return { stored: await objects.writeStream(blocksOf(this.#file)), size: this.#kept };
    } finally {
      this.close();
    }
  }

  /** Forgets everything. */
  close(): void {
    this.#held = [];
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #keep(bytes: Buffer): void {
    if (this.#file === null && this.#kept + bytes.length <= MAX_INLINE_BYTES) {
      this.#held.push(Buffer.from(bytes));
      return;
    }
    if (this.#file === null) {
      this.#file = openSync(this.#path, 'wx+');
      unlinkSync(this.#path);
      writeAll(this.#file, Buffer.concat(this.#held), 0);
      this.#held = [];
    }
    writeAll(this.#file, bytes, this.#kept);
  }
}

function writeAll(file: number, bytes: Buffer, position: number): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at, position + at);
}

/** The content of an open file from its beginning, in blocks that are each valid until the next is asked for. */
export function* blocksOf(file: number): Generator<Buffer> {
  const block = Buffer.alloc(BLOCK_BYTES);
  for (let position = 0; ; ) {
    const read = readSync(file, block, 0, block.length, position);
    if (read === 0) return;
    position += read;
    yield block.subarray(0, read);
  }
}
