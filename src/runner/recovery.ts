import type { DraftOf, EntryDraft } from '../ledger/entries/entry.js';
import type { LedgerFold } from '../ledger/fold.js';
import type { LedgerObject } from '../ledger/objects.js';
import type { Session } from '../ledger/sessions.js';
import type { OpenSlot } from '../ledger/slot-book.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { Stage } from '../protocol/schema/signals.js';
import type { Adapter, LostAttempt } from './adapters/adapter.js';
import type { StageRecord } from './adapters/stage-record.js';
import { judged } from './cut-candidate.js';
import { conclusions, stateAfter } from './drafts.js';
import type { Journal } from './journal.js';
import { type Job, jobOf, type Tasks } from './plan-queue.js';
import { endMarked } from './process-group.js';
import { fateOf, type ProcessIdentity } from './process-identity.js';

type Evidence = DraftOf<'attempt.recovered'>['evidence'];

/** An attempt that was taken over with a candidate: its grading is due. */
export interface TakenOver {
  readonly job: Job;
  readonly attempt: string;
  readonly candidate: LedgerObject['digest'];
}

export interface RecoverySetting {
  readonly journal: Journal;
  readonly adapter: Adapter;
  readonly protocol: Protocol;
  readonly tasks: Tasks;
  readonly session: string;
  readonly own: ProcessIdentity;
  /** Sessions that are at work in this very process. */
  readonly active: ReadonlySet<string>;
}

export interface RecoveryResult {
  /** Attempts whose process was found gone. */
  readonly recovered: number;
  readonly takenOver: readonly TakenOver[];
}

/**
 * Takes care of attempts without end whose process is gone (DESIGN §9): what it had made durable is adopted, the first
 * report above all (law 3); a candidate without a report is graded; nothing at all is an infrastructure failure by
 * the evidence that the process is gone. Attempts of a living process are left alone.
 */
export async function recoverAttempts(setting: RecoverySetting): Promise<RecoveryResult> {
  const { journal } = setting;
  await endLeftovers(journal.fold, setting);
  const takenOver: TakenOver[] = [];
  let recovered = 0;
  for (const open of [...journal.fold.slots.open()]) {
    const session = open.session === null ? undefined : journal.fold.sessions.get(open.session);
    const evidence = session === undefined ? null : evidenceAgainst(session, setting);
    const job = jobOf(setting.protocol, setting.tasks, { ...open.key, id: open.slot });
    if (evidence === null || job === null) continue;
    const drafts = await recoveryDrafts(open, job, evidence, setting);
    if (drafts.entries.length === 0) continue;
    if (!(await journal.claim(open.rules, drafts.entries, drafts.objects))) continue;
    recovered++;
    const after = journal.fold.slots.state(open.slot);
    if (after.phase === 'grading') {
      takenOver.push({ job, attempt: after.attempt, candidate: after.candidate });
    }
  }
  return { recovered, takenOver };
}

/** Evidence that a session's process is gone; null when it lives. */
export function evidenceAgainst(
  session: Session,
  { own, active }: Pick<RecoverySetting, 'own' | 'active'>,
): Evidence | null {
  const { boot_id, pid, started } = session.process;
  const fate = fateOf(session.process, own.boot_id);
  if (fate !== 'alive') return { reason: fate, boot_id, pid };
  const isOwnProcess = pid === own.pid && started === own.started;
  return isOwnProcess && !active.has(session.id) ? { reason: 'same_process', boot_id, pid } : null;
}

/** Processes that a dead session left behind must be gone before anything of theirs is judged or repeated (F-115). */
async function endLeftovers(fold: LedgerFold, { own }: RecoverySetting): Promise<void> {
  for (const session of fold.sessions.all()) {
    const leftService = [...session.services.values()].some(({ stoppedSeconds }) => stoppedSeconds === null);
    if (session.end !== null && !leftService) continue;
    if (session.process.boot_id !== own.boot_id || fateOf(session.process, own.boot_id) === 'alive') continue;
    await endMarked(`${session.id}.`);
  }
}

/** What is recorded of an open slot whose process is gone; nothing when no attempt of it is under way. */
async function recoveryDrafts(
  { state, rules, slot, takenOver }: OpenSlot,
  job: Job,
  evidence: Evidence,
  setting: RecoverySetting,
): Promise<{ entries: readonly EntryDraft[]; objects: readonly LedgerObject[] }> {
  if (state.phase !== 'generating' && state.phase !== 'grading') {
    return { entries: conclusions(state, rules, 0), objects: [] };
  }
  const { attempt } = state;
  await setting.adapter.endLeftovers?.({ attempt, takenOver });
  const ends: StageRecord[] = [];
  const now = () => stateAfter(state, draftsOf(ends), rules);
  const adopt = async (stage: Stage, candidate: LostAttempt['candidate']) => {
    const record = await setting.adapter.recover(stage, { attempt, work: job.work, candidate, takenOver });
    if (record?.draft.slot !== slot || record.draft.stage !== stage) return;
    ends.push(judged(seenAfter(record, evidence), rules.rules));
  };
  if (state.phase === 'generating') await adopt('generate', null);
  const generated = now();
  if (generated.phase === 'grading') await adopt('grade', generated.candidate);
  const found = ends.length > 0 ? 'end' : state.phase === 'grading' ? 'candidate' : 'nothing';
  const taken: EntryDraft = {
    type: 'attempt.recovered',
    attempt,
    slot,
    session: setting.session,
    found,
    evidence,
  };
  const entries = [taken, ...draftsOf(ends)];
  // How long the attempt took is not known: its process died with the clock.
  const following = conclusions(stateAfter(state, entries, rules), rules, 0);
  return { entries: [...entries, ...following], objects: ends.flatMap(({ objects }) => objects) };
}

/** A failure, or an end that cut a candidate, that was durable, and then the host was started anew before the ledger had it. */
function seenAfter(record: StageRecord, { reason }: Evidence): StageRecord {
  const { draft, cut } = record;
  if (reason !== 'boot_changed') return record;
  if (draft.result.kind !== 'failure') {
    return cut === undefined ? record : { ...record, cut: { ...cut, host_event: reason } };
  }
  const signals = { ...draft.result.signals, host_event: reason };
  return { ...record, draft: { ...draft, result: { kind: 'failure', signals } } };
}

function draftsOf(records: readonly StageRecord[]): readonly EntryDraft[] {
  return records.map(({ draft }) => draft);
}
