import { constants, type Stats } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import { createFileDurable, decodeUtf8, exists, readError } from '../core/files.js';
import { formatSignerKey, parseSignerKey, type SignerKey } from './keys.js';

/**
 * Private keys as files of one line, outside every folder that is shared: a key in a repository or beside a ledger
 * is sooner or later published with it.
 */

const KEY_MODE = 0o600;
const OTHERS = 0o077;
const MAX_BYTES = 4096;

/**
 * Writes a private key, readable by its owner only.
 *
 * @param workspace the folder the key must not lie in, if any; a git repository around the file is refused as well.
 * @throws {BoundbookError} KEY_EXPOSED, FILE_NOT_FOUND (no such folder), FILE_EXISTS, FILE_UNWRITABLE, DISK_FULL
 */
export async function writeSignerKey(path: string, key: SignerKey, workspace: string | null): Promise<void> {
  const folder = await realpath(dirname(resolve(path))).catch((error: unknown) => {
    throw readError(dirname(resolve(path)), error);
  });
  const real = join(folder, basename(path));
  await refuseSharedPlace(real, workspace);
  await createFileDurable(real, `${formatSignerKey(key)}\n`, KEY_MODE);
}

/**
 * Reads a private key that {@link writeSignerKey} wrote.
 *
 * @throws {BoundbookError} KEY_EXPOSED when others may read or write the file, or when it lies in a shared folder;
 * KEY_INVALID; FILE_NOT_FOUND, FILE_NOT_REGULAR, FILE_UNREADABLE
 */
export async function readSignerKey(path: string, workspace: string | null): Promise<SignerKey> {
  const real = await realpath(path).catch((error: unknown) => {
    throw readError(path, error);
  });
  await refuseSharedPlace(real, workspace);
  const text = decodeUtf8(await readSecret(real, path), path);
  if (!text.endsWith('\n')) {
    throw new BoundbookError('KEY_INVALID', `${path} is not a key file: it does not end with a line break`);
  }
  return parseSignerKey(text.slice(0, -1));
}

/** Reads through one descriptor, so that the file whose mode was checked is the file that is read. */
async function readSecret(real: string, path: string): Promise<Buffer> {
  const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW).catch(
    (error: unknown) => {
      throw readError(path, error);
    },
  );
  try {
    refuseOpenMode(path, await file.stat());
    const bytes = Buffer.alloc(MAX_BYTES + 1);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
    if (bytesRead > MAX_BYTES) throw new BoundbookError('KEY_INVALID', `${path} is too large for a key file`);
    return bytes.subarray(0, bytesRead);
  } catch (error) {
    throw readError(path, error);
  } finally {
    await file.close();
  }
}

function refuseOpenMode(path: string, status: Stats): void {
  if (!status.isFile()) throw new BoundbookError('FILE_NOT_REGULAR', `${path} is not a regular file`);
  const mode = status.mode & 0o777;
  if ((mode & OTHERS) === 0) return;
  throw new BoundbookError(
    'KEY_EXPOSED',
    `${path} is open to others (mode ${mode.toString(8).padStart(4, '0')})`,
    {
      hint: `Run: chmod 600 ${path}. If others had access, make a new key.`,
      evidence: { mode: mode.toString(8).padStart(4, '0') },
    },
  );
}

async function refuseSharedPlace(real: string, workspace: string | null): Promise<void> {
  if (workspace !== null) {
    const inside = await realpath(workspace).catch(() => resolve(workspace));
    const prefix = inside.endsWith(sep) ? inside : `${inside}${sep}`;
    if (real.startsWith(prefix)) refusePlace(real, `the workspace ${inside}`);
  }
  for (let folder = dirname(real); ; folder = dirname(folder)) {
    if (await isRepository(folder)) refusePlace(real, `the git repository ${folder}`);
    if (folder === dirname(folder)) return;
  }
}

/** A working tree has `.git` as folder or file; a bare repository has these three at its top. */
async function isRepository(folder: string): Promise<boolean> {
  if (await exists(join(folder, '.git'))) return true;
  const marks = ['HEAD', 'objects', 'refs'].map((name) => stat(join(folder, name)).catch(() => null));
  return (await Promise.all(marks)).every((mark) => mark !== null);
}

function refusePlace(path: string, place: string): never {
  throw new BoundbookError('KEY_EXPOSED', `the private key ${path} lies inside ${place}`, {
    hint: 'Keep private keys elsewhere, for example in ~/.config/boundbook/keys/.',
  });
}
