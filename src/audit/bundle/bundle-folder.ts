import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Digest } from '../../core/digest.js';
import { systemCode } from '../../core/errors.js';
import { writeError } from '../../core/files.js';
import { syncFolderSync } from '../../ledger/objects.js';
import { HashedFile, type WrittenFile } from './hashed-file.js';
import { type BundleIndex, formatIndex } from './index-file.js';
import { BUNDLE_FORMAT, INDEX_FILE } from './layout.js';

/** A bundle's folder while it is filled. The index is made from what was put into it. */
export class BundleFolder {
  readonly root: string;
  readonly #files = new Map<string, WrittenFile>();
  readonly #folders = new Set<string>();
  readonly #open = new Set<HashedFile>();

  /** @param root exists and is empty */
  constructor(root: string) {
    this.root = root;
  }

  /** Paths below the folder, in the order in which they were written. */
  paths(): readonly string[] {
    return [...this.#files.keys()];
  }

  /**
   * Begins a file; {@link close} ends it.
   *
   * @throws {BoundbookError} FILE_EXISTS, FILE_UNWRITABLE, DISK_FULL.
   */
  create(path: string): HashedFile {
    const file = new HashedFile(this.placeFor(path));
    this.#open.add(file);
    return file;
  }

  close(path: string, file: HashedFile): WrittenFile {
    const written = file.finish();
    this.#open.delete(file);
    this.#files.set(path, written);
    return written;
  }

  /** Writes a whole file. */
  put(path: string, bytes: Uint8Array | string): WrittenFile {
    const file = this.create(path);
    file.write(bytes);
    return this.close(path, file);
  }

  /** Takes up a file that somebody else wrote at {@link placeFor}. */
  adopt(path: string, written: WrittenFile): void {
    this.#files.set(path, written);
  }

  /** The absolute path of a new file; its folder exists then. */
  placeFor(path: string): string {
    const place = join(this.root, path);
    const folder = dirname(place);
    if (!this.#folders.has(folder)) {
      try {
        mkdirSync(folder, { recursive: true });
      } catch (error) {
        if (systemCode(error) !== 'EEXIST') throw writeError(folder, error);
      }
      for (let at = folder; at.startsWith(this.root); at = dirname(at)) this.#folders.add(at);
    }
    return place;
  }

  /**
   * Writes the index and makes every name durable.
   *
   * @returns the bundle's identity
   */
  finish(index: Omit<BundleIndex, 'format' | 'files'>): Digest {
    const files = Object.fromEntries(this.#files);
    const { digest } = this.put(INDEX_FILE, formatIndex({ ...index, format: BUNDLE_FORMAT, files }));
    try {
      for (const folder of this.#folders) syncFolderSync(folder);
    } catch (error) {
      throw writeError(this.root, error);
    }
    return digest;
  }

  /** Closes what is open, so that the folder can be removed. */
  abandon(): void {
    for (const file of this.#open) file.abandon();
    this.#open.clear();
  }
}
