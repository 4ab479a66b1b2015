import { randomBytes } from 'node:crypto';
import { closeSync, constants, fsyncSync, linkSync, openSync, unlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { writeError } from './files.js';

/**
 * `createFileDurable`, done when it returns: for a file that must be durable inside a database transaction.
 *
 * @throws {BoundbookError} FILE_EXISTS, FILE_UNWRITABLE or DISK_FULL.
 */
export function createFileDurableSync(path: string, bytes: Uint8Array, mode = 0o644): void {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    writeFileSync(temporary, bytes, { flag: 'wx', mode, flush: true });
    // A hard link fails when the name exists, where a rename would replace it.
    linkSync(temporary, path);
    unlinkSync(temporary);
    syncFolder(dirname(path));
  } catch (error) {
    removeQuietly(temporary);
    throw writeError(path, error);
  }
}

function syncFolder(path: string): void {
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
    // Never made, or gone already.
  }
}
