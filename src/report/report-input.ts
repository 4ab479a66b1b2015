import type { Attribution } from '../attempts/rules.js';
import type { Digest } from '../core/digest.js';
import type { CarriedSlots } from '../ledger/carried-slots.js';
import type { Costs } from '../ledger/plan-costs.js';
import type { ServiceTrail } from '../ledger/service-trail.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { Stage } from '../protocol/schema/signals.js';
import type { TaskIds } from '../slots/plan.js';
import type { SlotKey } from '../slots/slot.js';
import type { RecheckInput } from './rechecks.js';
import type { RegradingInput } from './regradings.js';
import type { Revision } from './revisions.js';

/** Everything that a report is a function of (law 10): plain values, no hosts or paths, no time but that of a note. */
export interface ReportInput {
  readonly manifest: ManifestInput;
  readonly protocol: Protocol;
  readonly taskIds: TaskIds;
  readonly plan: { readonly count: number; readonly digest: Digest };
  readonly ledger: LedgerIdentity;
  /** null while outcomes are blinded (law 8). */
  readonly unblinded: { readonly partial: boolean } | null;
  /** Slots that an attempt was started for; every other planned slot is pending. */
  readonly slots: Iterable<SlotOutcome>;
  readonly attempts: {
    readonly first: number;
    readonly replacement: number;
    readonly regrade: number;
    readonly recovered: number;
    /** Of all of them, started when outcomes could be read already: what rests on them is exploratory. */
    readonly after_unblinding: number;
  };
  /** The amendments that led to this plan, the latest first (P22). */
  readonly revisions: readonly Revision[];
  /** The revision that took this plan's place, as its ledger says. */
  readonly successor: Successor | null;
  /** What was taken over from the superseded plan's ledger, whose report has the attempts, failures and costs; null when nothing was. */
  readonly carried: CarriedSlots | null;
  readonly failures: readonly FailureCount[];
  readonly generations: readonly GenerationCount[];
  readonly costs: Costs;
  readonly incidents: readonly Incident[];
  /** Services that did not stay what they were. */
  readonly services: Pick<ServiceTrail, 'changes' | 'doubts' | 'swaps'>;
  /** Outputs graded again with a corrected grader. */
  readonly regradings: readonly RegradingInput[];
  /** Stopped outputs generated again without the stop rule. */
  readonly rechecks: readonly RecheckInput[];
  readonly noted: readonly NotedDeviation[];
  /** Older copies of the ledger that were put back. */
  readonly restorations: readonly LostEntries[];
}

/** The revision that took a plan's place. */
export interface Successor {
  readonly manifest: Digest;
  readonly revision: number;
  readonly reason: string;
  /** Position of the entry that says so. */
  readonly entry: number;
}

/** What was lost when an older copy was put back: entries that were known outside, whatever they held. */
export interface LostEntries {
  readonly incarnation: number;
  /** Position of the entry that says so. */
  readonly seq: number;
  readonly known: number;
  readonly lost: number;
  readonly reason: string;
}

/** What of a manifest a reader of figures must know. */
export interface ManifestInput {
  readonly digest: Digest;
  readonly sequence: number;
  readonly supersedes: Digest | null;
  /** How many earlier plans of the workspace bound the same task list. */
  readonly task_use: readonly { readonly binding: string; readonly plans: number }[];
}

/** Name and leaf are empty before the first run. */
export interface LedgerIdentity {
  readonly name: string;
  readonly entries: number;
  /** Hash of the last leaf, and root of the RFC 6962 tree over all of them: 64 hexadecimal digits each. */
  readonly leaf: string;
  readonly root: string;
}

export type SlotOutcome = { readonly key: SlotKey } & (
  | { readonly state: 'settled'; readonly value: number }
  | { readonly state: 'unresolved' | 'pending' }
);

/** Failed attempts of one kind. */
export interface FailureCount {
  readonly arm: string;
  readonly stage: Stage;
  readonly cause: string;
  readonly attribution: Attribution | 'pending';
  readonly attempts: number;
}

/** Finished generations of an arm by the server's finish reason; null where it gave none. */
export interface GenerationCount {
  readonly arm: string;
  readonly finish_reason: string | null;
  readonly generations: number;
}

/** B9: a change in mid-run, as a person noted it. */
export interface NotedDeviation {
  readonly entry: number;
  readonly time: string;
  readonly text: string;
  /** Accepted values by field; empty for all slots. */
  readonly selector: Readonly<Record<string, readonly string[]>>;
  readonly slots: number;
  /** SHA-256 over the ids of those slots, ascending, one a line. */
  readonly slots_digest: Digest;
  readonly after_unblinding: boolean;
}

/** Something that happened beside the plan. */
export interface Incident {
  readonly what: string;
  readonly count: number;
}
