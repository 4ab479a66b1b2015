import type { Entry, EntryOf } from '../ledger/entries/entry.js';
import type { LedgerFold } from '../ledger/fold.js';
import type { Findings } from './finding.js';

/** Checks which session an entry is of, before the fold takes it: beyond what the fold itself refuses. */
export function checkSession(entry: Entry, fold: LedgerFold, findings: Findings): void {
  if (entry.type === 'attempt.recovered') checkRecovery(entry, fold, findings);
  if (entry.type !== 'stage.finished') return;
  const id = fold.slots.sessionOf(entry.slot);
  const end = id === null ? null : (fold.sessions.get(id)?.end ?? null);
  if (id === null || end === null) return;
  findings.add({
    code: 'SESSION_OVER',
    where: { seq: entry.seq, slot: entry.slot },
    message: `session ${id} ended with entry ${end.seq}, yet a stage of its attempt ends here`,
    evidence: { session: id, ended: end.seq, reason: end.reason },
  });
}

/** A recovery names the process of the session that had the attempt, and a reason that fits both processes (P13). */
function checkRecovery(entry: EntryOf<'attempt.recovered'>, fold: LedgerFold, findings: Findings): void {
  const holder = fold.sessions.get(fold.slots.sessionOf(entry.slot) ?? '')?.process;
  const finder = fold.sessions.get(entry.session)?.process;
  if (holder === undefined || finder === undefined) return;
  const { reason, boot_id, pid } = entry.evidence;
  const own = fold.slots.sessionOf(entry.slot) === entry.session;
  const names = holder.boot_id === boot_id && holder.pid === pid;
  const sameBoot = holder.boot_id === finder.boot_id;
  const sameProcess = sameBoot && holder.pid === finder.pid && holder.started === finder.started;
  const fits =
    reason === 'boot_changed'
      ? !sameBoot
      : reason === 'abandoned'
        ? own
        : reason === 'same_process'
          ? sameProcess
          : sameBoot && !sameProcess;
  if (names && fits) return;
  findings.add({
    code: 'RECOVERY_UNFOUNDED',
    where: { seq: entry.seq, slot: entry.slot, pointer: '/evidence' },
    message: names
      ? `the reason ${reason} does not fit the processes of the two sessions`
      : `the evidence is about process ${pid}, the attempt belonged to process ${holder.pid}`,
    evidence: { entry: { ...entry.evidence }, holder: { ...holder }, finder: { ...finder } },
  });
}
