import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import { BoundbookError, systemCode } from '../core/errors.js';

/** A folder in which groups can be made, and how its version of the kernel's interface names things. */
export interface CgroupPlace {
  readonly folder: string;
  /** The group that this process is in now. */
  readonly own: string;
  readonly limit: string;
  /** Where the counter `oom_kill` stands. */
  readonly events: string;
}

const V2 = { limit: 'memory.max', events: 'memory.events' } as const;
const V1 = { limit: 'memory.limit_in_bytes', events: 'memory.oom_control' } as const;

/** @throws {BoundbookError} CGROUP_UNUSABLE for a folder that is not one of control groups, or has no memory controller. */
export function cgroupPlace(path: string): CgroupPlace {
  let folder: string;
  try {
    folder = realpathSync(path);
  } catch (error) {
    throw unusable(path, `there is no such folder (${systemCode(error)})`, error);
  }
  const names = existsSync(join(folder, 'cgroup.controllers'))
    ? V2
    : existsSync(join(folder, V1.events))
      ? V1
      : null;
  if (names === null) throw unusable(path, 'it is no folder of cgroup v2 or of the memory controller of v1');
  return { folder, own: ownGroup(folder, names === V2), ...names };
}

interface Mount {
  /** Which part of the hierarchy is seen there. */
  readonly root: string;
  readonly point: string;
}

/** The folder of the group that this process is in, in the hierarchy that `folder` belongs to. */
function ownGroup(folder: string, isV2: boolean): string {
  const mount = mountOf(folder, isV2);
  if (mount === null) throw unusable(folder, 'its mount is not found in /proc/self/mountinfo');
  const lines = readFileSync('/proc/self/cgroup', 'utf8').split('\n');
  for (const line of lines) {
    const [, controllers, path] = /^[0-9]+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    const fits = isV2 ? controllers === '' : controllers.split(',').includes('memory');
    if (fits) return join(mount.point, relative(mount.root, path));
  }
  throw unusable(folder, 'the group of this process is not found in /proc/self/cgroup');
}

function mountOf(folder: string, isV2: boolean): Mount | null {
  let found: Mount | null = null;
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
    const [head = '', tail = ''] = line.split(' - ');
    const [, , , root = '', point = ''] = head.split(' ').map(unescapeOctal);
    const [type, , options = ''] = tail.split(' ');
    const fits = isV2 ? type === 'cgroup2' : type === 'cgroup' && options.split(',').includes('memory');
    const holds = folder === point || folder.startsWith(`${point}/`);
    if (fits && holds && point.length >= (found?.point.length ?? 0)) found = { root, point };
  }
  return found;
}

/** The kernel writes white space and backslashes in paths as `\040` and the like. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

export function unusable(path: string, what: string, cause?: unknown): BoundbookError {
  return new BoundbookError('CGROUP_UNUSABLE', `${path}: ${what}`, {
    hint: 'runner.cgroup names a folder of cgroup v2 that is delegated to this user, with the memory controller enabled for its children, or one of the memory controller of v1; this process must run in a group beside it.',
    evidence: { path },
    cause,
  });
}
