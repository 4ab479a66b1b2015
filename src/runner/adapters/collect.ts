import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { systemCode } from '../../core/errors.js';

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

/**
 * Reads a file that a hostile process left inside a folder: a regular file of its own, reached without any link
 * (DESIGN §13). Call it only when the process and its offspring are gone.
 *
 * @param name relative path of plain components, as the protocol declares it
 */
export function collectFile(folder: string, name: string, maxBytes: number): Collected {
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
  folder: string,
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
  folder: string,
  name: string,
  maxBytes: number,
):
  | Exclude<Collected, { kind: 'file' }>
  | { readonly kind: 'open'; readonly file: number; readonly size: number } {
  const components = name.split('/');
  for (let i = 1; i < components.length; i++) {
    const stat = lstatSync(join(folder, ...components.slice(0, i)), { throwIfNoEntry: false });
    if (stat === undefined) return { kind: 'absent' };
    if (!stat.isDirectory()) return { kind: 'refused', reason: `${components[i - 1]} is no folder` };
  }
  let file: number;
  try {
    file = openSync(
      join(folder, ...components),
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT') return { kind: 'absent' };
    return {
      kind: 'refused',
      reason: code === 'ELOOP' ? `${name} is a link` : `${name} cannot be opened (${code})`,
    };
  }
  const stat = fstatSync(file);
  const refusal = refusalOf(stat, name, maxBytes);
  if (refusal === null) return { kind: 'open', file, size: stat.size };
  closeSync(file);
  return refusal;
}

function refusalOf(stat: Stats, name: string, maxBytes: number): Exclude<Collected, { kind: 'file' }> | null {
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
