import { canonicalBytes } from '../../src/core/canonical-json.js';
import { type Digest, digestOf } from '../../src/core/digest.js';
import { BoundbookError } from '../../src/core/errors.js';
import type { HarborRunner } from '../../src/protocol/schema/harbor-runner.js';
import { NOTHING_MORE, type Work } from '../../src/runner/adapters/adapter.js';
import { trialRequest } from '../../src/runner/adapters/harbor.js';
import {
  type Regrade,
  type TrialExpectations,
  trialConfig,
  trialExpectations,
} from '../../src/runner/adapters/harbor-config.js';
import type {
  TrialEvidence,
  TrialFile,
  TrialObservation,
} from '../../src/runner/adapters/harbor-evidence.js';
import { gradeOfRegrade, readTrial, type TrialGrade } from '../../src/runner/adapters/harbor-trial.js';
import { generateRecord, gradeRecord } from '../../src/runner/drafts.js';

/** What a Harbor trial comes to; a trial that says nothing more gets the reward 1. */
export interface TrialStory {
  /** The last phase that began; the verifier when absent. */
  readonly until?: 'environment_setup' | 'agent_setup' | 'agent_execution';
  readonly exception?: string;
  /** Null: none. */
  readonly rewards?: Readonly<Record<string, number | null>> | null;
  /** Content of `verifier/reward.txt`, that of `rewards.reward` when absent; null: no such file. */
  readonly text?: string | null;
  /** Content of `verifier/reward.json`. */
  readonly json?: string;
  /** Whether nobody saw its process end. */
  readonly unseen?: boolean;
}

/** Changes of the small protocol (small-book.ts) that make it one of Harbor trials. */
export function harborProtocol(text: string): string {
  const trial = 'argv: [node, runner/server.js, trial, start, -c, "{config}"]';
  const rest = 'environment: { type: docker } }, wall_s: 10, output_bytes: 100000';
  const runner = `runner:
  adapter: harbor
  trial: { ${trial}, config: { agent: { name: terminus-2, model_name: "openai/{model}", kwargs: { seed: "{sampling_seed}" } }, ${rest} }
  regrade: { ${trial}, config: { agent: { import_path: "patch:Apply", kwargs: { patch: "{candidate}" } }, ${rest} }
  stop: { argv: [node, runner/server.js, "{trial}"], wall_s: 5 }
  grace_s: 1
  tasks: { source: server, folder: folder, digest: digest }
  candidate: { file: artifacts/patch.diff, when_absent: empty }
  model_service: "the identity of the weights rests on the operator's word"
  gpus: 0
  sources: { server: runner }
`;
  return text
    .replace(/runner:\n(.*\n)*?attempts:/, `${runner}attempts:`)
    .replace(
      'grader: { kind: integer, answer: answer }',
      'grader: { kind: reward, key: reward, reward: { min: 0, max: 1 } }',
    )
    .replace(
      /- \{ id: lost.*\n.*\n.*\n/,
      `- { id: before-agent, when: { phase: [environment_setup, agent_setup], cause: trial_exception }, attribute: infrastructure, sufficient: true }
    - { id: tests-not-copied, when: { phase: verifier, cause: trial_exception, exception: AddTestsDirError }, attribute: infrastructure, sufficient: true }
`,
    );
}

/** The fields that such a protocol asks of a task. */
export const trialFields = (id: string) => ({ folder: id, digest: digestOf(`task ${id}`) });

/** Where a trial's entries belong, and what its plan is. */
export interface TrialSite {
  readonly runner: HarborRunner;
  readonly manifest: Digest;
  readonly work: Work;
  readonly attempt: string;
}

export function smallTrialRequest({ runner, manifest, work, attempt }: TrialSite): Buffer {
  const places = { weights: `/weights/${work.model}`, tokenizer: null };
  return canonicalBytes(trialRequest(runner, manifest, work, attempt, places));
}

/** The ends of the stages that one trial holds: both, or that of the grading alone. */
export function trialStages(site: TrialSite, story: TrialStory, regrade: Regrade | null) {
  const { runner, manifest, work, attempt } = site;
  const names = { attempt, slot: work.slot.id };
  const expected = trialExpectations(runner, manifest, attempt, work, regrade);
  const evidence = evidenceOf(site, story, expected);
  const reading = readTrial(evidence, expected);
  const ended = { ...NOTHING_MORE, objects: evidence.objects };
  const graded = (candidate: Digest, grade: TrialGrade) =>
    gradeRecord(names, candidate, { ...grade, ...ended, seconds: 0.5 });
  if (regrade !== null) return [graded(regrade.candidate, gradeOfRegrade(reading))];
  const finished = { ...ended, finishReason: story.unseen === true ? null : 'exit 0', seconds: 1.25 };
  if (reading.kind === 'failure') return [generateRecord(names, { ...reading, ...finished })];
  const bytes = evidence.bytes.candidate;
  if (bytes === undefined) throw new BoundbookError('INTERNAL', 'a trial without its candidate');
  return [
    generateRecord(names, { kind: 'candidate', bytes, ...finished }),
    graded(reading.candidate, reading.grade),
  ];
}

const START = Date.UTC(2026, 10, 30);
const PHASES = ['environment_setup', 'agent_setup', 'agent_execution', 'verifier'] as const;

function evidenceOf(
  { runner, work }: TrialSite,
  story: TrialStory,
  expected: TrialExpectations,
): TrialEvidence {
  const { trial, graded } = expected;
  const template = trialConfig(runner, work, graded === null ? null : '/work/candidate');
  const config = { ...(template as object), trial_name: trial, trials_dir: '/work' };
  const papers = {
    result: JSON.stringify(resultOf(config, work.slot.task, trial, story)),
    config: JSON.stringify(config),
    lock: JSON.stringify({
      ...(template as object),
      schema_version: 2,
      task: { type: 'local', digest: expected.taskDigest },
      source_trial: null,
    }),
  };
  const verified = story.until === undefined;
  const written = story.text === undefined ? shown(story.rewards) : story.text;
  const patch = `patch of ${work.slot.task}\n`;
  const bytes = {
    ...buffers(papers),
    ...(verified && story.json !== undefined ? buffers({ reward_json: story.json }) : {}),
    ...(verified && written !== null ? buffers({ reward_text: written }) : {}),
    ...(verified ? buffers({ candidate: patch }) : {}),
  } as TrialEvidence['bytes'];
  const log = Buffer.from(`the log of ${trial}\n`);
  const { candidate: _, ...kept } = bytes;
  const observation: TrialObservation = {
    trial,
    exit:
      story.unseen === true ? null : { exit_status: 0, signal: null, timed_out: false, spawn_error: null },
    files: {
      result: seen(bytes, 'result'),
      config: seen(bytes, 'config'),
      lock: seen(bytes, 'lock'),
      reward_json: seen(bytes, 'reward_json'),
      reward_text: seen(bytes, 'reward_text'),
      candidate: seen(bytes, 'candidate'),
    },
    logs: { log: log.length },
  };
  return { observation, bytes, objects: { trial: canonicalBytes(observation), ...kept, log } };
}

/** Each phase takes a second, and the next begins a second later. */
function resultOf(config: object, task: string, trial: string, story: TrialStory): object {
  const last = PHASES.indexOf(story.until ?? 'verifier');
  const rewards = story.rewards === undefined ? { reward: 1 } : story.rewards;
  const phases = PHASES.map((name, i) => [
    name,
    i > last ? null : { started_at: time(2 * i + 1), finished_at: time(2 * i + 2) },
  ]);
  return {
    task_name: task,
    trial_name: trial,
    config: { ...config, source_trial: null },
    agent_info: { name: (config as { agent: { name?: string } }).agent.name ?? 'patch', version: '1' },
    verifier_result: story.until !== undefined || rewards === null ? null : { rewards },
    exception_info:
      story.exception === undefined
        ? null
        : { exception_type: story.exception, exception_message: `${story.exception}: as a trial says it` },
    started_at: time(0),
    finished_at: time(9),
    ...Object.fromEntries(phases),
  };
}

function time(second: number): string {
  return new Date(START + second * 1000).toISOString().replace('Z', '000+00:00');
}

/** Files are of the second in which the verifier worked. */
function seen(
  bytes: TrialEvidence['bytes'],
  name: TrialFile | 'candidate',
): TrialObservation['files']['result'] {
  const content = bytes[name];
  if (content === undefined) return { kind: 'absent' };
  const at = START + 7500;
  return { kind: 'file', object: digestOf(content), size: content.length, modified_ms: at, changed_ms: at };
}

/** What a verifier's test script would have written. */
function shown(rewards: TrialStory['rewards']): string | null {
  if (rewards === null) return null;
  const value = rewards === undefined ? 1 : rewards.reward;
  return value === undefined ? null : value === null ? 'nan\n' : `${value}\n`;
}

function buffers(texts: Readonly<Record<string, string>>): Record<string, Buffer> {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, Buffer.from(text)]));
}
