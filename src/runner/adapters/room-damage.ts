import { BoundbookError, systemCode } from '../../core/errors.js';

/** A folder or file of an attempt's own is not there any more as it was made, in words; nothing that it can be blamed for is the disk's. */
export interface RoomDamage {
  readonly damage: string;
}

/** How a system says that somebody removed, exchanged, locked or filled a name. Whatever else it says is a fault of the host. */
const CODES: ReadonlySet<string> = new Set([
  'EACCES',
  'EBUSY',
  'EEXIST',
  'EISDIR',
  'ELOOP',
  'EMLINK',
  'ENAMETOOLONG',
  'ENOENT',
  'ENOTDIR',
  'ENOTEMPTY',
  'EPERM',
]);

/** The system's code when it tells of a damaged name; null for a fault of the disk, the host or the program. */
export function damageCode(error: unknown): string | null {
  const code = systemCode(error instanceof BoundbookError ? error.cause : error);
  return code !== undefined && CODES.has(code) ? code : null;
}
