import type { BigIntStats } from 'node:fs';
import { lstat, readdir, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Fault, systemCode } from '../core/errors.js';
import { foldId } from '../protocol/ids.js';
import { resolveHubLink } from './links.js';
import { isIgnored, readName } from './names.js';
import { type FileStamp, stampOf } from './stamp.js';

const MAX_FILES = 1_000_000;

/** What is to be found at a place. */
export interface Place {
  /** How faults name it. */
  readonly shown: string;
  readonly absolute: string;
  readonly shape: 'file' | 'folder' | 'either';
  /** Whether a folder without files is refused; it would have no part in the tree's digest (F-35). */
  readonly refuseEmptyFolders: boolean;
}

export interface FoundFile {
  /** Relative to the tree; empty for a file that is bound by itself. */
  readonly path: string;
  /** The regular file that holds the bytes: behind a hub link, the blob. */
  readonly absolute: string;
  /** The name of that blob; null without a link. */
  readonly blob: string | null;
  readonly stamp: FileStamp;
}

export interface Found {
  readonly shape: 'missing' | 'file' | 'tree';
  /** The place with all folders above it resolved. */
  readonly root: string;
  readonly files: readonly FoundFile[];
  readonly faults: readonly Fault[];
}

/**
 * Lists what lies at a place, following no link but those of a model-hub cache. Never throws on what it meets: each
 * thing that can't be bound is a fault. The one directory walker of the product, so that a tree has one list.
 */
export async function walk(place: Place): Promise<Found> {
  const faults: Fault[] = [];
  const nothing = (shape: Found['shape']): Found => ({ shape, root: place.absolute, files: [], faults });
  try {
    const root = join(await realpath(dirname(place.absolute)), basename(place.absolute));
    const stat = await lstat(root, { bigint: true });
    if (stat.isDirectory()) {
      if (place.shape !== 'file') return await walkTree(place, root, faults);
      faults.push({ where: place.shown, message: 'is a folder; a file is expected' });
      return nothing('tree');
    }
    const file = await classify(root, '', place.shown, stat, faults);
    if (file !== null && place.shape === 'folder') {
      faults.push({ where: place.shown, message: 'is a file; a folder is expected' });
    }
    return { ...nothing('file'), root, files: file === null || place.shape === 'folder' ? [] : [file] };
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return nothing('missing');
    faults.push(unreadable(place.shown, error));
    return nothing('file');
  }
}

async function walkTree(place: Place, root: string, faults: Fault[]): Promise<Found> {
  const files: FoundFile[] = [];
  const open = [''];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    const shown = folder === '' ? place.shown : `${place.shown}/${folder}`;
    const names = await readFolder(join(root, folder), folder, shown, faults);
    if (names === null) continue;
    if (names.length === 0 && (folder === '' || place.refuseEmptyFolders)) faults.push(empty(folder, shown));
    for (const name of names) {
      const path = folder === '' ? name : `${folder}/${name}`;
      const found = await classifyEntry(join(root, path), path, `${place.shown}/${path}`, faults);
      if (found === 'folder') open.push(path);
      else if (found !== null) files.push(found);
      if (files.length + open.length > MAX_FILES) {
        faults.push({
          where: place.shown,
          message: `holds more than ${MAX_FILES} files`,
          hint: 'Bind less.',
        });
        return { shape: 'tree', root, files, faults };
      }
    }
  }
  return { shape: 'tree', root, files, faults };
}

function empty(folder: string, shown: string): Fault {
  return folder === ''
    ? { where: shown, message: 'is an empty tree', hint: 'Check the path; a copy may have been interrupted.' }
    : { where: shown, message: 'is an empty folder, which no digest would show', hint: 'Remove it.' };
}

/** The names in a folder that count, faulty ones reported; null when it can't be read. */
async function readFolder(
  absolute: string,
  folder: string,
  shown: string,
  faults: Fault[],
): Promise<string[] | null> {
  const raw = await readdir(absolute, { encoding: 'buffer' }).catch((error: unknown) => {
    faults.push(unreadable(shown, error));
    return null;
  });
  if (raw === null) return null;
  const names: string[] = [];
  const seen = new Map<string, string>();
  for (const bytes of raw.sort(Buffer.compare)) {
    const verdict = readName(bytes);
    if (!verdict.ok) {
      faults.push({ where: `${shown}/${verdict.shown}`, message: verdict.reason, hint: 'Rename it.' });
      continue;
    }
    const { name } = verdict;
    if (isIgnored(folder, name)) continue;
    const twin = seen.get(foldId(name));
    if (twin !== undefined) {
      const message = `differs from ${JSON.stringify(twin)} only by letter case or normalisation`;
      faults.push({ where: `${shown}/${name}`, message, hint: 'Rename one of them.' });
    }
    seen.set(foldId(name), name);
    names.push(name);
  }
  return names;
}

async function classifyEntry(
  absolute: string,
  path: string,
  shown: string,
  faults: Fault[],
): Promise<FoundFile | 'folder' | null> {
  try {
    const stat = await lstat(absolute, { bigint: true });
    if (stat.isDirectory()) return 'folder';
    return await classify(absolute, path, shown, stat, faults);
  } catch (error) {
    faults.push(unreadable(shown, error));
    return null;
  }
}

/** Takes regular files and hub links; reports everything else. */
async function classify(
  absolute: string,
  path: string,
  shown: string,
  stat: BigIntStats,
  faults: Fault[],
): Promise<FoundFile | null> {
  if (stat.isFile()) return { path, absolute, blob: null, stamp: stampOf(stat) };
  if (!stat.isSymbolicLink()) {
    faults.push({ where: shown, message: `is ${specialKind(stat)}, not a regular file`, hint: 'Remove it.' });
    return null;
  }
  const verdict = await resolveHubLink(absolute);
  if (verdict.ok)
    return { path, absolute: verdict.absolute, blob: verdict.blob, stamp: stampOf(verdict.stat) };
  faults.push({
    where: shown,
    message: `is a link that is not followed: ${verdict.reason}`,
    hint: 'Copy the file in its place, or name the real folder (boundbook.host.yaml can map it).',
  });
  return null;
}

function specialKind(stat: BigIntStats): string {
  if (stat.isFIFO()) return 'a named pipe';
  if (stat.isSocket()) return 'a socket';
  return stat.isBlockDevice() || stat.isCharacterDevice() ? 'a device' : 'a special file';
}

/** A system error met at a file, as a fault. */
export function unreadable(shown: string, error: unknown): Fault {
  const code = systemCode(error) ?? 'unknown error';
  const gone = code === 'ENOENT' || code === 'ENOTDIR';
  return gone
    ? {
        where: shown,
        message: 'vanished while the tree was read',
        hint: 'Let nothing write there meanwhile.',
      }
    : { where: shown, message: `cannot be read (${code})`, hint: 'Give this user the right to read it.' };
}
