import { failureSignals } from '../../../../src/attempts/signals.js';
import { type Digest, digestOf } from '../../../../src/core/digest.js';
import { gradeAnswer } from '../../../../src/grading/answer.js';
import { answerReport } from '../../../../src/grading/report.js';
import { recheckSample } from '../../../../src/ledger/recheck-sample.js';
import { slotsDigest } from '../../../../src/slots/selector.js';
import type { Loose, LooseBundle } from '../../loose-bundle.js';
import { streamOf, TASKS } from '../../small-book.js';
import { cutStream, LOOPED } from '../bases.js';
import { type Case, copyOf, dropReports, entryOf, resultOf, stageOf } from '../case.js';

const RECHECK = 'a'.repeat(32);
const SESSION = 'b'.repeat(32);
const LOST = failureSignals({
  stage: 'generate',
  phase: 'between',
  cause: 'process_gone',
  first_token: false,
});
const GRADER = { kind: 'integer', answer: 'answer' } as const;
const LOOPS_ON = `${LOOPED.join('').repeat(2)}so it was`;

/**
 * Four outputs were stopped in a loop; three of them are generated again: the first comes out right, the second loops on to
 * its end, the third breaks off.
 */
export const RECHECKS: readonly Case[] = [
  rechecked(
    'rechecked',
    'B10: a sample of the stopped outputs, generated again without the stop rule',
    () => undefined,
  ),
  rechecked(
    'rechecked-gone-on-with',
    'B10: what a dead process had sent is a failure, as the next session says',
    (all) => {
      all.opened.push({ ...copyOf(all.passed), session: 'c'.repeat(32) });
      const [, , last] = all.finished;
      const { slot, type } = last as Loose;
      const session = 'c'.repeat(32);
      all.finished[2] = { ...lost(String(slot)), type, session };
    },
  ),
  rechecked('rechecked-sample-chosen_fail', 'B10: another sample of the same size', (all) => {
    all.declared.sample = slotsDigest(all.stopped.filter((slot) => slot !== all.sample[0]));
  }),
  rechecked('rechecked-sample-too-small_fail', 'B10: fewer than the declared fraction', (all) => {
    all.declared.sample = slotsDigest(all.sample.slice(1));
    all.started.splice(0, 1);
    all.finished.splice(0, 1);
    all.closed.recovered = 0;
  }),
  rechecked('rechecked-of-few_fail', 'B10: not all that the stop rule ended', (all) => {
    all.declared.stopped = slotsDigest(all.stopped.slice(1));
  }),
  rechecked(
    'rechecked-beside-the-sample_fail',
    'B10: a slot that was not drawn is generated again',
    (all) => {
      const slot = all.stopped.find((one) => !all.sample.includes(one));
      all.started.push({ ...copyOf(all.started[0] as Loose), slot, request: all.requestOf(String(slot)) });
    },
  ),
  rechecked('rechecked-one-twice_fail', 'B10: a second try for one of the sample', (all) => {
    all.started.push(copyOf(all.started[1] as Loose));
    all.finished.push(copyOf(all.finished[1] as Loose));
    all.closed.not_recovered = 2;
  }),
  rechecked('rechecked-before-it-was-declared_fail', 'law 2: sent before anything was declared', (all) => {
    all.opened.push(...all.started.splice(0, 1));
  }),
  rechecked(
    'rechecked-with-another-seed_fail',
    'B10: another request than that of the slot',
    (all, bundle) => {
      const [first] = all.started;
      const text = bundle.object(first?.request).toString('utf8');
      if (first !== undefined) first.request = bundle.keep(text.replace(/"seed":\d+/, '"seed":1'));
    },
  ),
  rechecked(
    'rechecked-cut-by-the-rule_fail',
    'B10: the stop rule was applied to what was generated without it',
    (all, bundle) => {
      all.finished[1] = graded(bundle, all.finished[1] as Loose, LOOPED.join(''));
    },
  ),
  rechecked('rechecked-value-raised_fail', 'B10: an output that is wrong counts as recovered', (all) => {
    resultOf(all.finished[1] as Loose).value = 1;
    Object.assign(all.closed, { recovered: 2, not_recovered: 0 });
  }),
  rechecked('rechecked-from-a-lower-value_fail', 'B10: the slot settled on another value', (all) => {
    resultOf(all.finished[1] as Loose).before = -1;
    Object.assign(all.closed, { recovered: 2, not_recovered: 0 });
  }),
  rechecked(
    'rechecked-answer-called-lost_fail',
    'B10: a whole answer that was wrong passes for a failure',
    (all) => {
      const signals = { ...LOST, phase: 'body', cause: 'connection_lost', first_token: true };
      Object.assign(all.finished[1] as Loose, {
        result: { kind: 'failure', signals },
        finish_reason: null,
        usage: null,
      });
      Object.assign(all.closed, { not_recovered: 0, failed: 2 });
    },
  ),
  rechecked('rechecked-miscounted_fail', 'B10: the end says more than was recovered', (all) => {
    Object.assign(all.closed, { recovered: 2, not_recovered: 0 });
  }),
  rechecked('rechecked-without-one_fail', 'B10: one of the sample was left out', (all) => {
    all.finished.splice(1, 1);
    all.closed.not_recovered = 0;
  }),
];

/** The entries of a recheck, in this order; a case changes them before they are put in. */
interface Parts {
  readonly stopped: readonly string[];
  readonly sample: readonly string[];
  readonly requestOf: (slot: string) => unknown;
  readonly passed: Loose;
  readonly opened: Loose[];
  readonly declared: Loose;
  readonly started: Loose[];
  readonly finished: Loose[];
  readonly closed: Loose;
}

function rechecked(name: string, why: string, edit: (all: Parts, bundle: LooseBundle) => void): Case {
  return {
    name,
    why,
    base: 'looped',
    edit: (bundle) => {
      dropReports(bundle);
      const all = partsOf(bundle);
      edit(all, bundle);
      const { opened, declared, started, finished, closed } = all;
      bundle.insert(bundle.entries.length, ...opened, declared, ...started, ...finished, closed);
    },
  };
}

function partsOf(bundle: LooseBundle): Parts {
  const { time: _time, ...gate } = copyOf(bundle.find('gate.passed'));
  const passed = { ...gate, session: SESSION } as Loose;
  const stopped = bundle.entries
    .filter(({ type, finish_reason }) => type === 'stage.finished' && finish_reason === 'loop_stop')
    .map(({ slot }) => String(slot))
    .sort();
  const sample = recheckSample(stopped, '0.6', String(bundle.find('ledger.opened').manifest));
  const requestOf = (slot: string) => entryOf(bundle, slot, 'attempt.started').request;
  const names = { recheck: RECHECK, session: SESSION };
  const [right = '', loops = '', broken = ''] = sample;
  return {
    stopped,
    sample,
    requestOf,
    passed,
    opened: [passed],
    declared: {
      type: 'recheck.declared',
      ...names,
      fraction: '0.6',
      stopped: slotsDigest(stopped),
      sample: slotsDigest(sample),
    },
    started: sample.map((slot) => ({ type: 'recheck.started', ...names, slot, request: requestOf(slot) })),
    finished: [
      graded(bundle, answered(bundle, right, taskOf(bundle, right).answer)),
      graded(bundle, answered(bundle, loops, LOOPS_ON), LOOPS_ON),
      {
        ...lost(broken),
        result: {
          kind: 'failure',
          signals: { ...LOST, phase: 'body', cause: 'stream_cut', http_status: 200, first_token: true },
        },
        objects: { response: bundle.keep(cutStream(modelOf(bundle, broken))) },
        first_token_seconds: 0.25,
      },
    ],
    closed: { type: 'recheck.closed', recheck: RECHECK, recovered: 1, not_recovered: 1, failed: 1 },
  };
}

function lost(slot: string): Loose {
  return {
    type: 'recheck.finished',
    recheck: RECHECK,
    session: SESSION,
    slot,
    result: { kind: 'failure', signals: LOST },
    objects: {},
    usage: null,
    finish_reason: null,
    seconds: 1.25,
    queue_seconds: 0,
  };
}

function answered(bundle: LooseBundle, slot: string, text: string): Loose {
  return {
    ...lost(slot),
    objects: { response: bundle.keep(streamOf(modelOf(bundle, slot), text, 'again')) },
    usage: { prompt_tokens: 9, completion_tokens: 4 },
    finish_reason: 'stop',
    first_token_seconds: 0.25,
    text,
  };
}

/** Grades a text in place of a failure. */
function graded(bundle: LooseBundle, entry: Loose, text = String(entry.text)): Loose {
  const { text: _text, ...rest } = entry;
  const task = taskOf(bundle, String(entry.slot));
  const candidate: Digest = digestOf(text);
  bundle.keep(text);
  const grade = gradeAnswer(GRADER, task as never, text);
  const report = bundle.keep(answerReport(GRADER, task.id, candidate, grade));
  const stopped = resultOf(stageOf(bundle, String(entry.slot), 'grade'));
  const result = { kind: 'graded', candidate, report, value: grade.value, before: stopped.value };
  return { ...rest, type: entry.type, result };
}

function taskOf(bundle: LooseBundle, slot: string): { readonly id: string; readonly answer: string } {
  const { task } = entryOf(bundle, slot, 'attempt.started').key as { task: string };
  const found = TASKS.find(({ id }) => id === task);
  if (found === undefined) throw new Error(`no task ${task}`);
  return { id: found.id, answer: String(found.answer) };
}

function modelOf(bundle: LooseBundle, slot: string): string {
  const { request } = entryOf(bundle, slot, 'attempt.started');
  return (JSON.parse(bundle.object(request).toString('utf8')) as { model: string }).model;
}
