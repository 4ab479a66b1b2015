import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** System calls that make something durable, or are a step of what does. */
export const STEPS = [
  'pwrite64',
  'write',
  'fsync',
  'fdatasync',
  'ftruncate',
  'rename',
  'link',
  'unlink',
  'mkdir',
] as const;
export type Step = (typeof STEPS)[number];

/** Those whose failure concerns nothing but files: a failing `write` would also hit the pipes of the event loop. */
export const FAULTY = STEPS.filter((step) => step !== 'write');

/** How each is called by this system's C library. */
const NAMES: Readonly<Record<Step, string>> = {
  pwrite64: 'pwrite64',
  write: 'write',
  fsync: 'fsync',
  fdatasync: 'fdatasync',
  ftruncate: 'ftruncate',
  rename: '/^rename',
  link: '/^link',
  unlink: '/^unlink',
  mkdir: '/^mkdir',
};

/** One system call of the process, counted in each of its threads. */
export interface Injection {
  readonly step: Step;
  /** Counted from 1. */
  readonly nth: number;
  /** `kill`: SIGKILL when the call is entered, so that it is not done; else the error that it gives. */
  readonly what: 'kill' | 'EIO' | 'ENOSPC';
  /** The error stays from then on, as that of a full disk does. */
  readonly stays?: boolean;
}

/**
 * The command line that runs a program with an injection. Threads are followed, other programs that it starts are not.
 *
 * @param log file for the calls
 */
export function straceArgv(injection: Injection, log: string, argv: readonly string[]): readonly string[] {
  const { step, nth, what, stays = false } = injection;
  const name = NAMES[step];
  const effect = what === 'kill' ? 'signal=KILL' : `error=${what}`;
  const inject = `inject=${name}:${effect}:when=${nth}${stays ? '+' : ''}`;
  return [...PREFIX, '-o', log, '-e', `trace=${name}`, '-e', inject, ...argv];
}

/** The command line that records every durable step, with the files that file descriptors stand for. */
export function recordArgv(log: string, argv: readonly string[]): readonly string[] {
  const names = STEPS.map((step) => NAMES[step]).join(',');
  return [...PREFIX, '-y', '-o', log, '-e', `trace=${names}`, ...argv];
}

/** Threads are followed; `-b execve` lets go of the programs that are started. */
const PREFIX = ['strace', '-f', '-b', 'execve', '-qq', '-e', 'signal=none'];

/** Why tests that inject faults cannot run here; null when they can. */
export function straceMissing(): string | null {
  const folder = mkdtempSync(join(tmpdir(), 'boundbook-strace-'));
  try {
    const log = join(folder, 'log');
    const script = `require('node:fs').mkdirSync(${JSON.stringify(join(folder, 'made'))})`;
    const argv = straceArgv({ step: 'mkdir', nth: 1, what: 'EIO' }, log, [process.execPath, '-e', script]);
    const { status, stderr, error } = spawnSync(argv[0] ?? '', argv.slice(1), { encoding: 'utf8' });
    if (error !== undefined) return 'strace is not installed';
    if (status !== 0 && stderr.includes('EIO')) return null;
    return `strace cannot trace here: ${stderr.trim().split('\n')[0] ?? ''}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
