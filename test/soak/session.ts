import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Ended } from '../crash/strike.js';

const WORKERS = 32;
const SAMPLE_MS = 500;

/** How a session is ended: killed, stopped in order, stopped and then cut, or not at all. */
export const BLOWS = ['kill', 'stop', 'cut'] as const;
export type Blow = (typeof BLOWS)[number];

export interface Session extends Ended {
  readonly seconds: number;
  /** Resident memory of the runner over time, in bytes. */
  readonly memory: readonly number[];
}

/** `boundbook run` as a process of its own, until a blow ends it. */
export async function runUntil(
  program: string,
  root: string,
  blow: Blow | null,
  afterMs: number,
  flags: readonly string[] = [],
): Promise<Session> {
  const argv = [join(program, 'cli.js'), 'run', '--json', '--workers', String(WORKERS), ...flags];
  const begin = performance.now();
  const child = spawn(process.execPath, argv, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
    });
  }
  const memory: number[] = [];
  const sampling = setInterval(() => memory.push(...residentOf(child)), SAMPLE_MS);
  const striking = blow === null ? undefined : setTimeout(() => strike(child, blow), afterMs);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  clearInterval(sampling);
  clearTimeout(striking);
  const hit = blow !== null && performance.now() - begin >= afterMs;
  return { hit, code, ...texts, seconds: (performance.now() - begin) / 1000, memory };
}

function strike(child: ChildProcess, blow: Blow): void {
  child.kill(blow === 'kill' ? 'SIGKILL' : 'SIGINT');
  if (blow === 'cut') setTimeout(() => child.kill('SIGINT'), 200);
}

function residentOf({ pid, exitCode, signalCode }: ChildProcess): number[] {
  if (pid === undefined || exitCode !== null || signalCode !== null) return [];
  try {
    const kilobytes = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kilobytes === undefined ? [] : [Number(kilobytes) * 1024];
  } catch {
    return [];
  }
}

/** By how much the least of the last third lies above the least of the second, in bytes: what is in flight comes and goes. */
export function growthOf(memory: readonly number[]): number {
  const third = Math.floor(memory.length / 3);
  return Math.min(...memory.slice(-third)) - Math.min(...memory.slice(third, 2 * third));
}
