import { readdirSync, readFileSync } from 'node:fs';
import { hasEnded, type ProcessStat, readStat } from './process-identity.js';

/** The environment variable by which a started process and all its offspring are found again. */
export const MARK = 'BOUNDBOOK_MARK';

/** Every living process of this host that can be read. */
export function listProcesses(): ProcessStat[] {
  const found: ProcessStat[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^[0-9]+$/.test(name)) continue;
    const stat = readStat(Number(name));
    if (stat !== null && !hasEnded(stat)) found.push(stat);
  }
  return found;
}

/** The living members of a process group and all their descendants, also those that formed groups of their own. */
export function familyOf(group: number): ProcessStat[] {
  const all = listProcesses();
  const family = new Map<number, ProcessStat>();
  let waiting = all.filter((stat) => stat.group === group || stat.pid === group);
  while (waiting.length > 0) {
    for (const stat of waiting) family.set(stat.pid, stat);
    waiting = all.filter((stat) => family.has(stat.parent) && !family.has(stat.pid));
  }
  return [...family.values()];
}

/**
 * The living processes whose environment carries a mark: offspring is found even when it has left its group and
 * lost its parents. Only processes that began no earlier than `since` (clock ticks) are looked at.
 */
export function markedProcesses(
  mark: string,
  since = '0',
  all: readonly ProcessStat[] = listProcesses(),
): ProcessStat[] {
  const wanted = `${MARK}=${mark}`;
  const from = BigInt(since || '0');
  return all.filter(
    (stat) => stat.pid !== process.pid && BigInt(stat.started) >= from && carries(stat.pid, wanted),
  );
}

/** `wanted` is a whole `NAME=value`, or one that ends in a dot and stands for all values that begin with it. */
function carries(pid: number, wanted: string): boolean {
  let environment: string;
  try {
    environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    // Another user's process, or one that has just ended.
    return false;
  }
  const end = wanted.endsWith('.') ? '' : '\0';
  return environment.startsWith(wanted + end) || environment.includes(`\0${wanted}${end}`);
}

/** Sends a signal to one process that must still be the one that was seen. */
export function signalProcess(stat: ProcessStat, signal: NodeJS.Signals): void {
  if (readStat(stat.pid)?.started !== stat.started) return;
  try {
    process.kill(stat.pid, signal);
  } catch {
    // It has ended in the meantime.
  }
}

/** Sends a signal to a whole group; false when nobody is left in it. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch {
    return false;
  }
}
