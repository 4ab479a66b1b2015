import { readFileSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { systemCode } from './errors.js';
import { readError } from './files.js';

/** What the system says of the file system below a path. */
export interface FileSystemFacts {
  /** `f_type` of statfs(2). */
  readonly type: number;
  /** The type in the mount table (`fuse.sshfs`); null when it is not known. */
  readonly mounted: () => string | null;
}

/** Reads the facts of an existing path. @throws {BoundbookError} FILE_NOT_FOUND, FILE_UNREADABLE. */
export type FileSystemProbe = (path: string) => FileSystemFacts;

/**
 * File systems that are shared between hosts, by `f_type`. Numbers: Linux `include/uapi/linux/magic.h`, statfs(2), and
 * those outside the kernel's header from GNU coreutils `src/stat.c`, whose list marks what is remote.
 */
const NETWORK: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xfe534d42, 'SMB2'],
  [0xff534d42, 'CIFS'],
  [0x5346414f, 'AFS'],
  [0x6b414653, 'AFS'],
  [0x01021997, '9P'],
  [0x73757245, 'Coda'],
  [0x564c, 'NCP'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
  [0x19830326, 'BeeGFS'],
  [0xaad7aaea, 'PanFS'],
  [0xbeefdead, 'StorNext'],
  [0x013111a8, 'IBRIX'],
  [0x01161970, 'GFS2'],
  [0x7461636f, 'OCFS2'],
  [0x61636673, 'ACFS'],
  [0xbacbacbc, 'VMware shared folder'],
  [0x786f4256, 'VirtualBox shared folder'],
  [0x7c7c6673, 'Parallels shared folder'],
]);

/** A program answers for these: only the mount table tells whether a disk of this host or a network is behind it. */
const FUSE = 0x65735546;
/** `fuseblk` is bound to a block device. */
const LOCAL_FUSE: ReadonlySet<string> = new Set(['fuseblk', 'fuse.fuse-overlayfs']);

/**
 * The name of the network file system that a path lies on; null for a local one. A path that does not exist yet is
 * judged by its nearest folder that does.
 *
 * @throws {BoundbookError} as the probe
 */
export function networkFileSystem(path: string, probe: FileSystemProbe = probeFileSystem): string | null {
  const { type, mounted } = probe(nearestExisting(path));
  // f_type is a signed long: on 32-bit hosts the high numbers come out negative.
  const number = type >>> 0;
  if (number !== FUSE) return NETWORK.get(number) ?? null;
  const name = mounted();
  return name !== null && LOCAL_FUSE.has(name) ? null : (name ?? 'FUSE');
}

/** Asks the system. */
export function probeFileSystem(path: string): FileSystemFacts {
  try {
    return { type: statfsSync(path).type, mounted: () => mountType(statSync(path).dev) };
  } catch (error) {
    throw readError(path, error);
  }
}

function nearestExisting(path: string): string {
  for (let at = path; ; at = dirname(at)) {
    try {
      statSync(at);
      return at;
    } catch (error) {
      const code = systemCode(error);
      if ((code !== 'ENOENT' && code !== 'ENOTDIR') || at === dirname(at)) throw readError(at, error);
    }
  }
}

/** The type of the mount with a device number, from proc(5) `mountinfo`; null when there is none. */
function mountType(dev: number): string | null {
  // Linux packs 12 bits of the major number above 8 bits of the minor one, whose further bits lie on top.
  const device = `${(dev >>> 8) & 0xfff}:${(dev & 0xff) | ((dev >>> 12) & 0xfff00)}`;
  let table: string;
  try {
    table = readFileSync('/proc/self/mountinfo', 'utf8');
  } catch {
    return null;
  }
  const line = table.split('\n').find((each) => each.split(' ')[2] === device);
  return line?.split(' - ')[1]?.split(' ')[0] ?? null;
}
