import { closeSync, constants, type Dirent, fstatSync, opendirSync, openSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { BoundbookError } from '../../core/errors.js';
import { readError } from '../../core/files.js';
import { type BundleFiles, FileList } from './files.js';
import { isBundleFolder, isBundlePath } from './layout.js';
import type { Region } from './region.js';

/**
 * A bundle that lies in a folder. Links are never followed, and nothing but regular files is opened.
 *
 * @throws {BoundbookError} FILE_UNREADABLE and the like for the folder itself.
 */
export function openFolder(path: string): BundleFiles {
  const list = new FileList();
  walk(path, '', list);
  const open: number[] = [];
  return {
    form: 'folder',
    name: basename(resolve(path)),
    sizes: list.sizes,
    strangers: list.strangers,
    open(file) {
      const region = openRegion(path, file);
      open.push(region.file);
      return region;
    },
    close() {
      for (const file of open.splice(0)) closeSync(file);
    },
  };
}

function walk(root: string, folder: string, list: FileList): void {
  const place = join(root, folder);
  try {
    const entries = opendirSync(place);
    try {
      for (let item = entries.readSync(); item !== null; item = entries.readSync()) {
        if (!list.count()) return;
        look(root, folder === '' ? item.name : `${folder}/${item.name}`, item, list);
      }
    } finally {
      entries.closeSync();
    }
  } catch (error) {
    const typed = readError(place, error);
    if (folder === '') throw typed;
    list.stranger(folder, typed.message);
  }
}

function look(root: string, path: string, item: Dirent, list: FileList): void {
  if (item.isDirectory()) {
    if (isBundleFolder(path)) walk(root, path, list);
    else list.stranger(path, 'a folder that no bundle holds');
    return;
  }
  if (!item.isFile()) list.stranger(path, `${kindOf(item)}, which is never followed or opened`);
  else if (!isBundlePath(path)) list.stranger(path, 'a file that no bundle holds');
  else addFile(root, path, list);
}

function addFile(root: string, path: string, list: FileList): void {
  try {
    list.add(path, sizeOf(join(root, path)));
  } catch (error) {
    list.stranger(path, readError(path, error).message);
  }
}

function kindOf(item: Dirent): string {
  if (item.isSymbolicLink()) return 'a link';
  if (item.isFIFO()) return 'a pipe';
  if (item.isSocket()) return 'a socket';
  return 'a device or something else that is no regular file';
}

function sizeOf(path: string): number {
  const file = openRegular(path);
  try {
    return fstatSync(file).size;
  } finally {
    closeSync(file);
  }
}

function openRegion(root: string, path: string): Region {
  const file = openRegular(join(root, path));
  return { path, file, start: 0, size: fstatSync(file).size };
}

function openRegular(path: string): number {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    throw readError(path, error);
  }
  if (fstatSync(file).isFile()) return file;
  closeSync(file);
  throw new BoundbookError('FILE_NOT_REGULAR', `${path} is not a regular file`);
}
