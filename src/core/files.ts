import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { link, lstat, mkdir, open, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { BoundbookError, systemCode } from './errors.js';

/**
 * Reads a regular file whole. With `followLinks: false` a name that is a link is not regular.
 *
 * @throws {BoundbookError} FILE_NOT_FOUND, FILE_NOT_REGULAR, FILE_UNREADABLE, FILE_TOO_LARGE, FILE_EMPTY (unless
 * `allowEmpty`), each naming the file.
 */
export async function readFileBounded(
  path: string,
  limits: { readonly maxBytes: number; readonly allowEmpty?: boolean; readonly followLinks?: boolean },
): Promise<Buffer> {
  const links = limits.followLinks === false ? constants.O_NOFOLLOW : 0;
  // O_NONBLOCK: opening a named pipe must not wait for a writer that never comes.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | links).catch((error: unknown) => {
    throw readError(path, error);
  });
  try {
    const stat = await file.stat();
    if (!stat.isFile()) {
      throw new BoundbookError(
        'FILE_NOT_REGULAR',
        `${path} is ${stat.isDirectory() ? 'a folder' : 'not a regular file'}`,
        {
          hint: 'Name a regular file.',
        },
      );
    }
    if (stat.size > limits.maxBytes) {
      throw new BoundbookError(
        'FILE_TOO_LARGE',
        `${path} has ${stat.size} bytes; at most ${limits.maxBytes} are read`,
        {
          hint: 'Check that this is the file you meant.',
        },
      );
    }
    if (stat.size === 0 && limits.allowEmpty !== true) {
      throw new BoundbookError('FILE_EMPTY', `${path} is empty (0 bytes)`, {
        hint: 'A file of zero bytes is often what an interrupted copy or a power cut leaves. Restore it.',
      });
    }
    const bytes = Buffer.alloc(stat.size);
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    if (length !== bytes.length) {
      throw new BoundbookError('FILE_CHANGED', `${path} became shorter while it was read`);
    }
    return bytes;
  } catch (error) {
    throw error instanceof BoundbookError ? error : readError(path, error);
  } finally {
    await file.close();
  }
}

/** Decodes UTF-8 strictly. @throws {BoundbookError} TEXT_NOT_UTF8 with the offset of the first bad byte. */
export function decodeUtf8(bytes: Uint8Array, name: string): string {
  // A decoder of its own for each of many small texts takes longer than the texts.
  if (bytes.length <= SMALL_TEXT_BYTES && isUtf8(bytes)) {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    const offset = firstInvalidByte(bytes);
    throw new BoundbookError('TEXT_NOT_UTF8', `${name} is not UTF-8 text (byte ${offset})`, {
      hint: 'Save the file as UTF-8 without a byte-order mark.',
      evidence: { offset },
      cause: error,
    });
  }
}

const SMALL_TEXT_BYTES = 1 << 20;

/** The offset of the first byte at which strict UTF-8 decoding fails. */
function firstInvalidByte(bytes: Uint8Array): number {
  let low = 0;
  let high = bytes.length;
  // A longer prefix fails whenever a shorter one does, so the longest one that decodes can be bisected.
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (decodesAsPrefix(bytes.subarray(0, middle))) low = middle;
    else high = middle - 1;
  }
  return low;
}

function decodesAsPrefix(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}

/**
 * Writes a file so that a power cut leaves either the old state or the new one: temporary name, fsync, rename,
 * fsync of the folder. Replaces what was there.
 *
 * @throws {BoundbookError} FILE_UNWRITABLE or DISK_FULL.
 */
export async function writeFileDurable(
  path: string,
  bytes: Uint8Array | string,
  mode = 0o644,
): Promise<void> {
  const temporary = temporaryName(path);
  try {
    await writeAndSync(temporary, bytes, mode);
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw writeError(path, error);
  }
}

/**
 * Like {@link writeFileDurable}, but the name must be new: a name that appears in the meantime is never replaced.
 * A large text can be handed over in pieces.
 *
 * @throws {BoundbookError} FILE_EXISTS, FILE_UNWRITABLE or DISK_FULL.
 */
export async function createFileDurable(
  path: string,
  bytes: Uint8Array | string | Iterable<string>,
  mode = 0o644,
): Promise<void> {
  const temporary = temporaryName(path);
  try {
    await writeAndSync(temporary, bytes, mode);
    // A hard link fails when the name exists, where a rename would replace it.
    await link(temporary, path);
    await unlink(temporary);
    await syncFolder(dirname(path));
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw writeError(path, error);
  }
}

/**
 * Creates a folder and its parents, and makes the new names durable. Level by level: Node's own recursive form never
 * returns where the system says ENOENT although the parent exists, as in /proc.
 *
 * @throws {BoundbookError} FILE_UNWRITABLE, FILE_EXISTS when a file is in the way, DISK_FULL.
 */
export async function makeFolder(path: string): Promise<void> {
  const missing: string[] = [];
  for (let at = path; !(await isFolder(at)); at = dirname(at)) {
    if (at === dirname(at)) break;
    missing.push(at);
  }
  for (const folder of missing.reverse()) {
    try {
      await mkdir(folder);
      await syncFolder(dirname(folder));
    } catch (error) {
      // Another process may make the same folder at the same time.
      if (systemCode(error) !== 'EEXIST' || !(await isFolder(folder))) throw writeError(folder, error);
    }
  }
}

/** Whether a folder lies there, links followed. Errors other than absence are thrown. */
export async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw readError(path, error);
  }
}

/** Makes the names in a folder durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Whether a name exists, links not followed. Errors other than absence are thrown. */
export async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw readError(path, error);
  }
}

function temporaryName(path: string): string {
  return join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);
}

async function writeAndSync(
  path: string,
  bytes: Uint8Array | string | Iterable<string>,
  mode: number,
): Promise<void> {
  const file = await open(path, 'wx', mode);
  try {
    if (typeof bytes === 'string' || bytes instanceof Uint8Array) await file.writeFile(bytes);
    else for (const piece of bytes) await file.appendFile(piece);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Turns a system error met while reading into a typed one. */
export function readError(path: string, error: unknown): BoundbookError {
  if (error instanceof BoundbookError) return error;
  const code = systemCode(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    return new BoundbookError('FILE_NOT_FOUND', `${path} does not exist`, {
      hint: 'Check the path; relative paths start at the workspace (-C, else the current folder).',
      cause: error,
    });
  }
  if (code === 'EISDIR' || code === 'ELOOP') {
    return new BoundbookError('FILE_NOT_REGULAR', `${path} is a ${code === 'ELOOP' ? 'link' : 'folder'}`, {
      hint: 'Name a regular file.',
      cause: error,
    });
  }
  return new BoundbookError('FILE_UNREADABLE', `${path} cannot be read (${code ?? 'unknown error'})`, {
    hint:
      code === 'EACCES' || code === 'EPERM'
        ? 'Give this user the right to read it.'
        : 'Check the disk and the path.',
    cause: error,
  });
}

/** Turns a system error met while writing into a typed one. */
export function writeError(path: string, error: unknown): BoundbookError {
  if (error instanceof BoundbookError) return error;
  const code = systemCode(error);
  if (code === 'EEXIST') {
    return new BoundbookError('FILE_EXISTS', `${path} exists already`, {
      hint: 'It is never overwritten. Choose another name, or move the old file away if it is not needed.',
      cause: error,
    });
  }
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new BoundbookError('DISK_FULL', `no space left to write ${path}`, {
      hint: 'Free some space and run the command again; nothing that was recorded is lost.',
      cause: error,
    });
  }
  if (code === 'EFBIG') {
    return new BoundbookError('FILE_UNWRITABLE', `${path} would be larger than files may be here (EFBIG)`, {
      hint: 'Raise the limit of this user or shell (ulimit -f), or write to a file system that takes larger files.',
      cause: error,
    });
  }
  return new BoundbookError('FILE_UNWRITABLE', `${path} cannot be written (${code ?? 'unknown error'})`, {
    hint: 'Check that the folder exists and that this user may write there.',
    cause: error,
  });
}
