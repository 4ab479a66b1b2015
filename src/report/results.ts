import { decide } from '../analysis/decision.js';
import { fromNumber } from '../analysis/rational.js';
import type { Cells } from './cells.js';
import { type ComputedContrast, type ContrastRequest, contrastResults } from './contrasts.js';
import { labelOf, type PlanView, queueOf, tasksOf } from './plan-view.js';
import { scoreSection } from './scores.js';
import type { DecisionResult, QueueResult, TableResult } from './value.js';

/**
 * The results of every queue, each by itself: nothing is pooled over queues (P5). Confirmatory queues come first, so
 * that nobody reads the main result after a supplement.
 */
export function queueResults(view: PlanView, cells: Cells): readonly QueueResult[] {
  const names = Object.keys(view.protocol.queues).sort();
  const confirmatory = names.filter((name) => queueOf(view, name).role === 'confirmatory');
  const others = names.filter((name) => !confirmatory.includes(name));
  return [...confirmatory, ...others].map((queue) => queueResult(view, cells, queue));
}

function queueResult(view: PlanView, cells: Cells, queue: string): QueueResult {
  const { analysis } = view.protocol;
  const { role, tasks: set } = queueOf(view, queue);
  const tasks = tasksOf(view, set);
  const declared = analysis.scores.find((score) => score.queue === queue);
  const requests = analysis.contrasts
    .filter((contrast) => contrast.queue === queue)
    .map((contrast) => ({ ...contrast, tasks, label: labelOf(view, queue, contrast.role) }));
  const contrasts = contrastResults(view, cells, requests);
  return {
    queue,
    label: view.demoted ? 'exploratory' : role,
    // law 9: a queue for which no score is declared shows none.
    scores: declared === undefined ? null : scoreSection(view, cells, queue, { id: declared.id, tasks }),
    contrasts: contrasts.map(({ result }) => result),
    tables: (analysis.tables ?? [])
      .filter((table) => table.queue === queue)
      .map((table) => tableResult(view, cells, table)),
    decisions: contrasts.flatMap((contrast) => decisionsOn(view, contrast)),
  };
}

type TableDefinition = NonNullable<PlanView['protocol']['analysis']['tables']>[number];

/** P4, P9: the same computation on each partition, all of them shown. */
function tableResult(view: PlanView, cells: Cells, table: TableDefinition): TableResult {
  const label = labelOf(view, table.queue, table.role);
  const inQueue = tasksOf(view, queueOf(view, table.queue).tasks);
  return {
    id: table.id,
    label,
    partitions: table.partitions.map((partition) => {
      const members = new Set(tasksOf(view, partition));
      const tasks = inQueue.filter((task) => members.has(task));
      if (tasks.length === 0) return { partition, tasks: 0, scores: null, contrasts: [] };
      const requests = comparisons(view, table.queue).map((pair) => ({
        ...pair,
        queue: table.queue,
        tasks,
        label,
      }));
      return {
        partition,
        tasks: tasks.length,
        scores: scoreSection(view, cells, table.queue, { id: partition, tasks }),
        contrasts: contrastResults(view, cells, requests).map(({ result }) => result),
      };
    }),
  };
}

/** The comparisons that the protocol declares anywhere, in its direction, once each, if the queue has both arms. */
function comparisons(
  view: PlanView,
  queue: string,
): readonly Pick<ContrastRequest, 'id' | 'minuend' | 'subtrahend'>[] {
  const arms = new Set(queueOf(view, queue).arms);
  const seen = new Set<string>();
  return view.protocol.analysis.contrasts.filter(({ minuend, subtrahend }) => {
    const key = JSON.stringify([minuend, subtrahend]);
    if (seen.has(key) || !arms.has(minuend) || !arms.has(subtrahend)) return false;
    seen.add(key);
    return true;
  });
}

/** Decisions are taken on the bound, at its unfavourable end; undecided is not met (DESIGN §10). */
function decisionsOn(view: PlanView, { result, bound }: ComputedContrast): readonly DecisionResult[] {
  return (view.protocol.analysis.decisions ?? [])
    .filter((decision) => decision.contrast === result.id)
    .map((decision) => {
      const { comparator, threshold } = decision;
      const status = bound === null ? 'undecided' : decide(bound, comparator, fromNumber(threshold));
      return {
        id: decision.id,
        contrast: result.id,
        label: result.label,
        condition: `${comparator} ${threshold}`,
        status,
        conclusion: status === 'met' ? decision.when_met : decision.otherwise,
      };
    });
}
