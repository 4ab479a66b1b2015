import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { systemCode } from '../../core/errors.js';

/** A folder by its path, which must be no link itself, or one that is open. */
export type Folder = string | number;

export type Collected =
  | {
      readonly kind: 'file';
      readonly bytes: Buffer;
      /** Of its content and of its inode, in milliseconds since 1970. */
      readonly modifiedMs: number;
      readonly changedMs: number;
    }
  | { readonly kind: 'absent' }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'too_large'; readonly size: number };

type Refusal = Exclude<Collected, { kind: 'file' }>;

const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const FOLDER = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_DIRECTORY;

/**
 * Reads a file that a hostile process left inside a folder: a regular file of its own, reached without any link
 * (DESIGN §13). Call it only when the process and its offspring are gone.
 *
 * @param name relative path of plain components, as the protocol declares it
 */
export function collectFile(folder: Folder, name: string, maxBytes: number): Collected {
  const opened = openInside(folder, name, maxBytes);
  if (opened.kind !== 'open') return opened;
  try {
    return readPart(opened.file, name, 0, opened.size);
  } finally {
    closeSync(opened.file);
  }
}

/** The last bytes of such a file, and how many it has; null unless it is one. */
export function collectEnd(
  folder: Folder,
  name: string,
  maxBytes: number,
): { readonly bytes: Buffer; readonly size: number } | null {
  const opened = openInside(folder, name, Number.POSITIVE_INFINITY);
  if (opened.kind !== 'open') return null;
  try {
    const { file, size } = opened;
    const read = readPart(file, name, Math.max(0, size - maxBytes), Math.min(size, maxBytes));
    return read.kind === 'file' ? { bytes: read.bytes, size } : null;
  } finally {
    closeSync(opened.file);
  }
}

/** The same without reading; the caller closes the file. */
export function openInside(
  folder: Folder,
  name: string,
  maxBytes: number,
): Refusal | { readonly kind: 'open'; readonly file: number; readonly size: number } {
  const components = name.split('/');
  const last = components.pop() ?? '';
  const within = openFolders(folder, components);
  if (typeof within !== 'number') return within;
  try {
    return openFile(within, last, name, maxBytes);
  } finally {
    if (within !== folder) closeSync(within);
  }
}

/** Goes down from folder to folder, each opened in the one before, so that no link is followed and none can slip in. */
function openFolders(folder: Folder, names: readonly string[]): number | Refusal {
  const steps = typeof folder === 'number' ? names : [folder, ...names];
  let at = typeof folder === 'number' ? folder : null;
  for (const step of steps) {
    const above = at;
    try {
      at = openSync(above === null ? step : `/proc/self/fd/${above}/${step}`, FOLDER);
    } catch (error) {
      const code = systemCode(error);
      if (code === 'ENOENT') return { kind: 'absent' };
      const what = above === null ? 'the folder' : step;
      const isOther = code === 'ENOTDIR' || code === 'ELOOP';
      return {
        kind: 'refused',
        reason: `${what} ${isOther ? 'is no folder' : `cannot be opened (${code})`}`,
      };
    } finally {
      if (above !== null && above !== folder) closeSync(above);
    }
  }
  return at ?? -1;
}

function openFile(
  folder: number,
  file: string,
  name: string,
  maxBytes: number,
): Refusal | { readonly kind: 'open'; readonly file: number; readonly size: number } {
  let opened: number;
  try {
    opened = openSync(`/proc/self/fd/${folder}/${file}`, READ);
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT') return { kind: 'absent' };
    return {
      kind: 'refused',
      reason: code === 'ELOOP' ? `${name} is a link` : `${name} cannot be opened (${code})`,
    };
  }
  const stat = fstatSync(opened);
  const refusal = refusalOf(stat, name, maxBytes);
  if (refusal === null) return { kind: 'open', file: opened, size: stat.size };
  closeSync(opened);
  return refusal;
}

function refusalOf(stat: Stats, name: string, maxBytes: number): Refusal | null {
  if (!stat.isFile()) return { kind: 'refused', reason: `${name} is not a regular file` };
  if (stat.nlink !== 1) return { kind: 'refused', reason: `${name} has a second name (hard link)` };
  return stat.size > maxBytes ? { kind: 'too_large', size: stat.size } : null;
}

function readPart(file: number, name: string, from: number, size: number): Collected {
  const { mtimeMs, ctimeMs } = fstatSync(file);
  const bytes = Buffer.alloc(size);
  let length = 0;
  while (length < size) {
    const read = readSync(file, bytes, length, size - length, from + length);
    if (read === 0) return { kind: 'refused', reason: `${name} became shorter while it was read` };
    length += read;
  }
  return { kind: 'file', bytes, modifiedMs: Math.floor(mtimeMs), changedMs: Math.floor(ctimeMs) };
}
