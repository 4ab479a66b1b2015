import { type Bound, differenceBound, meanBound, scoreBound, signOf } from '../analysis/bounds.js';
import { type DifferenceMatrix, grandMean, rowMeans } from '../analysis/difference-matrix.js';
import { subtract, ZERO } from '../analysis/rational.js';
import { isComplete, type TaskTally, taskMean } from '../analysis/score.js';
import { spreadOf } from '../analysis/spread.js';
import type { Cells } from './cells.js';
import { boundFigure, figure, spreadFigure } from './figures.js';
import { intervalsOf } from './intervals.js';
import { type Pair, pairArms } from './pairs.js';
import { evaluationSeedsOf, type PlanView, rangeOf } from './plan-view.js';
import type { ContrastResult, IntervalResult, Label, Pairing } from './value.js';
import { contrastEstimand, contrastStatements, contrastUnit } from './words.js';

/** One comparison over some tasks of a queue. */
export interface ContrastRequest {
  readonly id: string;
  readonly minuend: string;
  readonly subtrahend: string;
  readonly queue: string;
  readonly tasks: readonly string[];
  readonly label: Label;
}

export interface ComputedContrast {
  readonly result: ContrastResult;
  /** The exact bound, for decisions; null when no weights of the two arms pair. */
  readonly bound: Bound | null;
}

/** Computes comparisons; those of one shape are resampled together, with shared draws (P8). */
export function contrastResults(
  view: PlanView,
  cells: Cells,
  requests: readonly ContrastRequest[],
): readonly ComputedContrast[] {
  const measured = requests.map((request) => measure(view, cells, request));
  const intervals = intervalsOf(
    measured.map(({ matrix }) => matrix),
    view.protocol.analysis.interval,
  );
  return measured.map((each, i) => conclude(each, intervals[i] ?? null));
}

/** The bound of one comparison, without resampling; null when nothing pairs. */
export function contrastBound(view: PlanView, cells: Cells, request: ContrastRequest): Bound | null {
  return boundOf(measure(view, cells, request));
}

interface Measured {
  readonly request: ContrastRequest;
  readonly pairing: Pairing;
  readonly pairs: readonly { readonly pair: Pair; readonly bound: Bound }[];
  readonly missing: { readonly unresolved: number; readonly pending: number };
  /** null while anything of the comparison is unsettled (law 6), and when nothing pairs. */
  readonly matrix: DifferenceMatrix | null;
}

function measure(view: PlanView, cells: Cells, request: ContrastRequest): Measured {
  const { pairs, pairing } = pairArms(view.protocol, request.minuend, request.subtrahend);
  const base = {
    queue: request.queue,
    evaluationSeeds: evaluationSeedsOf(view, request.queue),
    tasks: request.tasks,
  };
  const [minuendRange, subtrahendRange] = [rangeOf(view, request.minuend), rangeOf(view, request.subtrahend)];
  // A fixed arm is met by several seeds; its missing slots are still counted once.
  const missing = new Map<string, { unresolved: number; pending: number }>();
  const measured = pairs.map((pair) => {
    const [m, b] = (
      [
        [request.minuend, pair.minuend],
        [request.subtrahend, pair.subtrahend],
      ] as const
    ).map(([arm, trainingSeed]) => {
      const range = { ...base, arm, trainingSeed };
      missing.set(JSON.stringify([arm, trainingSeed]), cells.counts(range));
      return cells.tallies(range);
    });
    const [minuend, subtrahend] = [m ?? [], b ?? []];
    const bound = differenceBound(scoreBound(minuend, minuendRange), scoreBound(subtrahend, subtrahendRange));
    return { pair, bound, row: differenceRow(minuend, subtrahend) };
  });
  const rows = measured.map(({ row }) => row).filter((row) => row !== null);
  return {
    request,
    pairing,
    pairs: measured,
    missing: total([...missing.values()]),
    matrix: rows.length > 0 && rows.length === measured.length ? rows : null,
  };
}

/** D[·][j] of one pair; null while a rollout is unsettled. */
function differenceRow(minuend: readonly TaskTally[], subtrahend: readonly TaskTally[]) {
  if (!isComplete(minuend) || !isComplete(subtrahend)) return null;
  return minuend.map((task, j) => {
    const other = subtrahend[j];
    return other === undefined ? ZERO : subtract(taskMean(task), taskMean(other));
  });
}

function total(counts: readonly { readonly unresolved: number; readonly pending: number }[]) {
  return {
    unresolved: counts.reduce((sum, each) => sum + each.unresolved, 0),
    pending: counts.reduce((sum, each) => sum + each.pending, 0),
  };
}

function boundOf({ pairs }: Measured): Bound | null {
  return pairs.length === 0 ? null : meanBound(pairs.map((pair) => pair.bound));
}

function conclude(measured: Measured, interval: IntervalResult | null): ComputedContrast {
  const { request, pairing, pairs, missing, matrix } = measured;
  const bound = boundOf(measured);
  const differences = matrix === null ? [] : rowMeans(matrix);
  const base = {
    id: request.id,
    minuend: request.minuend,
    subtrahend: request.subtrahend,
    label: request.label,
    pairing,
    estimand: contrastEstimand(request, pairing, pairs.length),
    unit_of_replication: contrastUnit(pairing),
    tasks: request.tasks.length,
    missing,
    complete: matrix !== null,
    bound: bound === null ? null : boundFigure(bound),
    sign: bound === null ? ('not_identified' as const) : signOf(bound),
    pairs: pairs.map(({ pair, bound: each }) => ({
      minuend_seed: pair.minuend,
      subtrahend_seed: pair.subtrahend,
      bound: boundFigure(each),
    })),
    estimate: matrix === null ? null : figure(grandMean(matrix)),
    spread: spreadFigure(spreadOf(differences)),
    interval,
  };
  return { result: { ...base, statements: contrastStatements(base) }, bound };
}
