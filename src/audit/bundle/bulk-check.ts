import type { Digest } from '../../core/digest.js';
import { digestOfRegion, type Region } from './region.js';
import { sqliteFault } from './sqlite-check.js';

/** What can be said of the large files of a bundle by their bytes alone. Plain data: a thread of its own can do it. */
export interface BulkJob {
  readonly entries: Region;
  /** null when there is none. */
  readonly pack: Region | null;
  /** The database that must hold the entries once more; null when there is none. */
  readonly sqlite: Region | null;
  /** An empty folder for a copy of the database. */
  readonly scratch: string;
}

export interface BulkVerdict {
  /** Of each of the files, by path. */
  readonly digests: ReadonlyMap<string, Digest>;
  /** What is wrong with the database; null when nothing is, or there is none. */
  readonly sqliteFault: string | null;
}

/** @throws {BoundbookError} FILE_CHANGED, FILE_UNREADABLE, DISK_FULL, FILE_UNWRITABLE. */
export function checkBulk({ entries, pack, sqlite, scratch }: BulkJob): BulkVerdict {
  const digest = digestOfRegion(entries);
  const digests = new Map([[entries.path, digest]]);
  if (pack !== null) digests.set(pack.path, digestOfRegion(pack));
  if (sqlite !== null) digests.set(sqlite.path, digestOfRegion(sqlite));
  return { digests, sqliteFault: sqlite === null ? null : sqliteFault(sqlite, digest, scratch) };
}
