import { randomBytes } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Header, Pax } from 'tar';
import { readError } from '../../core/files.js';
import { compareUtf8 } from '../../manifest/tree.js';
import { HashedFile, type WrittenFile } from './hashed-file.js';

const BLOCK_BYTES = 512;
const READ_BYTES = 1 << 18;

/** A tar under a temporary name beside its target. */
export interface WrittenTar extends WrittenFile {
  readonly temporary: string;
}

/**
 * Writes a tar of which every byte follows from paths and contents: entries in UTF-8 byte order of their paths, no owner,
 * no time (docs/formats/bundle.md).
 *
 * @param root the folder that holds the files
 * @param paths of files below it
 * @param top the name of the one folder in the tar
 * @throws {BoundbookError} DISK_FULL, FILE_UNWRITABLE, FILE_UNREADABLE.
 */
export function writeTar(root: string, paths: readonly string[], top: string, target: string): WrittenTar {
  const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString('hex')}.tmp`);
  const tar = new HashedFile(temporary);
  try {
    const folders = new Set(paths.flatMap((path) => foldersAbove(path)));
    const all = [...folders].map((folder) => `${folder}/`).concat(paths);
    writeHeader(tar, `${top}/`, 'Directory', 0);
    for (const path of all.sort(compareUtf8)) {
      if (path.endsWith('/')) writeHeader(tar, `${top}/${path}`, 'Directory', 0);
      else writeMember(tar, join(root, path), `${top}/${path}`);
    }
    tar.write(Buffer.alloc(2 * BLOCK_BYTES));
    return { ...tar.finish(), temporary };
  } catch (error) {
    tar.abandon();
    rmSync(temporary, { force: true });
    throw error;
  }
}

function foldersAbove(path: string): string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, i) => parts.slice(0, i + 1).join('/'));
}

function writeMember(tar: HashedFile, file: string, path: string): void {
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  const descriptor = openSync(file, 'r');
  try {
    const { size } = fstatSync(descriptor);
    writeHeader(tar, path, 'File', size);
    for (let at = 0; at < size; ) {
      const count = readSync(descriptor, buffer, 0, Math.min(READ_BYTES, size - at), at);
      if (count === 0) throw new Error('it became shorter');
      tar.write(buffer.subarray(0, count));
      at += count;
    }
    tar.write(Buffer.alloc((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES));
  } catch (error) {
    throw readError(file, error);
  } finally {
    closeSync(descriptor);
  }
}

function writeHeader(tar: HashedFile, path: string, type: 'File' | 'Directory', size: number): void {
  const common = { path, size, uid: 0, gid: 0, mtime: new Date(0), uname: '', gname: '' };
  const header = new Header({
    ...common,
    mode: type === 'File' ? 0o644 : 0o755,
    type,
    linkpath: '',
    devmaj: 0,
    devmin: 0,
  });
  const block = Buffer.alloc(BLOCK_BYTES);
  if (header.encode(block)) tar.write(new Pax({ path, size, mtime: common.mtime }).encode());
  tar.write(block);
}
