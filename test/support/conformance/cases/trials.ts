import { canonicalText } from '../../../../src/core/canonical-json.js';
import { digestOf } from '../../../../src/core/digest.js';
import type { Loose, LooseBundle } from '../../loose-bundle.js';
import { type Case, dropReports, entryOf, resultOf, slotAt, stageOf } from '../case.js';

/** A change of a book of Harbor trials. */
export interface TrialCase extends Case {
  /** Codes of what both verifiers find in it, ascending. */
  readonly codes: string;
}

type Json = Record<string, unknown>;

/** The slots in order, see `TRIAL_LIVES` in bases.ts. */
const [PASSED, FAILED, , TIMED_OUT, VERIFIER, , , REGRADED, TAKEN_OVER] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8,
] as const;

const BOTH = 'CANDIDATE_DIFFERS REPORT_DIFFERS';

export const TRIALS: readonly TrialCase[] = [
  on('trials', 'every kind of end of a Harbor trial, read again from what was kept', ''),
  on('trials-reward-in-other-digits', 'the reward file gives the same number in other digits', '', (bundle) =>
    edit(bundle, PASSED, 'reward_text', () => '+1.0e0\n'),
  ),
  on('trials-lock-with-defaults', 'a lock may say more than was asked for', '', (bundle) =>
    editJson(bundle, PASSED, 'lock', (lock) => {
      Object.assign(lock.agent as Json, { override_timeout_sec: null });
      lock.verifier = { environment_mode: 'shared' };
    }),
  ),
  on(
    'trials-reward-raised_fail',
    'the reward in the report is not that of the trial',
    'REPORT_DIFFERS VALUE_DIFFERS',
    (bundle) => rereport(bundle, FAILED, { reward: 1 }),
  ),
  on(
    'trials-reward-raised-in-the-result_fail',
    'the result gives another reward than the verifier’s own file',
    'REPORT_DIFFERS',
    (bundle) => {
      editJson(bundle, FAILED, 'result', (result) => {
        result.verifier_result = { rewards: { reward: 1 } };
      });
      rereport(bundle, FAILED, { reward: 1 });
    },
  ),
  on('trials-null-as-zero_fail', 'null, which is NaN, was counted as 0', 'REPORT_DIFFERS', (bundle) =>
    editJson(bundle, FAILED, 'result', (result) => {
      result.verifier_result = { rewards: { reward: null } };
    }),
  ),
  on(
    'trials-reward-hidden_fail',
    'P11: a trial with a valid reward was called failed',
    'FAILURE_DIFFERS',
    (bundle) => {
      editJson(bundle, VERIFIER, 'result', (result) => {
        result.verifier_result = { rewards: { reward: 1 } };
      });
      const at = Date.UTC(2026, 10, 30) + 7500;
      edit(bundle, VERIFIER, 'reward_text', () => '1\n', { kind: 'file', modified_ms: at, changed_ms: at });
    },
  ),
  on(
    'trials-exception-left-out_fail',
    'the report is silent about an exception',
    'REPORT_DIFFERS',
    (bundle) => rereport(bundle, TIMED_OUT, { exception: null }),
  ),
  on(
    'trials-exception-dropped_fail',
    'the result names no exception, the entry does',
    'FAILURE_DIFFERS',
    (bundle) =>
      editJson(bundle, VERIFIER, 'result', (result) => {
        result.exception_info = null;
      }),
  ),
  on('trials-exception-renamed_fail', 'the entry names another exception', 'FAILURE_DIFFERS', (bundle) => {
    const { signals } = resultOf(stageOf(bundle, slotAt(bundle, VERIFIER), 'grade'));
    Object.assign(signals as Json, { exception: 'OtherError' });
  }),
  on('trials-memory-nobody-saw_fail', 'a sign of memory that no trial gives', 'FAILURE_DIFFERS', (bundle) => {
    const { signals } = resultOf(stageOf(bundle, slotAt(bundle, VERIFIER), 'grade'));
    Object.assign(signals as Json, { oom_kill: true });
  }),
  on(
    'trials-name-reused_fail',
    'a regrade that was begun anew ran under its old name',
    'REPORT_DIFFERS',
    (bundle) => {
      const slot = slotAt(bundle, TAKEN_OVER);
      const grade = stageOf(bundle, slot, 'grade', 1);
      const name = String(seenOf(bundle, grade).trial).replace(/-[0-9a-f]{8}$/, '');
      rename(bundle, TAKEN_OVER, 1, name);
    },
  ),
  on(
    'trials-name-of-another-attempt_fail',
    'a regrade under the name of the trial before',
    'REPORT_DIFFERS',
    (bundle) => {
      const first = stageOf(bundle, slotAt(bundle, REGRADED), 'generate');
      rename(bundle, REGRADED, 1, String(seenOf(bundle, first).trial));
    },
  ),
  on('trials-of-another-slot_fail', 'the trial of another slot', 'REPORT_DIFFERS', (bundle) => {
    const other = stageOf(bundle, slotAt(bundle, PASSED), 'grade');
    const slot = slotAt(bundle, FAILED);
    stageOf(bundle, slot, 'grade').objects = structuredClone(other.objects);
    settle(bundle, slot, stageOf(bundle, slot, 'grade'), String(resultOf(other).report), 1);
  }),
  on('trials-lock-of-another-model_fail', 'the lock names another model than the plan', BOTH, (bundle) =>
    editJson(bundle, PASSED, 'lock', (lock) => {
      Object.assign(lock.agent as Json, { model_name: 'openai/other' });
    }),
  ),
  on('trials-lock-of-another-task_fail', 'the lock has another digest of the task', BOTH, (bundle) =>
    editJson(bundle, PASSED, 'lock', (lock) => {
      lock.task = { digest: digestOf('another') };
    }),
  ),
  on('trials-config-of-another-seed_fail', 'the config has another sampling seed', BOTH, (bundle) =>
    editJson(bundle, PASSED, 'config', (config) => {
      (config.agent as Json).kwargs = { seed: 1 };
    }),
  ),
  on(
    'trials-result-without-the-seed_fail',
    'the config in the result is whole, or it is another',
    BOTH,
    (bundle) =>
      editJson(bundle, PASSED, 'result', (result) => {
        ((result.config as Json).agent as Json).kwargs = {};
      }),
  ),
  on('trials-made-from-another_fail', 'a trial that goes on from another one', BOTH, (bundle) =>
    editJson(bundle, PASSED, 'lock', (lock) => {
      lock.source_trial = { action: 'regrade' };
    }),
  ),
  on('trials-result-without-its-end_fail', 'a result that says no end is none', BOTH, (bundle) =>
    editJson(bundle, PASSED, 'result', (result) => {
      result.finished_at = null;
    }),
  ),
  on(
    'trials-phases-overlap_fail',
    'the verifier began before the agent had ended',
    'REPORT_DIFFERS',
    (bundle) =>
      editJson(bundle, PASSED, 'result', (result) => {
        (result.agent_execution as Json).finished_at = '2026-11-30T00:00:07.500000+00:00';
      }),
  ),
  on('trials-patch-exchanged_fail', 'the trial left another patch than the candidate', BOTH, (bundle) => {
    for (const stage of ['generate', 'grade']) {
      const entry = stageOf(bundle, slotAt(bundle, PASSED), stage);
      observe(bundle, entry, 'candidate', { object: digestOf('another patch\n') });
    }
  }),
  on(
    'trials-regrade-of-another-patch_fail',
    'P12: a regrade graded another patch',
    'REPORT_DIFFERS',
    (bundle) => {
      const grade = stageOf(bundle, slotAt(bundle, REGRADED), 'grade', 1);
      observe(bundle, grade, 'candidate', { object: digestOf('another patch\n') });
    },
  ),
  on(
    'trials-reward-file-planted_fail',
    'the reward file is older than the verifier',
    'REPORT_DIFFERS',
    (bundle) => edit(bundle, PASSED, 'reward_text', String, { modified_ms: 1 }),
  ),
  on(
    'trials-reward-file-disagrees_fail',
    'the reward file gives another number',
    'REPORT_DIFFERS',
    (bundle) => edit(bundle, PASSED, 'reward_text', () => '0\n'),
  ),
  on('trials-not-kept_fail', 'nothing was kept of the trial', 'REPORT_DIFFERS', (bundle) => {
    delete (stageOf(bundle, slotAt(bundle, PASSED), 'grade').objects as Json).trial;
  }),
  on('trials-usage-invented_fail', 'a trial counts no tokens', 'ANSWER_DIFFERS', (bundle) => {
    stageOf(bundle, slotAt(bundle, PASSED), 'generate').usage = { prompt_tokens: 1, completion_tokens: 1 };
  }),
];

function on(name: string, why: string, codes: string, change?: (bundle: LooseBundle) => void): TrialCase {
  const made: TrialCase = { name, why, codes, base: 'trials' };
  if (change === undefined) return made;
  return {
    ...made,
    edit: (bundle) => {
      change(bundle);
      dropReports(bundle);
    },
  };
}

function parsed(bundle: LooseBundle, digest: unknown): Json {
  return JSON.parse(bundle.object(digest).toString('utf8')) as Json;
}

function seenOf(bundle: LooseBundle, stage: Loose): Json {
  return parsed(bundle, (stage.objects as Json).trial);
}

/** Changes what was seen of one file of a trial. */
function observe(bundle: LooseBundle, stage: Loose, name: string, members: Json): void {
  const observation = seenOf(bundle, stage);
  const files = observation.files as Record<string, Json>;
  files[name] = { ...files[name], ...members };
  (stage.objects as Json).trial = bundle.keep(canonicalText(observation));
}

/** Edits a file of a first trial, and what rests on its digest: what was seen of it, both stages, and the report. */
function edit(
  bundle: LooseBundle,
  n: number,
  name: string,
  change: (content: string) => string,
  members: Json = {},
): void {
  const slot = slotAt(bundle, n);
  const grade = stageOf(bundle, slot, 'grade');
  const before = (grade.objects as Json)[name];
  const content = change(before === undefined ? '' : bundle.object(before).toString('utf8'));
  const digest = bundle.keep(content);
  for (const stage of [stageOf(bundle, slot, 'generate'), grade]) {
    observe(bundle, stage, name, { object: digest, size: content.length, ...members });
    (stage.objects as Json)[name] = digest;
  }
  if (resultOf(grade).kind === 'report') rereport(bundle, n, { [name]: digest });
}

function editJson(bundle: LooseBundle, n: number, name: string, change: (value: Json) => void): void {
  edit(bundle, n, name, (content) => {
    const value = JSON.parse(content) as Json;
    change(value);
    return JSON.stringify(value);
  });
}

/** Gives the trial of a grading another name, wherever it stands. */
function rename(bundle: LooseBundle, n: number, grading: number, name: string): void {
  const grade = stageOf(bundle, slotAt(bundle, n), 'grade', grading);
  const objects = grade.objects as Json;
  const papers: Json = {};
  for (const file of ['result', 'config']) {
    const paper = { ...parsed(bundle, objects[file]), trial_name: name };
    if (file === 'result')
      Object.assign(paper, { config: { ...((paper as Json).config as Json), trial_name: name } });
    const text = JSON.stringify(paper);
    papers[file] = objects[file] = bundle.keep(text);
    observe(bundle, grade, file, { object: papers[file], size: text.length });
  }
  objects.trial = bundle.keep(canonicalText({ ...seenOf(bundle, grade), trial: name }));
  rereport(bundle, n, { ...papers, trial: name }, grading);
}

/** Changes the report of a slot and what names it. */
function rereport(bundle: LooseBundle, n: number, members: Json, grading = 0): void {
  const slot = slotAt(bundle, n);
  const grade = stageOf(bundle, slot, 'grade', grading);
  const report = { ...parsed(bundle, resultOf(grade).report), ...members };
  settle(bundle, slot, grade, bundle.keep(canonicalText(report)), report.reward);
}

function settle(bundle: LooseBundle, slot: string, grade: Loose, report: string, value: unknown): void {
  Object.assign(resultOf(grade), { report, value });
  const settled = entryOf(bundle, slot, 'slot.settled');
  settled.value = value;
  Object.assign(settled.basis as Json, { report });
}
