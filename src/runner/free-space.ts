import { statfsSync } from 'node:fs';
import { BoundbookError } from '../core/errors.js';

/** Below this, an attempt is likely to be cut by a disk that is full. */
export const RESERVE_BYTES = 4_000_000;

/** Bytes that this user may still write on the file system of a folder; unlimited where the system does not say. */
export function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Why nothing may be started on a disk that is all but full; null when there is room. */
export function lackOfSpace(folder: string, free: number = freeBytes(folder)): BoundbookError | null {
  if (free >= RESERVE_BYTES) return null;
  return new BoundbookError(
    'DISK_FULL',
    `only ${free} bytes are free for ${folder}; attempts are started with at least ${RESERVE_BYTES}`,
    {
      hint: 'Free some space and run again. Attempts that were under way were left to end.',
      evidence: { free },
    },
  );
}
