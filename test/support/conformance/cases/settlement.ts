import { attemptId } from '../../../../src/attempts/slot-state.js';
import { canonicalText } from '../../../../src/core/canonical-json.js';
import type { LooseBundle } from '../../loose-bundle.js';
import { at, type Case, copyOf, dropReports, entryOf, resultOf, slotAt, stageOf } from '../case.js';

/** Law 3: the first valid report settles. */
export const SETTLEMENT: readonly Case[] = [
  {
    name: 'value-raised_fail',
    why: 'law 3: the settlement has another value than the report that it rests on',
    edit: (bundle) => {
      entryOf(bundle, slotAt(bundle, 1), 'slot.settled').value = 1;
    },
  },
  {
    name: 'value-raised-in-the-stage_fail',
    why: 'stage and settlement agree on a value that the report does not have',
    edit: (bundle) => {
      const slot = slotAt(bundle, 1);
      resultOf(stageOf(bundle, slot, 'grade')).value = 1;
      entryOf(bundle, slot, 'slot.settled').value = 1;
    },
  },
  {
    name: 'report-raised_fail',
    why: 'law 10: report, stage and settlement agree, and grading the answer again does not',
    edit: (bundle) => {
      dropReports(bundle);
      raise(
        bundle,
        slotAt(bundle, 1),
        bundle.object(resultOf(stageOf(bundle, slotAt(bundle, 1), 'grade')).report),
      );
    },
  },
  {
    name: 'candidate-exchanged_fail',
    why: 'the candidate is the right answer, and not the one in the response',
    edit: (bundle) => {
      dropReports(bundle);
      const slot = slotAt(bundle, 1);
      answerRightly(bundle, slot);
    },
  },
  {
    name: 'answer-forged-throughout',
    why: 'response, candidate, report and settlement forged together are consistent; only a head that somebody else holds shows it',
    edit: (bundle) => {
      dropReports(bundle);
      const slot = slotAt(bundle, 1);
      const generate = stageOf(bundle, slot, 'generate');
      const objects = generate.objects as Record<string, unknown>;
      const response = JSON.parse(bundle.object(objects.response).toString('utf8')) as {
        choices: { message: { content: string } }[];
      };
      const [choice] = response.choices;
      if (choice !== undefined) choice.message.content = '12';
      objects.response = bundle.keep(JSON.stringify(response));
      answerRightly(bundle, slot);
    },
  },
  {
    name: 'settled-by-another-slots-report_fail',
    why: 'law 3: the settlement rests on the report of another slot',
    edit: (bundle) => {
      const other = entryOf(bundle, slotAt(bundle, 0), 'slot.settled');
      const settled = entryOf(bundle, slotAt(bundle, 1), 'slot.settled');
      (settled.basis as Record<string, unknown>).report = (other.basis as Record<string, unknown>).report;
    },
  },
  {
    name: 'settled-twice_fail',
    why: 'law 3: one slot, two settlements',
    edit: (bundle) => {
      const settled = entryOf(bundle, slotAt(bundle, 1), 'slot.settled');
      bundle.insert(at(bundle, settled) + 1, { ...copyOf(settled), value: 1 });
    },
  },
  {
    name: 'second-try-after-a-failure_fail',
    why: 'law 3: the slot was settled as wrong, and run again until it was right',
    edit: (bundle) => {
      dropReports(bundle);
      const [wrong, right] = [slotAt(bundle, 1), slotAt(bundle, 0)];
      const first = bundle.of(wrong);
      const again = bundle.of(right).map((entry) => asAttempt(entry, wrong, 2, first));
      const last = first.at(-1);
      if (last !== undefined) bundle.insert(at(bundle, last) + 1, ...again);
    },
  },
  {
    name: 'later-report-preferred_fail',
    why: 'law 3: a second grading of the same attempt is adopted instead of the first',
    edit: (bundle) => {
      const slot = slotAt(bundle, 1);
      const grade = stageOf(bundle, slot, 'grade');
      const again = copyOf(grade);
      bundle.insert(at(bundle, grade) + 1, again);
      raise(bundle, slot, bundle.object(resultOf(grade).report), again);
    },
  },
  {
    name: 'first-report-hidden_fail',
    why: 'law 3: a failed first grading is removed and a retry put in its place without a cause',
    edit: (bundle) => {
      const slot = slotAt(bundle, 1);
      const settled = entryOf(bundle, slot, 'slot.settled');
      bundle.remove((entry) => entry === settled);
      bundle.insert(at(bundle, bundle.find('run.paused')), {
        ...entryOf(bundle, slot, 'attempt.started'),
        attempt: attemptId(slot, 2),
        kind: 'replacement',
        of: attemptId(slot, 1),
      });
    },
  },
  {
    name: 'settled-without-a-report_fail',
    why: 'a slot is settled although nothing was graded',
    edit: (bundle) => {
      const slot = slotAt(bundle, 0);
      const grade = stageOf(bundle, slot, 'grade');
      bundle.remove((entry) => entry === grade);
    },
  },
  {
    name: 'settled-before-the-attempt-ends_fail',
    why: 'the settlement stands before the end of its attempt',
    edit: (bundle) => {
      const slot = slotAt(bundle, 0);
      const finished = entryOf(bundle, slot, 'attempt.finished');
      bundle.remove((entry) => entry === finished);
    },
  },
  {
    name: 'outcome-contradicts_fail',
    why: 'the attempt ended with a report, and its end says failure',
    edit: (bundle) => {
      entryOf(bundle, slotAt(bundle, 0), 'attempt.finished').outcome = 'failure';
    },
  },
  {
    name: 'report-graded-for-another-candidate_fail',
    why: 'the report is about another candidate than the attempt generated',
    edit: (bundle) => {
      const [a, b] = [slotAt(bundle, 0), slotAt(bundle, 1)];
      resultOf(stageOf(bundle, b, 'grade')).candidate = resultOf(stageOf(bundle, a, 'grade')).candidate;
    },
  },
  {
    name: 'failure-settled-as-right_fail',
    why: 'law 5: a model failure counts 0, not 1',
    edit: (bundle) => {
      entryOf(bundle, slotAt(bundle, 5), 'slot.settled').value = 1;
    },
  },
];

/** Makes the report of a slot say pass, with everything that names it. */
function raise(
  bundle: LooseBundle,
  slot: string,
  report: Buffer,
  stage = stageOf(bundle, slot, 'grade'),
): void {
  const value = JSON.parse(report.toString('utf8')) as Record<string, unknown>;
  const digest = bundle.keep(
    canonicalText({ ...value, tests: { answer: 'pass' }, reward: 1, outcome: 'correct' }),
  );
  Object.assign(resultOf(stage), { report: digest, value: 1 });
  const settled = entryOf(bundle, slot, 'slot.settled');
  settled.value = 1;
  (settled.basis as Record<string, unknown>).report = digest;
}

/** Puts the answer of the first slot, which has the same task and is right, in place of a slot's own. */
function answerRightly(bundle: LooseBundle, slot: string): void {
  const right = slotAt(bundle, 0);
  const grade = resultOf(stageOf(bundle, right, 'grade'));
  resultOf(stageOf(bundle, slot, 'generate')).candidate = grade.candidate;
  Object.assign(resultOf(stageOf(bundle, slot, 'grade')), grade);
  const settled = entryOf(bundle, slot, 'slot.settled');
  settled.value = 1;
  (settled.basis as Record<string, unknown>).report = grade.report;
}

type Entry = ReturnType<typeof copyOf>;

/** An entry of another slot's attempt, as if it were the k-th of this one. */
function asAttempt(entry: Entry, slot: string, k: number, own: readonly Entry[]): Entry {
  const copy = copyOf(entry);
  const attempt = attemptId(slot, k);
  const start = own.find(({ type }) => type === 'attempt.started');
  copy.slot = slot;
  copy.time = own.at(-1)?.time;
  if ('attempt' in copy) copy.attempt = attempt;
  if (copy.type === 'slot.settled') (copy.basis as Record<string, unknown>).attempt = attempt;
  if (copy.type === 'attempt.started') {
    Object.assign(copy, {
      ...start,
      attempt,
      kind: 'replacement',
      of: attemptId(slot, k - 1),
      time: copy.time,
    });
  }
  return copy;
}
