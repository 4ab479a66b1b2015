import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Ends the process groups of a runner that died without a chance to do so (`kill -9`, out of memory). It is a small
 * process of its own that holds the reading end of a pipe: when the runner is gone, however it went, the pipe closes,
 * and every group that is still registered gets SIGTERM and, after a grace time, SIGKILL.
 */
export class Watchdog {
  readonly #child: ChildProcess;

  constructor(graceMs: number) {
    // The program is passed as text, so that it does not depend on a file that may be replaced while a run goes on.
    this.#child = spawn(process.execPath, ['-e', `(${guard.toString()})(${graceMs})`], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
      env: {},
      cwd: '/',
    });
    this.#child.on('error', () => undefined);
    this.#child.stdin?.on('error', () => undefined);
    this.#child.unref();
  }

  watch(group: number): void {
    this.#child.stdin?.write(`+${group}\n`);
  }

  forget(group: number): void {
    this.#child.stdin?.write(`-${group}\n`);
  }

  /** Ends the watchdog; groups that are still registered are ended too. */
  close(): void {
    this.#child.stdin?.end();
  }
}

/** Runs in the watchdog's process, so it may use nothing but Node's globals. */
function guard(graceMs: number): void {
  const groups = new Set<number>();
  let rest = '';
  const signalAll = (name: 'SIGTERM' | 'SIGKILL'): void => {
    for (const group of groups) {
      try {
        process.kill(-group, name);
      } catch {
        groups.delete(group);
      }
    }
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => undefined);
  process.stdin.setEncoding('utf8');
  process.stdin.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const group = Number(line.slice(1));
      if (line.startsWith('+')) groups.add(group);
      else groups.delete(group);
    }
  });
  process.stdin.on('close', () => {
    signalAll('SIGTERM');
    if (groups.size > 0) setTimeout(() => signalAll('SIGKILL'), graceMs);
  });
}
