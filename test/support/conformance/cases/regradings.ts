import { canonicalBytes } from '../../../../src/core/canonical-json.js';
import { type Digest, digestOf } from '../../../../src/core/digest.js';
import type { AnswerGrader } from '../../../../src/grading/answer.js';
import { regradeAnswer } from '../../../../src/grading/regrade.js';
import type { Loose, LooseBundle } from '../../loose-bundle.js';
import { TASKS } from '../../small-book.js';
import { type Case, dropReports, resultOf } from '../case.js';

const EXACT: AnswerGrader = { kind: 'exact', answer: 'answer' };

/** Outputs graded again with a corrected grader (B6). */
export const REGRADINGS: readonly Case[] = [
  {
    name: 'regraded',
    why: 'B6: every settled output graded again, one of them cut by a limit',
    edit: (bundle) => regrading(bundle),
  },
  {
    name: 'regraded-value-raised_fail',
    why: 'B6: a new grade that the corrected grader does not give',
    edit: (bundle) => {
      regrading(bundle, {
        edit: (recorded) => {
          for (const { result } of recorded) if (isGraded(result)) result.value = 1 - result.value;
        },
      });
    },
  },
  {
    name: 'regraded-without-one_fail',
    why: 'B6: an output was left out',
    edit: (bundle) => regrading(bundle, { edit: (recorded) => recorded.splice(2, 1) }),
  },
  {
    name: 'regraded-one-twice_fail',
    why: 'B6: an output was graded twice',
    edit: (bundle) => regrading(bundle, { edit: (recorded) => recorded.splice(2, 0, recorded[2] as Loose) }),
  },
  {
    name: 'regraded-of-few_fail',
    why: 'B6: the slots were chosen, and are not all that a report settled',
    edit: (bundle) => regrading(bundle, { chosen: (slots) => slots.slice(1) }),
  },
  {
    name: 'regraded-as-truncated_fail',
    why: 'B6: an output that no limit cut is passed over as truncated',
    edit: (bundle) => {
      regrading(bundle, {
        edit: (recorded) => {
          const graded = recorded.find(({ result }) => isGraded(result));
          if (graded !== undefined) graded.result = { kind: 'truncated' };
        },
      });
    },
  },
  {
    name: 'regraded-another-output_fail',
    why: 'B6: the graded candidate is that of another slot',
    edit: (bundle) => {
      regrading(bundle, {
        edit: (recorded) => {
          const [first] = recorded;
          const other = recorded.find(({ candidate }) => candidate !== first?.candidate);
          if (first !== undefined && other !== undefined) first.candidate = other.candidate;
        },
      });
    },
  },
  {
    name: 'regraded-from-another-value_fail',
    why: 'B6: the slot settled on another value',
    edit: (bundle) => {
      regrading(bundle, {
        edit: ([first]) => {
          const before = first?.before as { value: number };
          before.value = 1 - before.value;
        },
      });
    },
  },
  {
    name: 'regraded-miscounted_fail',
    why: 'B6: the end says fewer changes than there are',
    edit: (bundle) => {
      regrading(bundle);
      const closed = bundle.find('regrading.closed');
      closed.changed = Number(closed.changed) - 1;
      closed.same = Number(closed.same) + 1;
    },
  },
  {
    name: 'regraded-by-no-grader_fail',
    why: 'B6: the object is no grader',
    edit: (bundle) => {
      regrading(bundle);
      bundle.find('regrading.opened').grader = bundle.keep('{"answer":"answer","kind":"guess"}');
    },
  },
  {
    name: 'regraded-twice-at-once_fail',
    why: 'B6: a second regrading begins before the first has ended',
    edit: (bundle) => {
      regrading(bundle);
      bundle.remove(({ type }) => type === 'regrading.closed');
      regrading(bundle, { id: 'b'.repeat(32) });
    },
  },
];

interface Change {
  readonly id?: string;
  readonly chosen?: (slots: string[]) => string[];
  /** Changes what is recorded of each slot. */
  readonly edit?: (recorded: Loose[]) => unknown;
}

function isGraded(result: unknown): result is { kind: 'graded'; value: number } {
  return (result as { kind: string }).kind === 'graded';
}

function regrading(
  bundle: LooseBundle,
  { id = 'a'.repeat(32), chosen = (slots) => slots, edit }: Change = {},
): void {
  dropReports(bundle);
  const settled = bundle.entries.filter(
    ({ type, basis }) => type === 'slot.settled' && (basis as { kind: string }).kind === 'report',
  );
  const slots = chosen(settled.map(({ slot }) => String(slot)).sort());
  const recorded = slots.map((slot) => recordedOf(bundle, id, slot));
  edit?.(recorded);
  const values = recorded.map(({ before, result }) => {
    if (!isGraded(result)) return 'truncated';
    return result.value === (before as { value: number }).value ? 'same' : 'changed';
  });
  const count = (kind: string): number => values.filter((value) => value === kind).length;
  bundle.insert(
    bundle.entries.length,
    {
      type: 'regrading.opened',
      regrading: id,
      grader: bundle.keep(canonicalBytes(EXACT)),
      conditions: ['default'],
      reason: 'leading zeros are no part of an answer',
      slots: {
        count: slots.length,
        digest: digestOf(Buffer.from(slots.map((slot) => `${slot}\n`).join(''))),
      },
    },
    ...recorded,
    {
      type: 'regrading.closed',
      regrading: id,
      changed: count('changed'),
      same: count('same'),
      truncated: count('truncated'),
    },
  );
}

function recordedOf(bundle: LooseBundle, regrading: string, slot: string): Loose {
  const entries = bundle.of(slot);
  const find = (type: string, stage?: string) =>
    entries.filter((entry) => entry.type === type && (stage === undefined || entry.stage === stage)).at(-1);
  const [started, generated, graded, settled] = [
    find('attempt.started'),
    find('stage.finished', 'generate'),
    find('stage.finished', 'grade'),
    find('slot.settled'),
  ];
  if (started === undefined || graded === undefined || settled === undefined)
    throw new Error(`${slot} did not settle`);
  const { task } = started.key as { task: string };
  const { candidate } = resultOf(graded) as { candidate: Digest };
  const regraded = regradeAnswer({
    grader: EXACT,
    task,
    fields: TASKS.find(({ id }) => id === task) as never,
    candidate: bundle.object(candidate),
    finishReason: (generated?.finish_reason ?? null) as string | null,
  });
  const { report } = settled.basis as { report: string };
  return {
    type: 'regrading.recorded',
    regrading,
    slot,
    candidate,
    before: { value: settled.value, report },
    result:
      regraded.kind === 'truncated'
        ? regraded
        : { kind: 'graded', value: regraded.value, report: bundle.keep(regraded.report) },
  };
}
