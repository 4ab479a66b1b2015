import type { Sign } from '../analysis/bounds.js';
import type { DecisionStatus } from '../analysis/decision.js';
import type { Digest } from '../core/digest.js';
import type { CarriedSlots } from '../ledger/carried-slots.js';
import type { ShownParts } from '../ledger/costs.js';
import type { RecheckReport } from './rechecks.js';
import type { RegradingInput } from './regradings.js';
import type {
  FailureCount,
  Incident,
  LedgerIdentity,
  ManifestInput,
  NotedDeviation,
  Successor,
} from './report-input.js';
import type { AmendmentKind, Revision } from './revisions.js';

/**
 * The report as one plain value, schema `boundbook/report/1`. Its canonical JSON is the report; text and Markdown are
 * renderings of it.
 */
export interface Report {
  readonly schema: 'boundbook/report/1';
  /** The first member of its JSON, so that no form of a report hides it. */
  readonly amendment: AmendmentKind | null;
  /** Why nothing here confirms anything; empty when that is for the labels to say. */
  readonly demoted: readonly Demotion[];
  readonly protocol: {
    readonly name: string;
    readonly revision: number;
    readonly title: string;
    readonly due: string | null;
  };
  readonly manifest: ManifestInput;
  readonly plan: { readonly slots: number; readonly digest: Digest };
  readonly ledger: LedgerIdentity;
  readonly blinding: 'masked' | 'none';
  readonly visibility: Visibility;
  readonly revisions: readonly Revision[];
  readonly successor: Successor | null;
  readonly carried: CarriedSlots | null;
  readonly notes: readonly string[];
  readonly coverage: { readonly total: Counts; readonly queues: readonly QueueCoverage[] };
  readonly arms: readonly ArmDescription[];
  /** null while blinded (law 8). */
  readonly results: readonly QueueResult[] | null;
  readonly attempts: {
    readonly first: number;
    readonly replacement: number;
    readonly regrade: number;
    readonly recovered: number;
    readonly after_unblinding: number;
  };
  /** null while blinded: a model failure is an outcome. */
  readonly failures: readonly FailureCount[] | null;
  readonly truncation: readonly Truncation[] | null;
  readonly costs: Costs;
  readonly deviations: readonly Incident[];
  /** Absent when nothing was graded again. */
  readonly regradings?: readonly RegradingReport[];
  /** Absent when nothing was rechecked. */
  readonly rechecks?: readonly RecheckReport[];
  readonly noted: readonly NotedDeviation[];
  /** How the intervals are made and what they are worth (P9). */
  readonly interval_notes: readonly string[];
  readonly caveats: readonly string[];
  readonly not_checked: readonly string[];
}

export type Demotion = 'post hoc' | 'unblinded in part' | 'superseded';

export type Visibility = 'blinded' | 'unblinded' | 'unblinded_partially';

/** What a figure may be used for (law 9). */
export type Label = 'confirmatory' | 'secondary' | 'exploratory';

/** An exact value and the double next to it. */
export interface Figure {
  readonly exact: string;
  readonly value: number;
}

export interface BoundFigure {
  readonly lower: Figure;
  readonly upper: Figure;
}

/** N = settled + unresolved + pending; pending slots are planned and not closed. */
export interface Counts {
  readonly planned: number;
  readonly settled: number;
  readonly unresolved: number;
  readonly pending: number;
}

export interface QueueCoverage extends Counts {
  readonly queue: string;
  readonly role: 'confirmatory' | 'exploratory';
  readonly tasks: number;
  readonly reps: number;
  readonly evaluation_seeds: readonly number[];
}

export interface ArmDescription {
  readonly arm: string;
  readonly model: string;
  readonly condition: string;
  readonly grader: string;
  readonly reward: { readonly min: number; readonly max: number };
  readonly training_seeds: readonly (number | null)[];
}

export interface QueueResult {
  readonly queue: string;
  readonly label: 'confirmatory' | 'exploratory';
  readonly scores: ScoreSection | null;
  readonly contrasts: readonly ContrastResult[];
  readonly tables: readonly TableResult[];
  readonly decisions: readonly DecisionResult[];
}

export interface ScoreSection {
  readonly id: string;
  readonly estimand: string;
  readonly unit_of_replication: string;
  readonly tasks: number;
  readonly reps: number;
  /** One row for each set of weights (P7). */
  readonly rows: readonly ScoreRow[];
  /** The same for each evaluation seed; empty when there is one (C8). */
  readonly evaluations: readonly (ScoreRow & { readonly evaluation_seed: number })[];
  readonly arms: readonly ArmMean[];
}

export interface ScoreRow extends Counts {
  readonly arm: string;
  readonly training_seed: number | null;
  /** S: the sum of the settled values. */
  readonly sum: Figure;
  readonly bound: BoundFigure;
  readonly complete: boolean;
  readonly sampling_standard_error: number | null;
  /** Sample SD over evaluation seeds of these very weights: sampling noise only (D-12). */
  readonly evaluation_spread: SpreadFigure | null;
  readonly saturation: Saturation | null;
}

/** All rollouts at one end of the range, with an interval over tasks that does not pretend to certainty (F-143). */
export interface Saturation {
  readonly at: 'lowest' | 'highest';
  readonly tasks: number;
  readonly wilson: { readonly low: number; readonly high: number; readonly level: number };
}

export interface ArmMean {
  readonly arm: string;
  readonly seeds: number;
  readonly bound: BoundFigure;
  readonly complete: boolean;
  readonly spread: SpreadFigure | null;
}

export interface SpreadFigure {
  readonly count: number;
  readonly standard_deviation: number;
  readonly min: Figure;
  readonly max: Figure;
}

/** How the rows of two arms are matched. */
export type Pairing = 'paired_seeds' | 'one_seed' | 'one_side_fixed' | 'no_seed' | 'none';

export interface ContrastResult {
  readonly id: string;
  readonly minuend: string;
  readonly subtrahend: string;
  readonly label: Label;
  readonly pairing: Pairing;
  readonly estimand: string;
  readonly unit_of_replication: string;
  readonly tasks: number;
  readonly missing: { readonly unresolved: number; readonly pending: number };
  readonly complete: boolean;
  readonly bound: BoundFigure | null;
  readonly sign: Sign;
  readonly pairs: readonly PairDifference[];
  /** All three null while anything of the comparison is unresolved or pending (law 6). */
  readonly estimate: Figure | null;
  readonly spread: SpreadFigure | null;
  readonly interval: IntervalResult | null;
  readonly statements: readonly string[];
}

export interface PairDifference {
  readonly minuend_seed: number | null;
  readonly subtrahend_seed: number | null;
  readonly bound: BoundFigure;
}

export interface IntervalResult {
  readonly method: 'two_way_bootstrap' | 'task_bootstrap';
  readonly level: number;
  readonly lower: number;
  readonly upper: number;
  readonly resamples: number;
  readonly seed: number;
  readonly generator: string;
  readonly index: string;
  readonly order: string;
  readonly quantile: string;
  readonly variance: {
    readonly resampled: number;
    readonly exact: Figure;
    readonly seeds: Figure;
    readonly tasks: Figure;
    readonly interaction: Figure;
  };
  readonly degenerate: 'one_task' | 'no_variation' | null;
}

export interface TableResult {
  readonly id: string;
  readonly label: Label;
  readonly partitions: readonly {
    readonly partition: string;
    readonly tasks: number;
    /** null when none of the partition's tasks is in the queue. */
    readonly scores: ScoreSection | null;
    readonly contrasts: readonly ContrastResult[];
  }[];
}

export interface DecisionResult {
  readonly id: string;
  readonly contrast: string;
  readonly label: Label;
  readonly condition: string;
  readonly status: DecisionStatus;
  readonly conclusion: string;
}

export interface Truncation {
  readonly arm: string;
  /** Finished generations with a known finish reason. */
  readonly known: number;
  readonly truncated: number;
  readonly unknown: number;
  /** Those that the declared stop rule ended; absent where none is declared (B10). */
  readonly looped?: number;
}

/** P21. Stages, tokens and gradings are null while outcomes are blinded, and so is everything by arm (law 8). */
export interface Costs extends ShownParts {
  /** Devices × hours that they were held: as the scheduler says where it said so, else as declared. */
  readonly gpu_hours: number;
  /** Of `gpu_hours`, what schedulers said. */
  readonly accounted_gpu_hours: number;
  readonly session_seconds: number;
  readonly service_seconds: number;
  readonly arms: readonly CostOfArm[] | null;
}

export interface CostOfArm extends ShownParts {
  readonly arm: string;
  readonly gpu_hours: number;
  readonly service_seconds: number;
  /** Whether both are shares of what several arms held together. */
  readonly divided: boolean;
}

/** B6: exploratory. What was changed is null while outcomes are blinded (law 8). */
export interface RegradingReport
  extends Omit<RegradingInput, 'outputs' | 'same' | 'changed' | 'truncated' | 'failed'> {
  /** How many slots a report had settled: beside the settled ones it tells those that settled without one. */
  readonly outputs: number | null;
  readonly same: number | null;
  readonly changed: readonly RegradedOutput[] | null;
  readonly truncated: readonly OutputKey[] | null;
  /** Absent for a grader that reads answers. */
  readonly failed?: readonly FailedOutput[] | null;
}

export interface OutputKey {
  readonly queue: string;
  readonly arm: string;
  readonly training_seed: number | null;
  readonly evaluation_seed: number;
  readonly task: string;
  readonly rep: number;
}

export interface FailedOutput extends OutputKey {
  readonly cause: string;
}

export interface RegradedOutput extends OutputKey {
  readonly before: number;
  readonly after: number;
}
