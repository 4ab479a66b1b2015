import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { BoundbookError, systemCode } from '../core/errors.js';
import { makeFolder, writeError } from '../core/files.js';
import { MANIFEST_FOLDER } from './workspace.js';

const LOCK_FILE = '.lock';
const TURN_MS = 20;
const PATIENCE_MS = 30_000;

/**
 * Runs an action while no other process adds a manifest to the workspace. The lock is the kernel's, held through an
 * empty SQLite file: it ends with the process that holds it, however that one dies, so that nothing is ever left to be
 * judged stale.
 *
 * @throws {BoundbookError} WORKSPACE_BUSY after half a minute; FILE_UNWRITABLE; what the action throws.
 */
export async function withWorkspaceLock<T>(root: string, action: () => Promise<T>): Promise<T> {
  const folder = join(root, MANIFEST_FOLDER);
  await makeFolder(folder);
  const path = join(folder, LOCK_FILE);
  const database = open(path);
  try {
    await acquire(database, path);
    return await action();
  } finally {
    database.close();
  }
}

function open(path: string): Database.Database {
  try {
    // Waiting inside SQLite would block the very event loop on which a holder in this process must go on.
    return new Database(path, { timeout: 0 });
  } catch (error) {
    throw writeError(path, error);
  }
}

async function acquire(database: Database.Database, path: string): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      database.exec('BEGIN EXCLUSIVE');
      return;
    } catch (error) {
      if (systemCode(error)?.startsWith('SQLITE_BUSY') !== true) throw writeError(path, error);
      if (performance.now() > end) {
        throw new BoundbookError(
          'WORKSPACE_BUSY',
          'another process has been writing a manifest for half a minute',
          {
            hint: 'Wait for it to end, then run the command again.',
            cause: error,
          },
        );
      }
    }
    await pause(TURN_MS);
  }
}
