import { type ChildProcess, spawn } from 'node:child_process';
import { BoundbookError, systemCode } from '../core/errors.js';
import { type ProcessStat, readStat } from './process-identity.js';
import { processesIn } from './process-places.js';
import { lookout, ProcessTrail } from './process-trail.js';
import { listProcesses, MARK, markedProcesses, signalGroup, signalProcess } from './process-tree.js';
import type { Watchdog } from './watchdog.js';

/** How a process ended; all null when it could not be started. */
export interface Exit {
  readonly exit_status: number | null;
  readonly signal: string | null;
  /** The system's code (`ENOENT`) when the program could not be started. */
  readonly spawnError: string | null;
}

/** Where a process and all its offspring are kept together from its birth, whatever they do to their groups and marks. */
export interface Birthplace {
  /** Runs something that starts a process. */
  give<T>(begin: () => T): T;
  /** The living processes there. */
  members(): readonly ProcessStat[];
}

export interface GroupSpec {
  /** Program and arguments; never a shell (DESIGN §13). */
  readonly argv: readonly string[];
  readonly cwd: string;
  /** Names of environment variables that are passed on, beside PATH and HOME. */
  readonly env: readonly string[];
  /** By which the process and its offspring are found again. */
  readonly mark: string;
  readonly stdout: (chunk: Buffer) => void;
  readonly stderr: (chunk: Buffer) => void;
  /** The control group that it is born in. */
  readonly cgroup?: Birthplace | null;
  /** A folder of its own: who is in there belongs to it. Its offspring is then followed while it runs. */
  readonly folder?: string | null;
}

/** How long the pipes of an ended process may stay open before they are cut. */
const DRAIN_MS = 1000;
const POLL_MS = 20;
/** How long a process may live on after SIGKILL. */
const UNKILLABLE_MS = 30_000;

/**
 * A started program with everything that it starts: one process group, ended as a whole. Its exit counts only when
 * it was seen (F-113), and nothing of it is left afterwards (F-115).
 */
export class ProcessGroup {
  readonly #child: ChildProcess;
  readonly #mark: string;
  readonly #watchdog: Watchdog | null;
  readonly #cgroup: Birthplace | null;
  readonly #folder: string | null;
  readonly #started: string;
  readonly #trail: ProcessTrail;
  readonly #exit: Promise<Exit>;
  #ended: Exit | null = null;

  constructor(spec: GroupSpec, watchdog: Watchdog | null = null) {
    this.#mark = spec.mark;
    this.#watchdog = watchdog;
    this.#cgroup = spec.cgroup ?? null;
    const child = start(spec);
    this.#child = child.process;
    this.#started = (child.process.pid === undefined ? null : readStat(child.process.pid)?.started) ?? '0';
    this.#folder = spec.folder ?? null;
    this.#trail = new ProcessTrail({ pid: this.pid, started: this.#started });
    if (child.process.pid !== undefined) {
      watchdog?.watch(child.process.pid);
      // A control group knows its members better.
      if (this.#folder !== null && this.#cgroup === null) lookout.follow(this.#trail);
    }
    child.process.stdout?.on('data', spec.stdout).on('error', () => undefined);
    child.process.stderr?.on('data', spec.stderr).on('error', () => undefined);
    this.#exit = child.exit.then((exit) => {
      this.#ended = exit;
      return exit;
    });
  }

  /** Also the number of the process group; 0 when the program could not be started. */
  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** How the first process ended, or null while it runs. */
  get ended(): Exit | null {
    return this.#ended;
  }

  /** Resolves when the first process has ended. */
  get exit(): Promise<Exit> {
    return this.#exit;
  }

  /** SIGTERM to the group, SIGKILL after the grace time, and then {@link clear}. */
  async stop(graceMs: number): Promise<Exit> {
    if (this.pid !== 0 && this.#ended === null) {
      signalGroup(this.pid, 'SIGTERM');
      const timer = setTimeout(() => signalGroup(this.pid, 'SIGKILL'), graceMs);
      await this.#exit;
      clearTimeout(timer);
    }
    return this.clear();
  }

  /** After the first process has ended: ends what it left behind, closes the pipes. Resolves when nothing is left. */
  async clear(): Promise<Exit> {
    const exit = await this.#exit;
    if (this.pid !== 0) {
      await endFound(() => this.#left()).finally(() => lookout.leave(this.#trail));
      this.#watchdog?.forget(this.pid);
    }
    await this.#drain();
    return exit;
  }

  /** What lives on of it: by its group, its trail, its mark, its folder or its control group. */
  #left(): readonly ProcessStat[] {
    const all = listProcesses();
    const own = [...markedProcesses(this.#mark, this.#started, all), ...(this.#cgroup?.members() ?? [])];
    const within = this.#folder === null ? [] : processesIn(this.#folder, this.#started, all);
    return this.#trail.look(all, own, within);
  }

  async #drain(): Promise<void> {
    const open = [this.#child.stdout, this.#child.stderr].filter((stream) => stream?.closed === false);
    const closed = open.map((stream) => new Promise<void>((resolve) => stream?.once('close', resolve)));
    const timer = setTimeout(() => {
      for (const stream of open) stream?.destroy();
    }, DRAIN_MS);
    await Promise.all(closed);
    clearTimeout(timer);
  }
}

/**
 * SIGKILL to whatever is found, until nothing is.
 *
 * @throws {BoundbookError} PROCESS_NOT_ENDED when some cannot be shown dead (F-115): whatever they do next would be
 * taken for the work of others.
 */
export async function endFound(find: () => readonly ProcessStat[]): Promise<void> {
  const end = performance.now() + UNKILLABLE_MS;
  for (let left = find(); left.length > 0; left = find()) {
    if (performance.now() > end) throw notEnded(left);
    for (const stat of left) signalProcess(stat, 'SIGKILL');
    await pause(POLL_MS);
  }
}

function notEnded(left: readonly ProcessStat[]): BoundbookError {
  const pids = left.map(({ pid }) => pid);
  return new BoundbookError(
    'PROCESS_NOT_ENDED',
    `processes that were started cannot be ended: ${pids.join(', ')}`,
    {
      hint: 'They ignore SIGKILL, as one does that hangs in a device or a network disk. End them, or restart the host.',
      evidence: { pids },
    },
  );
}

/**
 * Ends every process that carries one of the marks: what a runner left behind that was killed with its watchdog.
 *
 * @throws {BoundbookError} PROCESS_NOT_ENDED
 */
export function endMarked(mark: string): Promise<void> {
  return endFound(() => markedProcesses(mark));
}

function start(spec: GroupSpec): { process: ChildProcess; exit: Promise<Exit> } {
  const [program = '', ...args] = spec.argv;
  let child: ChildProcess;
  try {
    const begin = () =>
      spawn(program, args, {
        cwd: spec.cwd,
        env: environment(spec),
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
        shell: false,
      });
    child = spec.cgroup == null ? begin() : spec.cgroup.give(begin);
  } catch (error) {
    if (error instanceof BoundbookError) throw error;
    // E2BIG and the like are thrown at once (F-121).
    return { process: nothing(), exit: Promise.resolve(notStarted(error)) };
  }
  const exit = new Promise<Exit>((resolve) => {
    child.once('error', (error) => {
      if (child.pid === undefined) resolve(notStarted(error));
    });
    child.once('exit', (code, signal) => resolve({ exit_status: code, signal, spawnError: null }));
  });
  return { process: child, exit };
}

function nothing(): ChildProcess {
  return { pid: undefined, stdout: null, stderr: null } as ChildProcess;
}

function notStarted(error: unknown): Exit {
  return { exit_status: null, signal: null, spawnError: systemCode(error) ?? 'unknown' };
}

function environment(spec: GroupSpec): Record<string, string> {
  const env: Record<string, string> = { [MARK]: spec.mark };
  for (const name of ['PATH', 'HOME', ...spec.env]) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  return env;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
