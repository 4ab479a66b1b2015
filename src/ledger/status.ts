import { BoundbookError } from '../core/errors.js';
import { sequenceGaps } from '../manifest/lineage.js';
import { overduePlans } from '../manifest/overdue.js';
import { loadManifest } from '../manifest/select.js';
import { readWorkspace, type StoredManifest } from '../manifest/workspace.js';
import type { ClosedRound } from './adjudications.js';
import { type ManifestReference, openBook } from './book.js';
import { type CarriedSlots, carriedSlots } from './carried-slots.js';
import { maskParts, type ShownParts } from './costs.js';
import type { LedgerFold } from './fold.js';
import type { Restoration } from './incarnations.js';
import type { NotedDeviation } from './plan-book.js';
import type { Costs } from './plan-costs.js';
import type { LedgerHead } from './reader.js';
import type { Deviation } from './sessions.js';
import { type Session, sessionSeconds } from './sessions.js';
import type { QueueCounts, StateCounts } from './slot-book.js';
import { findEntry, type SuccessionStatus, successionStatus } from './succession-status.js';

/** What may be said of a ledger at any time: counts, coverage and cost, and no outcome (law 8). */
export interface LedgerStatus {
  readonly head: LedgerHead;
  readonly queues: readonly QueueCounts[];
  readonly total: StateCounts;
  /** Closed under the superseded plan; among the settled and unresolved ones. null when nothing was carried. */
  readonly carried: CarriedSlots | null;
  readonly attempts: {
    readonly first: number;
    readonly replacement: number;
    readonly regrade: number;
    readonly recovered: number;
    /** Of the recovered ones. */
    readonly abandoned: number;
  };
  readonly costs: ShownCosts;
  readonly sessions: readonly SessionStatus[];
  readonly deviations: readonly Deviation[];
  readonly noted: readonly NotedDeviation[];
  readonly adjudication: AdjudicationStatus;
  /** 1; one more for each older copy that was put back. */
  readonly incarnation: number;
  readonly restorations: readonly Restoration[];
  readonly unblinded: { readonly seq: number; readonly time: string; readonly partial: boolean } | null;
}

/** Costs in which everything that tells outcomes is null while they are blinded (law 8). */
export type ShownCosts = ShownParts & Omit<Costs, keyof ShownParts | 'arms'>;

/** Undetermined slots, and the round in which somebody judges them (P14). */
export interface AdjudicationStatus {
  /** Slots that nobody has judged. */
  readonly waiting: number;
  readonly open: {
    readonly round: string;
    readonly seq: number;
    readonly items: number;
    readonly judged: number;
  } | null;
  /** Rounds that have ended, in order; `pairs` and `agreeing` are their intra-rater figure. */
  readonly closed: readonly ClosedRound[];
}

export interface SessionStatus {
  readonly session: string;
  readonly started: string;
  readonly last: string;
  readonly seconds: number;
  readonly pid: number;
  /** Why it ended; null while it runs, or when its process died. */
  readonly ended: string | null;
}

export interface Status {
  readonly stored: StoredManifest;
  /** null before the first run. */
  readonly ledger: LedgerStatus | null;
  /** Where it stands among its revisions. */
  readonly succession: SuccessionStatus;
  readonly overdue: readonly {
    readonly name: string;
    readonly revision: number;
    readonly due: string;
    readonly manifests: readonly string[];
  }[];
  /** Breaks in the workspace's sequence of manifests: a frozen plan that was taken away leaves one (DESIGN §6). */
  readonly gaps: readonly { readonly manifest: string; readonly message: string }[];
}

/**
 * The state of a plan and its ledger. Works beside a run.
 *
 * @param today `YYYY-MM-DD`, for plans past their due date
 * @throws {BoundbookError} as `openBook` for reading, except that a ledger may be absent.
 */
export async function readStatus(root: string, reference: ManifestReference, today: string): Promise<Status> {
  const stored = typeof reference === 'object' ? reference : await loadManifest(root, reference);
  const { manifests } = await readWorkspace(root);
  return {
    stored,
    ledger: await ledgerStatus(root, stored),
    succession: successionStatus(root, stored, manifests),
    overdue: overdue(root, manifests, today),
    gaps: sequenceGaps(manifests).map(({ where, message }) => ({ manifest: where, message })),
  };
}

async function ledgerStatus(root: string, stored: StoredManifest): Promise<LedgerStatus | null> {
  if (stored.manifest.plan === null) return null;
  try {
    const book = await openBook(root, stored, 'read');
    book.close();
    const { fold } = book;
    const { unblinded } = fold;
    return {
      head: book.head(),
      queues: fold.slots.counts(),
      total: fold.slots.total(),
      carried: carriedSlots(fold),
      attempts: { ...fold.attempts, recovered: fold.recovered, abandoned: fold.abandoned },
      costs: shownCosts(fold.costs(), fold.outcomesVisible),
      sessions: [...fold.sessions.all()].map(sessionStatus),
      deviations: fold.deviations,
      noted: fold.noted,
      adjudication: adjudicationStatus(fold),
      incarnation: fold.identity?.incarnation ?? 1,
      restorations: fold.restorations,
      unblinded:
        unblinded === null ? null : { seq: unblinded.seq, time: unblinded.time, partial: unblinded.partial },
    };
  } catch (error) {
    if (error instanceof BoundbookError && error.code === 'LEDGER_NOT_FOUND') return null;
    throw error;
  }
}

function adjudicationStatus({ slots, adjudications: { open, closed } }: LedgerFold): AdjudicationStatus {
  return {
    waiting: [...slots.judgeable(false)].length,
    open:
      open === null
        ? null
        : {
            round: open.round,
            seq: open.seq,
            items: open.items.length + open.duplicates,
            judged: open.judged.length,
          },
    closed,
  };
}

function shownCosts({ arms: _arms, ...costs }: Costs, visible: boolean): ShownCosts {
  return visible ? costs : { ...costs, ...maskParts(costs) };
}

function sessionStatus(session: Session): SessionStatus {
  return {
    session: session.id,
    started: session.startedAt,
    last: session.lastAt,
    seconds: sessionSeconds(session),
    pid: session.process.pid,
    ended: session.end?.reason ?? null,
  };
}

/** Plans whose report was due and cannot have been made: their outcomes are blinded to this day. */
function overdue(root: string, manifests: readonly StoredManifest[], today: string): Status['overdue'] {
  const isUnblinded = (stored: StoredManifest): boolean => {
    const found = findEntry(root, stored, 'unblinded');
    return found !== null && typeof found === 'object';
  };
  return overduePlans(manifests, today, isUnblinded).map((plan) => ({
    name: plan.name,
    revision: plan.revision,
    due: plan.due,
    manifests: plan.manifests.map(({ file }) => file),
  }));
}
