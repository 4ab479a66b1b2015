import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { basename } from 'node:path';
import { Header, Pax } from 'tar';
import { BoundbookError } from '../../core/errors.js';
import { readError } from '../../core/files.js';
import { type BundleFiles, FileList } from './files.js';
import { isBundleFolder, isBundlePath } from './layout.js';
import { type Region, readRegion } from './region.js';

const BLOCK_BYTES = 512;
/** A pax record or a long name of a path that a bundle can hold has some hundred bytes. */
const MAX_EXTENSION_BYTES = 65_536;
/** Zeros at the end, as programs fill up their last record. */
const MAX_END_BYTES = 1 << 20;

/**
 * A bundle that lies in a tar, read in place: nothing is unpacked. The tar is hostile: lengths are held against the file,
 * and everything but files and folders of a bundle is listed as a stranger.
 *
 * @throws {BoundbookError} BUNDLE_INVALID when it is no tar; FILE_NOT_REGULAR, FILE_UNREADABLE.
 */
export function openTar(path: string): BundleFiles {
  const file = openRegular(path);
  try {
    const tar: Region = { path: basename(path), file, start: 0, size: fstatSync(file).size };
    const members = new TarIndex(tar);
    members.read();
    return {
      form: 'tar',
      name: basename(path),
      sizes: members.list.sizes,
      strangers: members.list.strangers,
      open: (member) => ({
        path: member,
        file,
        start: members.offsets.get(member) ?? 0,
        size: members.list.sizes.get(member) ?? 0,
      }),
      close: () => closeSync(file),
    };
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

class TarIndex {
  readonly list = new FileList();
  readonly offsets = new Map<string, number>();
  readonly #tar: Region;
  #top: string | null = null;
  /** What an extension said about the member that follows it. */
  #extension: { path?: string; size?: number } | null = null;

  constructor(tar: Region) {
    this.#tar = tar;
  }

  read(): void {
    const block = Buffer.alloc(BLOCK_BYTES);
    let at = 0;
    for (let header = this.#header(block, at); header !== null; header = this.#header(block, at)) {
      const size = header.size ?? 0;
      const content = at + BLOCK_BYTES;
      if (!Number.isSafeInteger(size) || content + size > this.#tar.size) {
        this.list.stranger(header.path ?? '', `its ${size} bytes go beyond the end of the tar`);
        return;
      }
      if (!this.list.count()) return;
      this.#take(header, content, size);
      at = content + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
    }
  }

  /** null at the end, or where the tar cannot be read any further. */
  #header(block: Buffer, at: number): Header | null {
    if (readRegion(this.#tar, Math.min(at, this.#tar.size), block) < BLOCK_BYTES) {
      if (at === 0) throw notTar(this.#tar.path);
      this.list.stranger('', `the tar ends without its last two blocks, at byte ${at}`);
      return null;
    }
    if (block.every((byte) => byte === 0)) {
      this.#checkEnd(at);
      return null;
    }
    const header = headerOf(block, this.#extension);
    if (header?.cksumValid === true) return header;
    if (at === 0) throw notTar(this.#tar.path);
    this.list.stranger('', `the tar cannot be read behind byte ${at}: no valid header`);
    return null;
  }

  #take(header: Header, content: number, size: number): void {
    const { type } = header;
    if (type === 'ExtendedHeader' || type === 'NextFileHasLongPath') {
      this.#extension = this.#readExtension(type, content, size);
      return;
    }
    this.#extension = null;
    const shown = header.path ?? '';
    const path = this.#below(shown);
    if (path === null) this.list.stranger(shown, 'it does not lie in the one folder of the tar');
    else if (type === 'Directory') {
      const folder = path.replace(/\/$/, '');
      if (folder !== '' && !isBundleFolder(folder))
        this.list.stranger(shown, 'a folder that no bundle holds');
    } else if (type !== 'File' && type !== 'OldFile') {
      this.list.stranger(shown, `a member of the kind ${type}, which is never followed or opened`);
    } else if (!isBundlePath(path)) this.list.stranger(shown, 'a file that no bundle holds');
    else if (this.list.add(path, size)) this.offsets.set(path, content);
  }

  /** The path below the one folder; null outside of it. */
  #below(path: string): string | null {
    const slash = path.indexOf('/');
    const top = slash === -1 ? path : path.slice(0, slash);
    if (top === '' || top === '..' || (slash === -1 && this.#top !== null)) return null;
    this.#top ??= top;
    return top === this.#top ? path.slice(top.length + 1) : null;
  }

  #readExtension(type: string, content: number, size: number): { path?: string; size?: number } | null {
    if (size > MAX_EXTENSION_BYTES) {
      this.list.stranger('', `an extension of ${size} bytes`);
      return null;
    }
    const bytes = Buffer.alloc(size);
    readRegion(this.#tar, content, bytes);
    const text = bytes.toString('utf8');
    if (type === 'NextFileHasLongPath') return { ...this.#extension, path: text.replace(/\0.*$/s, '') };
    const { path, size: length } = Pax.parse(text);
    return {
      ...this.#extension,
      ...(path === undefined ? {} : { path }),
      ...(length === undefined ? {} : { size: length }),
    };
  }

  /** Only zeros follow, and not too many. */
  #checkEnd(at: number): void {
    const left = this.#tar.size - at;
    const rest = Buffer.alloc(Math.min(left, MAX_END_BYTES));
    readRegion(this.#tar, at, rest);
    if (left > MAX_END_BYTES || !rest.every((byte) => byte === 0)) {
      this.list.stranger('', `something lies behind the end of the tar, at byte ${at}`);
    } else if (left < 2 * BLOCK_BYTES) this.list.stranger('', 'the tar lacks its last block');
  }
}

function headerOf(block: Buffer, extension: { path?: string; size?: number } | null): Header | null {
  try {
    return new Header(block, 0, extension ?? undefined);
  } catch {
    // The library's words for bytes that are no header.
    return null;
  }
}

function notTar(name: string): BoundbookError {
  return new BoundbookError('BUNDLE_INVALID', `${name} is neither a bundle's folder nor a tar of one`, {
    hint: 'A compressed tar must be unpacked first (gunzip). Otherwise the file is damaged, or another one.',
  });
}

function openRegular(path: string): number {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw readError(path, error);
  }
  if (fstatSync(file).isFile()) return file;
  closeSync(file);
  throw new BoundbookError('FILE_NOT_REGULAR', `${path} is not a regular file`, {
    hint: 'Name a bundle: its folder, or a tar of it.',
  });
}
