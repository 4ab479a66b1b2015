import { randomBytes } from 'node:crypto';
import type { StageCgroup } from '../cgroup.js';
import { type Exit, ProcessGroup } from '../process-group.js';
import type { Watchdog } from '../watchdog.js';
import { Spool } from './spool.js';
import type { StopFailure } from './stop-command.js';

export interface StageCommand {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: readonly string[];
  readonly mark: string;
  readonly wallMs: number;
  /** How long nothing may be written; absent: for ever. */
  readonly idleMs?: number | null;
  readonly graceMs: number;
  /** How much of each output stream is kept; the rest is read, counted and dropped. */
  readonly outputBytes: number;
  /** A folder in which output that is too large for memory is kept until it is an object. */
  readonly spoolFolder: string;
  /** Ends what lives outside of the process group; called once the group is gone, however it went. */
  readonly stop?: (() => Promise<StopFailure | null>) | null;
  readonly cgroup?: StageCgroup | null;
  /** The folder of the attempt: whoever is in there when the stage is over is ended with it. */
  readonly folder?: string | null;
  readonly watchdog: Watchdog | null;
}

export interface StageExit extends Exit {
  /** The limit that came first, if one did; how the process then ended is in the other fields. */
  readonly limit: 'wall' | 'idle' | null;
  readonly stdout: Spool;
  readonly stderr: Spool;
  readonly stopFailure: StopFailure | null;
  /** Whether a process was ended for want of memory; null when no control group was watched. */
  readonly oomKill: boolean | null;
}

/**
 * Runs one command of a stage to its end: SIGTERM at a limit, SIGKILL to the whole group after the grace time
 * (F-113), and nothing of it left afterwards (F-115). Null when it was stopped from outside.
 */
export async function runStage(command: StageCommand, signal: AbortSignal): Promise<StageExit | null> {
  if (signal.aborted) {
    await command.cgroup?.remove();
    return null;
  }
  const { argv, cwd, env, mark, outputBytes, watchdog, folder = null } = command;
  const cgroup = command.cgroup ?? null;
  const killsBefore = cgroup?.oomKills() ?? 0;
  const name = `${command.spoolFolder}/.spool-${randomBytes(8).toString('hex')}`;
  const [stdout, stderr] = [
    new Spool(`${name}.stdout`, outputBytes),
    new Spool(`${name}.stderr`, outputBytes),
  ];
  const quiet = new IdleLimit(command.idleMs ?? null, () => stop('idle'));
  const heard = (spool: Spool) => (chunk: Buffer) => {
    quiet.heard();
    spool.take(chunk);
  };
  const group = new ProcessGroup(
    { argv, cwd, env, mark, stdout: heard(stdout), stderr: heard(stderr), cgroup, folder },
    watchdog,
  );
  let stopped: 'wall' | 'idle' | 'outside' | null = null;
  const stop = (why: 'wall' | 'idle' | 'outside') => {
    stopped ??= why;
    // What fails here fails again below.
    group.stop(command.graceMs).catch(() => undefined);
  };
  const onAbort = () => stop('outside');
  const timer = setTimeout(() => stop('wall'), command.wallMs);
  quiet.start();
  signal.addEventListener('abort', onAbort);
  await group.exit;
  clearTimeout(timer);
  quiet.close();
  signal.removeEventListener('abort', onAbort);
  const exit = await group.clear();
  const stopFailure = (await command.stop?.()) ?? null;
  const oomKill = cgroup === null ? null : cgroup.oomKills() > killsBefore;
  await cgroup?.remove();
  if (stopped === 'outside') {
    stdout.close();
    stderr.close();
    return null;
  }
  return { ...exit, limit: stopped, stdout, stderr, stopFailure, oomKill };
}

/** Calls when nothing was heard for so long. Many small chunks cost one timer each time it runs out, not each. */
class IdleLimit {
  readonly #ms: number | null;
  readonly #idle: () => void;
  #last = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(ms: number | null, idle: () => void) {
    this.#ms = ms;
    this.#idle = idle;
  }

  start(): void {
    this.#last = performance.now();
    if (this.#ms !== null) this.#wait(this.#ms);
  }

  heard(): void {
    this.#last = performance.now();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #wait(ms: number): void {
    this.#timer = setTimeout(() => {
      const left = (this.#ms ?? 0) - (performance.now() - this.#last);
      if (left > 0) this.#wait(left);
      else this.#idle();
    }, Math.ceil(ms));
  }
}
