import { canonicalText } from '../core/canonical-json.js';
import type { Contrast } from '../protocol/schema/analysis.js';
import { conditionOf, type PlanView, queueOf, tasksOf } from './plan-view.js';
import type { QueueResult } from './value.js';
import { plural } from './words.js';

/** Below this number of tasks intervals that lean on large samples mislead (statistics D-03). */
const FEW_TASKS = 100;

/** What holds for the design whatever came out: P5, P9, P18 and Part D of the statistics notes. */
export function designCaveats(view: PlanView): readonly string[] {
  const { analysis, queues } = view.protocol;
  const names = Object.keys(queues).sort();
  return [
    ...(names.length > 1
      ? [
          `The ${names.length} queues are independent samples: nothing is pooled over them, and no rollout counts in two.`,
        ]
      : []),
    ...overlaps(view, names),
    ...analysis.contrasts.flatMap((contrast) => differentConditions(view, contrast)),
    'Equal sampling seeds make rollouts traceable; they do not make the random events of two models equal, and ' +
      'rollouts are not paired by rep.',
    ...(analysis.contrasts.length > 1
      ? [
          'Several comparisons are shown and none is corrected for their number: only the one declared primary confirms.',
        ]
      : []),
    ...((analysis.decisions ?? []).length === 0
      ? ['The plan declares no success threshold: no figure here is a pass or a failure.']
      : []),
    ...((analysis.tables ?? []).length > 0
      ? [
          'Partitions are shown in full and mix what was trained on with what was not; the best of them is never a main result.',
        ]
      : []),
  ];
}

/** What holds because of the outcomes that there are. */
export function outcomeCaveats(results: readonly QueueResult[]): readonly string[] {
  const contrasts = results.flatMap((result) => result.contrasts);
  const scores = results.flatMap((result) => (result.scores === null ? [] : [result.scores]));
  const rows = scores.flatMap((section) => section.rows);
  const open = rows.some((row) => !row.complete);
  return [
    ...(open
      ? [
          'Unsettled slots stay in every denominator: their width in a bound is missing data, neither zeros nor dropped rows. ' +
            'How they spread over arms is in the tables.',
        ]
      : []),
    ...(contrasts.some((contrast) => contrast.interval !== null && contrast.tasks < FEW_TASKS)
      ? [
          `With fewer than ${FEW_TASKS} tasks a percentile interval is rough, and it is narrower than the truth by about sqrt((T − 1)/T).`,
        ]
      : []),
    ...(rows.some((row) => row.saturation !== null)
      ? [
          'A saturated score (all rollouts at one end) cannot show a change in that direction, and its zero width is not certainty.',
        ]
      : []),
    ...(rows.some((row) => row.evaluation_spread !== null)
      ? [
          'A spread over evaluation seeds is sampling noise of the same weights; it is no error bar over training seeds.',
        ]
      : []),
    ...(rows.some((row) => row.sampling_standard_error !== null)
      ? [
          'A sampling standard error is what repeating the rollouts on these tasks would vary; it says nothing of other ' +
            'tasks or other training seeds, and overlapping ranges of two arms are no test of their difference.',
        ]
      : []),
  ];
}

/** law 11. */
export const NOT_CHECKED: readonly string[] = [
  'The ledger itself: chain, objects, lawfulness of every attempt and settlement. boundbook audit checks them.',
  'When the plan was made: only a manifest digest held by somebody else, or a time stamp, can prove it.',
  'What the weights are: the gate compared bytes with digests, not what a model name promises.',
  'Whether tasks or answers were in the data of any training.',
  'Whether the reference answers and the graders are right.',
];

/** D-24: whoever reads one queue has seen tasks of the other. */
function overlaps(view: PlanView, names: readonly string[]): readonly string[] {
  return names.flatMap((a, i) =>
    names.slice(i + 1).flatMap((b) => {
      const other = new Set(tasksOf(view, queueOf(view, b).tasks));
      const shared = tasksOf(view, queueOf(view, a).tasks).filter((task) => other.has(task)).length;
      return shared === 0
        ? []
        : [
            `The queues ${a} and ${b} share ${plural(shared, 'task')}: whoever reads one has looked at tasks of the other.`,
          ];
    }),
  );
}

/** F-155: a difference of conditions is a part of what is compared. */
function differentConditions(view: PlanView, contrast: Contrast): readonly string[] {
  const left = conditionOf(view, contrast.minuend);
  const right = conditionOf(view, contrast.subtrahend);
  const keys = [...new Set([...Object.keys(left), ...Object.keys(right)])].sort() as (keyof typeof left)[];
  const differing = keys.filter(
    (key) => canonicalText(left[key] ?? null) !== canonicalText(right[key] ?? null),
  );
  return differing.length === 0
    ? []
    : [
        `${contrast.id}: the arms run under different conditions (${differing.join(', ')}), so the difference is of ` +
          'model and condition together.',
      ];
}
