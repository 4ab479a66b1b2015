import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Injection, straceArgv } from './strace.js';
import type { Workspace } from './workspace.js';

/** What is done to a run: a kill at a time, or something at a system call. Null: nothing. */
export type Blow = { readonly what: 'kill'; readonly afterMs: number } | Injection | null;

/** How a run ended. */
export interface Ended {
  /** Whether the blow fell: the run may have been over before. */
  readonly hit: boolean;
  /** null when it was killed. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function describe(blow: Blow): string {
  if (blow === null) return 'undisturbed';
  if ('afterMs' in blow) return `SIGKILL after ${blow.afterMs} ms`;
  const at = `${blow.step} number ${blow.nth}${blow.stays === true ? ' and all after it' : ''}`;
  return blow.what === 'kill' ? `SIGKILL at ${at}` : `${blow.what} from ${at}`;
}

/** `boundbook run` as a process of its own, and a blow to it. */
export async function strike({ root, cli }: Workspace, blow: Blow, workers: number): Promise<Ended> {
  const log = join(root, 'strace.log');
  rmSync(log, { force: true });
  const run = [process.execPath, cli, 'run', '--json', '--workers', String(workers)];
  const injected = blow !== null && 'step' in blow;
  const [program = '', ...args] = injected ? straceArgv(blow, log, run) : run;
  const child = spawn(program, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    // Calls that go through a ring would not be seen.
    env: { ...process.env, UV_USE_IO_URING: '0' },
  });
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk: Buffer) => {
      texts[name] += chunk.toString('utf8');
    });
  }
  const timer =
    blow !== null && 'afterMs' in blow ? setTimeout(() => child.kill('SIGKILL'), blow.afterMs) : undefined;
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.on('error', reject);
    // Not its close: what it leaves behind may hold its pipes for a while.
    child.on('exit', (code, signal) => resolve([code, signal]));
  });
  clearTimeout(timer);
  await drained(child);
  const hit = signal === 'SIGKILL' || (injected && wasInjected(log));
  return { hit, code, ...texts };
}

/** What has been written by the end of a process has been read, unless something else holds the pipe. */
function drained(child: ReturnType<typeof spawn>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, 200);
    child.on('close', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function wasInjected(log: string): boolean {
  return existsSync(log) && readFileSync(log, 'utf8').includes('(INJECTED)');
}
