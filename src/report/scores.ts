import { type Bound, coverageOf, meanBound, type RewardRange, scoreBound } from '../analysis/bounds.js';
import { compare, multiply, ONE, rational, ZERO } from '../analysis/rational.js';
import { averageAtK, isComplete, type TaskTally } from '../analysis/score.js';
import { spreadOf } from '../analysis/spread.js';
import { samplingStandardError } from '../analysis/standard-error.js';
import { wilsonInterval } from '../analysis/wilson.js';
import { trainingSeeds } from '../slots/plan.js';
import type { CellRange, Cells } from './cells.js';
import { boundFigure, figure, spreadFigure } from './figures.js';
import { evaluationSeedsOf, type PlanView, queueOf, rangeOf } from './plan-view.js';
import type { ArmMean, Saturation, ScoreRow, ScoreSection } from './value.js';
import { scoreEstimand, scoreUnit } from './words.js';

/** The scores of every arm of a queue over some of its tasks (P7): rows for each set of weights, means over seeds. */
export function scoreSection(
  view: PlanView,
  cells: Cells,
  queue: string,
  section: { readonly id: string; readonly tasks: readonly string[] },
): ScoreSection {
  const { reps, arms } = queueOf(view, queue);
  const seeds = evaluationSeedsOf(view, queue);
  const rowsOf = (evaluationSeeds: readonly number[]) =>
    arms.flatMap((arm) =>
      trainingSeeds(view.protocol, arm).map((trainingSeed) =>
        scoreRow(view, cells, { queue, arm, trainingSeed, evaluationSeeds, tasks: section.tasks }),
      ),
    );
  const evaluations =
    seeds.length < 2
      ? []
      : seeds.flatMap((seed) => rowsOf([seed]).map(({ row }) => ({ ...row, evaluation_seed: seed })));
  const rows = rowsOf(seeds);
  return {
    id: section.id,
    estimand: scoreEstimand(section.tasks.length, reps, seeds.length),
    unit_of_replication: scoreUnit(reps),
    tasks: section.tasks.length,
    reps,
    rows: rows.map(({ row }) => row),
    evaluations,
    arms: arms.map((arm) =>
      armMean(
        arm,
        rows.filter(({ row }) => row.arm === arm),
      ),
    ),
  };
}

interface ComputedRow {
  readonly row: ScoreRow;
  readonly bound: Bound;
}

function scoreRow(view: PlanView, cells: Cells, range: CellRange): ComputedRow {
  const tallies = cells.tallies(range);
  const reward = rangeOf(view, range.arm);
  const bound = scoreBound(tallies, reward);
  const complete = isComplete(tallies);
  const row = {
    arm: range.arm,
    training_seed: range.trainingSeed,
    ...cells.counts(range),
    sum: figure(coverageOf(tallies).sum),
    bound: boundFigure(bound),
    complete,
    sampling_standard_error: samplingStandardError(tallies),
    evaluation_spread: complete ? evaluationSpread(cells, range) : null,
    saturation: complete ? saturationOf(tallies, reward, view.protocol.analysis.interval.level) : null,
  };
  return { row, bound };
}

function evaluationSpread(cells: Cells, range: CellRange) {
  const means = range.evaluationSeeds.map((seed) =>
    averageAtK(cells.tallies({ ...range, evaluationSeeds: [seed] })),
  );
  return spreadFigure(spreadOf(means));
}

/** Only where the rewards are a rate; the task is the cluster, so that 16 equal rollouts count once (F-143). */
function saturationOf(tallies: readonly TaskTally[], reward: RewardRange, level: number): Saturation | null {
  if (compare(reward.min, ZERO) !== 0 || compare(reward.max, ONE) !== 0) return null;
  const tasks = tallies.length;
  const all = (value: typeof ZERO) =>
    tallies.every((task) => compare(task.sum, multiply(value, rational(task.planned))) === 0);
  const at = all(ZERO) ? 'lowest' : all(ONE) ? 'highest' : null;
  if (at === null) return null;
  return { at, tasks, wilson: { ...wilsonInterval(at === 'lowest' ? 0 : tasks, tasks, level), level } };
}

function armMean(arm: string, rows: readonly ComputedRow[]): ArmMean {
  const complete = rows.every(({ row }) => row.complete);
  return {
    arm,
    seeds: rows.length,
    bound: boundFigure(meanBound(rows.map(({ bound }) => bound))),
    complete,
    spread: complete ? spreadFigure(spreadOf(rows.map(({ bound }) => bound.lower))) : null,
  };
}
