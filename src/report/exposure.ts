import type { LedgerFold } from '../ledger/fold.js';
import type { Manifest } from '../manifest/manifest.js';
import type { Exposure } from '../manifest/schema.js';
import { Cells } from './cells.js';
import { contrastBound } from './contrasts.js';
import { boundFigure } from './figures.js';
import { slotOutcomes } from './input.js';
import { labelOf, type PlanView, queueOf, tasksOf } from './plan-view.js';
import { scoreSection } from './scores.js';
import type { BoundFigure } from './value.js';

const NOTHING: Exposure = { slots_run: 0, settled: 0, unblinded: false, bounds: {}, declared: null };

/**
 * What was known of outcomes when a plan is amended (P22), as it and its ledger show: what its own amendment said, and what
 * was run since. Slots that it carried were counted then.
 *
 * @param fold null when the plan never ran
 */
export function exposureOf(superseded: Pick<Manifest, 'exposure'>, fold: LedgerFold | null): Exposure {
  const before = superseded.exposure ?? NOTHING;
  if (fold === null) return { ...before, declared: null };
  const { settled, unresolved, open } = fold.slots.total();
  const { carried } = fold.slots;
  const visible = fold.unblinded !== null || (fold.outcomesVisible && settled + unresolved > 0);
  return {
    slots_run: before.slots_run + settled + unresolved + open - carried.settled - carried.unresolved,
    settled: before.settled + settled - carried.settled,
    unblinded: before.unblinded || visible,
    bounds: visible ? visibleBounds(fold) : before.bounds,
    declared: null,
  };
}

/** The bounds that a report of the ledger shows: of every declared score by arm, and of every contrast. */
function visibleBounds(fold: LedgerFold): Exposure['bounds'] {
  const { protocol, taskIds } = fold.context;
  const view: PlanView = { protocol, taskIds, demoted: false };
  const cells = new Cells(protocol, taskIds, slotOutcomes(fold));
  const bounds: [string, BoundFigure][] = [];
  for (const { id, queue } of protocol.analysis.scores) {
    const tasks = tasksOf(view, queueOf(view, queue).tasks);
    for (const { arm, bound } of scoreSection(view, cells, queue, { id, tasks }).arms)
      bounds.push([`score:${queue}:${arm}`, bound]);
  }
  for (const contrast of protocol.analysis.contrasts) {
    const tasks = tasksOf(view, queueOf(view, contrast.queue).tasks);
    const label = labelOf(view, contrast.queue, contrast.role);
    const bound = contrastBound(view, cells, { ...contrast, tasks, label });
    if (bound !== null) bounds.push([`contrast:${contrast.id}`, boundFigure(bound)]);
  }
  return Object.fromEntries(
    bounds.map(([name, { lower, upper }]) => [name, { lower: lower.value, upper: upper.value }]),
  );
}
