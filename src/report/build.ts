import { rewardRange } from '../grading/reference.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { trainingSeeds } from '../slots/plan.js';
import type { SlotKey } from '../slots/slot.js';
import { designCaveats, NOT_CHECKED, outcomeCaveats } from './caveats.js';
import { Cells } from './cells.js';
import { costsOf, sortedFailures, truncationOf } from './effort.js';
import { intervalNotes } from './interval-worth.js';
import { notesOf } from './notes.js';
import { conditionOf, evaluationSeedsOf, type PlanView, queueOf, tasksOf } from './plan-view.js';
import { recheckReports } from './rechecks.js';
import type { RegradingInput } from './regradings.js';
import type { Incident, ReportInput } from './report-input.js';
import { queueResults } from './results.js';
import { type AmendmentKind, amendmentKind } from './revisions.js';
import { serviceCaveats } from './service-caveats.js';
import type {
  ArmDescription,
  Counts,
  Demotion,
  OutputKey,
  QueueCoverage,
  Report,
  Visibility,
} from './value.js';

/**
 * The report that a book supports: a pure function of manifest, ledger and objects (law 10). Before unblinding it
 * holds coverage and costs and nothing by arm (law 8).
 *
 * @throws {BoundbookError} SLOT_NOT_PLANNED when the ledger speaks of slots outside the plan.
 */
export function buildReport(input: ReportInput): Report {
  const { protocol, taskIds, unblinded } = input;
  const visibility: Visibility =
    unblinded === null ? 'blinded' : unblinded.partial ? 'unblinded_partially' : 'unblinded';
  const amendment = amendmentKind(input.revisions);
  const demoted = demotions(input, visibility, amendment);
  const view: PlanView = { protocol, taskIds, demoted: demoted.length > 0 };
  const cells = new Cells(protocol, taskIds, input.slots);
  const queues = Object.keys(protocol.queues)
    .sort()
    .map((queue) => queueCoverage(view, cells, queue));
  const total = sumCounts(queues);
  const results = visibility === 'blinded' ? null : queueResults(view, cells);
  return {
    schema: 'boundbook/report/1',
    amendment,
    demoted,
    protocol: {
      name: protocol.name,
      revision: protocol.revision,
      title: protocol.title,
      due: protocol.due ?? null,
    },
    manifest: input.manifest,
    plan: { slots: input.plan.count, digest: input.plan.digest },
    ledger: input.ledger,
    blinding: protocol.blinding,
    visibility,
    revisions: input.revisions,
    successor: input.successor,
    carried: input.carried,
    notes: notesOf(input, visibility, amendment, total),
    coverage: { total, queues },
    arms: Object.keys(protocol.arms)
      .sort()
      .map((arm) => describeArm(view, arm)),
    results,
    attempts: input.attempts,
    failures: results === null ? null : sortedFailures(input.failures),
    truncation: results === null ? null : truncationOf(input.generations, watchedArms(protocol)),
    costs: costsOf(input.costs, visibility === 'blinded' && protocol.blinding === 'masked'),
    deviations: incidentsOf(input),
    ...regradingsOf(input.regradings, results === null),
    ...recheckReports(input.rechecks, results === null),
    noted: input.noted,
    interval_notes: results === null ? [] : intervalNotes(results),
    caveats: [
      ...serviceCaveats(input),
      ...designCaveats(view),
      ...(results === null ? [] : outcomeCaveats(results)),
    ],
    not_checked: NOT_CHECKED,
  };
}

/** Arms whose generations are ended when they loop. */
function watchedArms({ arms, conditions }: Protocol): ReadonlySet<string> {
  const watched = Object.entries(arms).filter(
    ([, { condition }]) => conditions[condition]?.loop_stop !== undefined,
  );
  return new Set(watched.map(([arm]) => arm));
}

/** What keeps every figure from confirming anything (P22). */
function demotions(
  { successor }: ReportInput,
  visibility: Visibility,
  amendment: AmendmentKind | null,
): readonly Demotion[] {
  return [
    ...(amendment === 'post hoc' ? (['post hoc'] as const) : []),
    ...(visibility === 'unblinded_partially' ? (['unblinded in part'] as const) : []),
    ...(successor === null ? [] : (['superseded'] as const)),
  ];
}

function incidentsOf({ incidents, restorations }: ReportInput): readonly Incident[] {
  const lost = restorations.reduce((sum, each) => sum + each.lost, 0);
  return [...incidents, { what: 'ledger entries lost when an older copy was put back', count: lost }].filter(
    ({ count }) => count > 0,
  );
}

function queueCoverage(view: PlanView, cells: Cells, queue: string): QueueCoverage {
  const { role, reps, arms, tasks: set } = queueOf(view, queue);
  const tasks = tasksOf(view, set);
  const evaluationSeeds = evaluationSeedsOf(view, queue);
  const counts = arms.flatMap((arm) =>
    trainingSeeds(view.protocol, arm).map((trainingSeed) =>
      cells.counts({ queue, arm, trainingSeed, evaluationSeeds, tasks }),
    ),
  );
  return {
    queue,
    role,
    tasks: tasks.length,
    reps,
    evaluation_seeds: evaluationSeeds,
    ...sumCounts(counts),
  };
}

function sumCounts(counts: readonly Counts[]): Counts {
  const sum = (field: keyof Counts) => counts.reduce((total, each) => total + each[field], 0);
  return {
    planned: sum('planned'),
    settled: sum('settled'),
    unresolved: sum('unresolved'),
    pending: sum('pending'),
  };
}

function describeArm(view: PlanView, arm: string): ArmDescription {
  const { model = '', condition = '' } = view.protocol.arms[arm] ?? {};
  const { grader } = conditionOf(view, arm);
  return {
    arm,
    model,
    condition,
    grader: grader.kind,
    reward: rewardRange(grader),
    training_seeds: trainingSeeds(view.protocol, arm),
  };
}

function regradingsOf(regradings: readonly RegradingInput[], blinded: boolean): Pick<Report, 'regradings'> {
  if (regradings.length === 0) return {};
  return {
    regradings: regradings.map(({ failed, ...one }) => ({
      ...one,
      outputs: blinded ? null : one.outputs,
      same: blinded ? null : one.same,
      changed: blinded
        ? null
        : one.changed.map(({ before, after, ...key }) => ({ ...outputKey(key), before, after })),
      truncated: blinded ? null : one.truncated.map(outputKey),
      ...(failed === undefined
        ? {}
        : { failed: blinded ? null : failed.map(({ cause, ...key }) => ({ ...outputKey(key), cause })) }),
    })),
  };
}

function outputKey({ queue, arm, trainingSeed, evaluationSeed, task, rep }: SlotKey): OutputKey {
  return { queue, arm, training_seed: trainingSeed, evaluation_seed: evaluationSeed, task, rep };
}
