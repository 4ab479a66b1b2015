import type { FailureSignals } from '../../attempts/signals.js';
import type { StageExit } from './stage-process.js';

type Observed = Pick<FailureSignals, 'phase' | 'cause'> & Partial<FailureSignals>;

/** What a stage's process leaves, whatever came of it: output streams, and how it ended as its finish reason. */
export function endOfStage(exit: StageExit, seconds: number) {
  const { stdout, stderr } = exit;
  return {
    objects: {
      ...(stdout.length === 0 ? {} : { stdout }),
      ...(stderr.length === 0 ? {} : { stderr }),
    },
    usage: null,
    finishReason: describeEnd(exit),
    seconds,
    queueSeconds: 0,
  } as const;
}

/**
 * The typed signals of a process that did not end well; null for exit status 0, which says nothing about what it
 * made (F-123). The text is the end of stderr, for people.
 */
export function exitSignals(exit: StageExit): Observed | null {
  const { exit_status, signal } = exit;
  const text = exit.stderr.subarray(-500).toString('utf8');
  if (exit.spawnError !== null) return { phase: 'spawn', cause: 'spawn_failed', text: exit.spawnError };
  if (exit.timedOut) return { phase: 'running', cause: 'time_limit', exit_status, signal, text };
  if (signal !== null) return { phase: 'running', cause: 'killed_by_signal', signal, text };
  if (exit_status !== 0) return { phase: 'running', cause: 'exit_status', exit_status, text };
  return null;
}

function describeEnd({ spawnError, timedOut, signal, exit_status }: StageExit): string {
  if (spawnError !== null) return `not started: ${spawnError}`;
  const end = signal ?? `exit ${exit_status}`;
  return timedOut ? `time limit, ${end}` : end;
}
