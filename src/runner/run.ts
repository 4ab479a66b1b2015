import { BoundbookError } from '../core/errors.js';
import { assertPlanned } from '../slots/selector.js';
import { type AdmissionOptions, admit } from './admission.js';
import { CgroupFolder } from './cgroup.js';
import { assertRecheckable, assertStopRule } from './recheck.js';
import type { RunOptions } from './run-options.js';
import { Session } from './session.js';
import type { RunSummary } from './summary.js';

const CLOCK_TOLERANCE_MS = 1000;

/** Sessions that are at work in this process. */
const active = new Set<string>();

/**
 * Executes the selected part of a plan under the gate, from admission to the entry that says why it ended.
 *
 * @throws {BoundbookError} what {@link admit} refuses, with nothing executed; SLOT_NOT_PLANNED; RECHECK_REFUSED; otherwise the error of
 * the cause that ended the session early, with the summary as evidence: STOPPED, BREAKER_OPEN, DISK_FULL,
 * SERVICE_FAILED, PORT_NOT_OWNED, GATE_REFUSED for a binding that changed.
 */
export async function runSession(options: RunOptions): Promise<RunSummary> {
  const check: AdmissionOptions['check'] = (protocol, taskIds) => {
    assertPlanned(options.selection.only, protocol, taskIds);
    if (options.recheck !== undefined) assertStopRule(protocol);
    if (protocol.runner.adapter === 'command' && protocol.runner.cgroup !== undefined) {
      CgroupFolder.open(protocol.runner.cgroup);
    }
  };
  const onRestored: AdmissionOptions['onRestored'] = ({ incarnation, known, lost }) =>
    options.progress(`incarnation ${incarnation}: ${lost} of ${known} entries that were known are lost`);
  const admission = await admit({ ...options, check, onRestored });
  const { book, session } = admission;
  warnOfClock(book.fold.time, options);
  try {
    if (options.recheck !== undefined) assertRecheckable(book, options.recheck);
    active.add(session);
    const summary = await new Session(admission, options, active).run();
    const { error } = summary;
    if (error === null) return summary;
    options.progress(summary.text);
    throw new BoundbookError(error.code, error.message, {
      hint: error.hint ?? 'Run the same command again.',
      evidence: { summary: summary.json, cause: error.evidence ?? null },
      faults: error.faults,
      cause: error,
    });
  } finally {
    active.delete(session);
    book.close();
  }
}

/** Entries never run back in time: with a clock that was set back they bear the last entry's time for a while. */
function warnOfClock(last: string | null, { now, progress }: RunOptions): void {
  const behind = last === null ? 0 : Date.parse(last) - Date.parse(now());
  if (behind < CLOCK_TOLERANCE_MS) return;
  progress(
    `the clock is ${Math.round(behind / 1000)} s behind the ledger's last entry (${last}); until it has caught up, entries bear that time`,
  );
}
