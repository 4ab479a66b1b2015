import { ProcessGroup } from '../process-group.js';
import type { Watchdog } from '../watchdog.js';

export interface StopCommand {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: readonly string[];
  readonly mark: string;
  /** How long it may take. */
  readonly limitMs: number;
  readonly watchdog: Watchdog | null;
}

/** How a stop command ended that did not end well. */
export interface StopFailure {
  readonly exit_status: number | null;
  readonly signal: string | null;
  readonly timed_out: boolean;
  /** The system's code when it could not be started, else the end of its stderr. */
  readonly text: string | null;
}

const TEXT_BYTES = 500;

/** Runs a declared stop command to its end or its limit. @returns null when it ended with exit status 0 */
export async function runStop(command: StopCommand): Promise<StopFailure | null> {
  const { argv, cwd, env, mark, limitMs, watchdog } = command;
  let tail = Buffer.alloc(0);
  const stderr = (chunk: Buffer): void => {
    tail = Buffer.concat([tail, chunk]).subarray(-TEXT_BYTES);
  };
  const group = new ProcessGroup({ argv, cwd, env, mark, stdout: () => undefined, stderr }, watchdog);
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    void group.stop(0).catch(() => undefined);
  }, limitMs);
  await group.exit;
  clearTimeout(timer);
  const { exit_status, signal, spawnError } = await group.clear();
  if (exit_status === 0 && !timedOut) return null;
  const text = spawnError ?? tail.toString('utf8').toWellFormed();
  return {
    exit_status,
    signal,
    timed_out: timedOut,
    text: text === '' ? null : text.slice(-TEXT_BYTES).toWellFormed(),
  };
}
