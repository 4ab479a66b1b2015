import type { FailureSignals } from '../../attempts/signals.js';
import type { ObjectFolder } from '../../ledger/objects.js';
import type { Evidence } from './adapter.js';
import type { StageExit } from './stage-process.js';

type Observed = Pick<FailureSignals, 'phase' | 'cause'> & Partial<FailureSignals>;

/**
 * What a stage's process leaves, whatever came of it: output streams, and how it ended as its finish reason.
 *
 * @throws {BoundbookError} DISK_FULL or FILE_UNWRITABLE
 */
export async function endOfStage(exit: StageExit, seconds: number, folder: ObjectFolder) {
  const objects: Record<string, Evidence> = {};
  for (const name of ['stdout', 'stderr'] as const) {
    const evidence = await exit[name].evidence(folder);
    if (evidence !== null) objects[name] = evidence;
  }
  return { objects, usage: null, finishReason: describeEnd(exit), seconds, queueSeconds: 0 } as const;
}

/**
 * The typed signals of a process that did not end well; null for exit status 0, which says nothing about what it
 * made (F-123). The text is the end of stderr, for people.
 */
export function exitSignals(exit: StageExit): Observed | null {
  const { exit_status, signal, limit } = exit;
  const text = exit.stderr.text();
  if (exit.spawnError !== null) return { phase: 'spawn', cause: 'spawn_failed', text: exit.spawnError };
  if (limit !== null) {
    const cause = limit === 'wall' ? 'time_limit' : 'idle_limit';
    return { phase: 'running', cause, exit_status, signal, text };
  }
  if (signal !== null) return { phase: 'running', cause: 'killed_by_signal', signal, text };
  if (exit_status !== 0) return { phase: 'running', cause: 'exit_status', exit_status, text };
  return null;
}

/** Why output of a stage could not be kept although the disk is well; null when it was. */
export function lostOutput({ stdout, stderr }: StageExit): string | null {
  return stdout.lost ?? stderr.lost;
}

/** What was seen of memory, for every failure of a stage that was watched. */
export function memorySignals({ oomKill }: StageExit): Pick<FailureSignals, 'oom_kill'> {
  return oomKill === null ? {} : { oom_kill: oomKill };
}

function describeEnd({ spawnError, limit, signal, exit_status }: StageExit): string {
  if (spawnError !== null) return `not started: ${spawnError}`;
  const end = signal ?? `exit ${exit_status}`;
  if (limit === null) return end;
  return limit === 'wall' ? `time limit, ${end}` : `idle limit, ${end}`;
}
