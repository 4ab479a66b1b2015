import { dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { auditBundle } from '../../src/audit/audit.js';
import { exportBundle } from '../../src/audit/bundle/export.js';
import { canonicalText } from '../../src/core/canonical-json.js';
import { chainAnew, entryOf, resultOf, stageOf } from '../support/conformance/case.js';
import { type Loose, LooseBundle } from '../support/loose-bundle.js';
import { hasPython, python, VERIFIER } from '../verify/python.js';
import { temporaryFolder, trial } from './fixture.js';
import { harborPlan } from './harbor-plan.js';

/** What somebody could make of a book of trials who hashes everything anew: each must be found by both verifiers. */

type Json = Record<string, unknown>;

let sound = '';

beforeAll(async () => {
  const modes = ['pass', 'fail', 'AgentTimeoutError', 'VerifierTimeoutError', 'regrade-passes', 'json'];
  const { run, root } = await trial(harborPlan(modes));
  await run();
  sound = (await exportBundle(root, undefined, { out: 'bundle', beforeUnblinding: true })).folder;
}, 60_000);

/** The slot of a task. */
function slotOf(bundle: LooseBundle, task: string): string {
  const start = bundle.entries.find(
    ({ type, key }) => type === 'attempt.started' && (key as Json).task === task,
  );
  return String(start?.slot);
}

function parsed(bundle: LooseBundle, digest: unknown): Json {
  return JSON.parse(bundle.object(digest).toString('utf8')) as Json;
}

/** Edits a file of a trial, and what rests on its digest: what was seen of it, both stages, and the report. */
function edit(bundle: LooseBundle, slot: string, name: string, content: string, seen: Json = {}): void {
  const digest = bundle.keep(content);
  const grade = stageOf(bundle, slot, 'grade');
  const observation = parsed(bundle, (grade.objects as Json).trial);
  const files = observation.files as Record<string, Json>;
  files[name] = { ...files[name], object: digest, size: content.length, ...seen };
  const trialDigest = bundle.keep(canonicalText(observation));
  for (const stage of [stageOf(bundle, slot, 'generate'), grade]) {
    Object.assign(stage.objects as Json, { trial: trialDigest, [name]: digest });
  }
  rereport(bundle, slot, { [name]: digest });
}

/** Changes the report of a slot and what names it. */
function rereport(bundle: LooseBundle, slot: string, members: Json): void {
  const grade = stageOf(bundle, slot, 'grade');
  const report = { ...parsed(bundle, resultOf(grade).report), ...members };
  settle(bundle, slot, bundle.keep(canonicalText(report)), report.reward);
}

function settle(bundle: LooseBundle, slot: string, report: string, value: unknown): void {
  Object.assign(resultOf(stageOf(bundle, slot, 'grade')), { report, value });
  const settled: Loose = entryOf(bundle, slot, 'slot.settled');
  settled.value = value;
  Object.assign(settled.basis as Json, { report });
}

const FORGED: readonly (readonly [
  what: string,
  task: string,
  codes: string,
  forge: (bundle: LooseBundle, slot: string) => void,
])[] = [
  [
    'a raised reward',
    'fail',
    'REPORT_DIFFERS VALUE_DIFFERS',
    (bundle, slot) => rereport(bundle, slot, { reward: 1 }),
  ],
  [
    'the report of another trial',
    'fail',
    'REPORT_DIFFERS',
    (bundle, slot) => {
      const other = stageOf(bundle, slotOf(bundle, 'pass'), 'grade');
      const grade = stageOf(bundle, slot, 'grade');
      grade.objects = structuredClone(other.objects);
      settle(bundle, slot, String(resultOf(other).report), 1);
    },
  ],
  [
    'a lock of another model',
    'pass',
    'CANDIDATE_DIFFERS REPORT_DIFFERS',
    (bundle, slot) => {
      const lock = parsed(bundle, (stageOf(bundle, slot, 'grade').objects as Json).lock);
      (lock.agent as Json).model_name = 'openai/other';
      edit(bundle, slot, 'lock', JSON.stringify(lock));
    },
  ],
  [
    'a task of another digest',
    'pass',
    'CANDIDATE_DIFFERS REPORT_DIFFERS',
    (bundle, slot) => {
      const lock = parsed(bundle, (stageOf(bundle, slot, 'grade').objects as Json).lock);
      (lock.task as Json).digest = `sha256:${'0'.repeat(64)}`;
      edit(bundle, slot, 'lock', JSON.stringify(lock));
    },
  ],
  [
    'null read as 0',
    'fail',
    'REPORT_DIFFERS',
    (bundle, slot) => {
      const result = parsed(bundle, (stageOf(bundle, slot, 'grade').objects as Json).result);
      (result.verifier_result as Json).rewards = { reward: null };
      edit(bundle, slot, 'result', JSON.stringify(result));
    },
  ],
  [
    'a reward file that was there before the verifier began',
    'pass',
    'REPORT_DIFFERS',
    (bundle, slot) => edit(bundle, slot, 'reward_text', '1\n', { modified_ms: 1 }),
  ],
  [
    'a reward file of another reward',
    'pass',
    'REPORT_DIFFERS',
    (bundle, slot) => edit(bundle, slot, 'reward_text', '0\n'),
  ],
  [
    'an exception left out',
    'AgentTimeoutError',
    'REPORT_DIFFERS',
    (bundle, slot) => rereport(bundle, slot, { exception: null }),
  ],
  [
    'an exception of another name',
    'VerifierTimeoutError',
    'FAILURE_DIFFERS',
    (bundle, slot) => {
      Object.assign(resultOf(stageOf(bundle, slot, 'grade')).signals as Json, { exception: 'OtherError' });
    },
  ],
  [
    'a sign of memory that nobody saw',
    'VerifierTimeoutError',
    'FAILURE_DIFFERS',
    (bundle, slot) => {
      Object.assign(resultOf(stageOf(bundle, slot, 'grade')).signals as Json, { oom_kill: true });
    },
  ],
  [
    'nothing kept of the trial',
    'pass',
    'REPORT_DIFFERS',
    (bundle, slot) => {
      delete (stageOf(bundle, slot, 'grade').objects as Json).trial;
    },
  ],
  [
    'a regrade of another patch',
    'regrade-passes',
    'REPORT_DIFFERS',
    (bundle, slot) => {
      const grade = stageOf(bundle, slot, 'grade', 1);
      const observation = parsed(bundle, (grade.objects as Json).trial);
      (observation.files as Record<string, Json>).candidate = { kind: 'absent' };
      (grade.objects as Json).trial = bundle.keep(canonicalText(observation));
    },
  ],
  [
    'usage of a trial',
    'pass',
    'ANSWER_DIFFERS',
    (bundle, slot) => {
      stageOf(bundle, slot, 'generate').usage = { prompt_tokens: 1, completion_tokens: 1 };
    },
  ],
];

/** What each bundle shows: codes of the audit, and the exit status of the second verifier. */
async function verdicts(folders: readonly string[]): Promise<readonly (readonly [string, number])[]> {
  const program = `
import io, json, os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, ${JSON.stringify(dirname(VERIFIER))})
import boundbook_verify
print(json.dumps([boundbook_verify.main([folder], io.StringIO()) for folder in json.load(sys.stdin)]))`;
  const second = hasPython
    ? (JSON.parse(python(['-c', program], JSON.stringify(folders)).stdout) as number[])
    : null;
  const shown: [string, number][] = [];
  for (const [i, folder] of folders.entries()) {
    const { findings } = await auditBundle(folder, { keys: [] });
    const codes = [...new Set(findings.map(({ code }) => code))].sort().join(' ');
    shown.push([codes, second?.[i] ?? (codes === '' ? 0 : 4)]);
  }
  return shown;
}

test('what is forged in a book of trials is found by both verifiers, and nothing else is', async () => {
  const harmless = LooseBundle.read(sound);
  edit(harmless, slotOf(harmless, 'pass'), 'reward_text', '+1.0e0\n');
  const forged = FORGED.map(([, task, , forge]) => {
    const bundle = LooseBundle.read(sound);
    forge(bundle, slotOf(bundle, task));
    return written(bundle);
  });
  const [asItIs, withOtherDigits, ...rest] = await verdicts([sound, written(harmless), ...forged]);
  expect([asItIs, withOtherDigits]).toEqual([
    ['', 0],
    ['', 0],
  ]);
  expect(FORGED.map(([what], i) => [what, ...(rest[i] ?? [])])).toEqual(
    FORGED.map(([what, , codes]) => [what, codes, 4]),
  );
}, 60_000);

function written(bundle: LooseBundle): string {
  chainAnew(bundle.entries);
  const folder = join(temporaryFolder(), 'bundle');
  bundle.write(folder);
  return folder;
}
