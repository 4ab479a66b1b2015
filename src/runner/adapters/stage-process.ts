import { type Exit, ProcessGroup } from '../process-group.js';
import type { Watchdog } from '../watchdog.js';

export interface StageCommand {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: readonly string[];
  readonly mark: string;
  readonly wallMs: number;
  readonly graceMs: number;
  /** How much of each output stream is kept; the rest is read and dropped. */
  readonly outputBytes: number;
  readonly watchdog: Watchdog | null;
}

export interface StageExit extends Exit {
  /** The wall limit came first; how the process then ended is in the other fields. */
  readonly timedOut: boolean;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

/**
 * Runs one command of a stage to its end: SIGTERM at the wall limit, SIGKILL to the whole group after the grace time
 * (F-113), and nothing of it left afterwards (F-115). Null when it was stopped from outside.
 */
export async function runStage(command: StageCommand, signal: AbortSignal): Promise<StageExit | null> {
  if (signal.aborted) return null;
  const [stdout, stderr] = [new Kept(command.outputBytes), new Kept(command.outputBytes)];
  const { argv, cwd, env, mark } = command;
  const group = new ProcessGroup(
    { argv, cwd, env, mark, stdout: stdout.take, stderr: stderr.take },
    command.watchdog,
  );
  let stopped: 'limit' | 'outside' | null = null;
  const stop = (why: 'limit' | 'outside') => {
    stopped ??= why;
    void group.stop(command.graceMs);
  };
  const onAbort = () => stop('outside');
  const timer = setTimeout(() => stop('limit'), command.wallMs);
  signal.addEventListener('abort', onAbort);
  await group.exit;
  clearTimeout(timer);
  signal.removeEventListener('abort', onAbort);
  const exit = await group.clear();
  if (stopped === 'outside') return null;
  return { ...exit, timedOut: stopped === 'limit', stdout: stdout.bytes(), stderr: stderr.bytes() };
}

/** The first bytes of a stream. */
class Kept {
  readonly #cap: number;
  readonly #chunks: Buffer[] = [];
  #size = 0;

  constructor(cap: number) {
    this.#cap = cap;
  }

  readonly take = (chunk: Buffer): void => {
    if (this.#size >= this.#cap) return;
    const kept = chunk.subarray(0, this.#cap - this.#size);
    this.#size += kept.length;
    this.#chunks.push(kept);
  };

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}
