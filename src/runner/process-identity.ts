import { readFileSync } from 'node:fs';
import { BoundbookError, systemCode } from '../core/errors.js';

/** What tells one process from every other one on this host, before and after a restart of it. */
export interface ProcessIdentity {
  readonly boot_id: string;
  readonly pid: number;
  /** Start time in clock ticks since boot, as the kernel counts it (field 22 of `/proc/<pid>/stat`). */
  readonly started: string;
}

export type Fate = 'alive' | 'boot_changed' | 'process_gone' | 'pid_reused';

/** What `/proc/<pid>/stat` says of a process, as far as it is used here. */
export interface ProcessStat {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** Whether it has a controlling terminal, as what people start by hand has. */
  readonly hasTerminal: boolean;
  /** `Z` and `X` are processes that have ended. */
  readonly state: string;
  readonly started: string;
}

/** The identity of this process. @throws {BoundbookError} FILE_UNREADABLE on a system without Linux's /proc. */
export function ownIdentity(): ProcessIdentity {
  const stat = readStat(process.pid);
  if (stat === null) throw noProc();
  return { boot_id: bootId(), pid: process.pid, started: stat.started };
}

/** The kernel's random name of this boot. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch (error) {
    throw noProc(error);
  }
}

/** What became of a process that was recorded earlier (DESIGN §9): decided by the kernel, never by the clock. */
export function fateOf(identity: ProcessIdentity, boot = bootId()): Fate {
  if (identity.boot_id !== boot) return 'boot_changed';
  const stat = readStat(identity.pid);
  if (stat === null || hasEnded(stat)) return 'process_gone';
  return stat.started === identity.started ? 'alive' : 'pid_reused';
}

/** Reads one process's line; null when there is no such process. */
export function readStat(pid: number): ProcessStat | null {
  let line: string;
  try {
    line = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT' || code === 'ESRCH') return null;
    throw noProc(error);
  }
  // The program's name stands in parentheses and may itself hold spaces and parentheses.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  const [state = 'X', parent, group, session, terminal] = fields;
  return {
    pid,
    state,
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    hasTerminal: terminal !== '0',
    started: fields[19] ?? '',
  };
}

export function hasEnded(stat: ProcessStat): boolean {
  return stat.state === 'Z' || stat.state === 'X';
}

function noProc(cause?: unknown): BoundbookError {
  return new BoundbookError('FILE_UNREADABLE', '/proc cannot be read', {
    hint: 'Running needs Linux: processes and ports are identified through /proc.',
    cause,
  });
}
