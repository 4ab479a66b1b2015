import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { open, rename, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Digest, digestOf, hexOf } from '../core/digest.js';
import { BoundbookError, systemCode } from '../core/errors.js';
import { makeFolder, readError, syncFolder, writeError, writeFileDurable } from '../core/files.js';

/** Content that an entry names. */
export interface LedgerObject {
  readonly digest: Digest;
  readonly bytes: Uint8Array;
}

/** Bytes with their digest. */
export function toObject(bytes: Uint8Array | string): LedgerObject {
  const data = typeof bytes === 'string' ? Buffer.from(bytes, 'utf8') : bytes;
  return { digest: digestOf(data), bytes: data };
}

/**
 * Large objects as files `objects/<2 hex>/<62 hex>`, durable under their final name before an entry names them:
 * temporary name, fsync, rename, fsync of the folder.
 */
export class ObjectFolder {
  readonly #root: string;
  /** Folders whose names this process has made durable. */
  readonly #durable = new Set<string>();

  constructor(ledgerFolder: string) {
    this.#root = join(ledgerFolder, 'objects');
  }

  pathOf(digest: Digest): string {
    const hex = hexOf(digest);
    return join(this.#root, hex.slice(0, 2), hex.slice(2));
  }

  /** @throws {BoundbookError} DISK_FULL, FILE_UNWRITABLE, or OBJECT_ALTERED when other bytes lie under the name. */
  async write(object: LedgerObject): Promise<void> {
    const path = this.pathOf(object.digest);
    await this.#makeFolder(dirname(path));
    // The name may be there without being durable yet, so the folder is synced in any case.
    if (this.read(object.digest) !== null) await syncFolder(dirname(path));
    else await writeFileDurable(path, object.bytes);
  }

  /**
   * Writes what comes in blocks, in the memory of one, durable under its digest when it returns.
   *
   * @throws {BoundbookError} as {@link write}; what `blocks` throws.
   */
  async writeStream(blocks: Iterable<Uint8Array>): Promise<Digest> {
    await this.#makeFolder(this.#root);
    const temporary = join(this.#root, `.${randomBytes(6).toString('hex')}.tmp`);
    try {
      const hash = createHash('sha256');
      const file = await open(temporary, 'wx');
      try {
        for (const block of blocks) {
          hash.update(block);
          await file.writeFile(block);
        }
        await file.sync();
      } finally {
        await file.close();
      }
      const digest: Digest = `sha256:${hash.digest('hex')}`;
      const path = this.pathOf(digest);
      await this.#makeFolder(dirname(path));
      await rename(temporary, path);
      await syncFolder(dirname(path));
      return digest;
    } catch (error) {
      await unlink(temporary).catch(() => undefined);
      throw writeError(temporary, error);
    }
  }

  /** {@link write}, done when it returns. */
  writeSync(object: LedgerObject): void {
    const path = this.pathOf(object.digest);
    const temporary = join(dirname(path), `.${randomBytes(6).toString('hex')}.tmp`);
    try {
      this.#makeFolderSync(dirname(path));
      if (this.read(object.digest) === null) {
        writeFileSync(temporary, object.bytes, { flag: 'wx', flush: true });
        renameSync(temporary, path);
      }
      syncFolderSync(dirname(path));
    } catch (error) {
      removeQuietly(temporary);
      throw writeError(path, error);
    }
  }

  /**
   * The bytes of an object, or null when there is no such file.
   *
   * @throws {BoundbookError} OBJECT_ALTERED, FILE_NOT_REGULAR or FILE_UNREADABLE.
   */
  read(digest: Digest): Buffer | null {
    const path = this.pathOf(digest);
    let file: number;
    try {
      file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return null;
      throw readError(path, error);
    }
    try {
      if (!fstatSync(file).isFile()) {
        throw new BoundbookError('FILE_NOT_REGULAR', `${path} is not a regular file`, {
          hint: 'An object is a regular file.',
        });
      }
      const bytes = readFileSync(file);
      assertContent(digest, bytes);
      return bytes;
    } catch (error) {
      throw readError(path, error);
    } finally {
      closeSync(file);
    }
  }

  /** A folder that is there may have been made just now by somebody who has not synced it yet. */
  async #makeFolder(path: string): Promise<void> {
    if (this.#durable.has(path)) return;
    try {
      await makeFolder(path);
      await syncFolder(dirname(path));
      await syncFolder(dirname(dirname(path)));
    } catch (error) {
      throw writeError(path, error);
    }
    this.#durable.add(path);
  }

  #makeFolderSync(path: string): void {
    if (this.#durable.has(path)) return;
    mkdirSync(path, { recursive: true });
    syncFolderSync(dirname(path));
    syncFolderSync(dirname(dirname(path)));
    this.#durable.add(path);
  }
}

/** @throws {BoundbookError} OBJECT_ALTERED when the bytes are not those of the digest. */
export function assertContent(digest: Digest, bytes: Uint8Array): void {
  const actual = digestOf(bytes);
  if (actual === digest) return;
  throw new BoundbookError('OBJECT_ALTERED', `the object ${digest} holds other bytes (${actual})`, {
    hint: 'The object was changed after it was recorded. Restore it from a copy.',
    evidence: { expected: digest, actual, bytes: bytes.length },
  });
}

export function syncFolderSync(path: string): void {
  const folder = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It was never made, or renamed already.
  }
}
