import { readdirSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { type ProcessStat, readStat } from './process-identity.js';
import { listProcesses } from './process-tree.js';

/**
 * The living processes of this user that have their working folder, root, program or an open file in a folder. What people
 * started from a terminal is left out, and so is what this process itself comes from.
 *
 * @param since only processes that began no earlier than this (clock ticks)
 */
export function processesIn(
  folder: string,
  since = '0',
  all: readonly ProcessStat[] = listProcesses(),
): ProcessStat[] {
  const place = realPath(folder);
  const from = BigInt(since || '0');
  const above = ancestors();
  return all.filter(
    (stat) =>
      BigInt(stat.started) >= from &&
      !stat.hasTerminal &&
      !above.has(stat.pid) &&
      isOwn(stat.pid) &&
      isIn(place, stat.pid),
  );
}

function isOwn(pid: number): boolean {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid === process.geteuid?.();
}

function isIn(folder: string, pid: number): boolean {
  const at = `/proc/${pid}`;
  return ['cwd', 'root', 'exe', ...openFiles(`${at}/fd`)].some((name) =>
    isWithin(folder, target(`${at}/${name}`)),
  );
}

function openFiles(folder: string): readonly string[] {
  try {
    return readdirSync(folder).map((name) => `fd/${name}`);
  } catch {
    // It has just ended, or does not let itself be looked at.
    return [];
  }
}

function target(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return '';
  }
}

/** The kernel writes ` (deleted)` behind the path of what has been removed. */
function isWithin(folder: string, path: string): boolean {
  return path === folder || path === `${folder} (deleted)` || path.startsWith(`${folder}/`);
}

function realPath(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
}

/** This process and those that it comes from. */
function ancestors(): ReadonlySet<number> {
  const found = new Set<number>();
  for (let pid = process.pid; pid > 0 && !found.has(pid); pid = readStat(pid)?.parent ?? 0) found.add(pid);
  return found;
}
