import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { digestOf } from '../../src/core/digest.js';
import type { PlanSetting } from './fixture.js';

export interface HarborOptions {
  /** The outer deadline in seconds. */
  readonly wall?: number;
  /** A stop command that writes down the names that it is given, or ends what containers stand for. */
  readonly stop?: 'noted' | 'containers';
  /** What the harness must say of itself, as a line of YAML. */
  readonly version?: string;
}

const PROGRAM = '[node, harbor/harbor.mjs, trial, start, -c, "{config}"]';

const STOPS = {
  noted: 'stop: { argv: [node, harbor/stop.mjs, "{trial}"], wall_s: 5 }',
  containers: 'stop: { argv: [node, harbor/container.mjs, stop, "{trial}", ../../../containers], wall_s: 5 }',
};

const harborRunner = ({ wall = 30, stop, version }: HarborOptions) => `
  adapter: harbor
  trial:
    argv: ${PROGRAM}
    config:
      agent: { name: terminus-2, model_name: "openai/{model}", kwargs: { seed: "{sampling_seed}", temperature: "{temperature}" } }
      environment: { type: docker }
      timeout_multiplier: 1
    wall_s: ${wall}
    output_bytes: 1000
  regrade:
    argv: ${PROGRAM}
    config:
      agent: { import_path: "patch:Apply", kwargs: { patch: "{candidate}" } }
      environment: { type: docker }
    wall_s: ${wall}
    output_bytes: 1000
  ${stop === undefined ? '' : STOPS[stop]}
  ${version === undefined ? '' : `version: ${version}`}
  grace_s: 0.2
  tasks: { source: tasks, folder: prompt, digest: harbor_digest }
  candidate: { file: artifacts/logs/artifacts/patch.diff, when_absent: empty }
  model_service: "the identity of the weights rests on the operator's word"
  gpus: 0
  sources: { harbor: harbor, tasks: harbor-tasks }`;

const RULES = `[
  { id: before-agent, when: { phase: [environment_setup, agent_setup], cause: trial_exception }, attribute: infrastructure, sufficient: true },
  { id: tests-not-copied, when: { phase: verifier, cause: trial_exception, exception: AddTestsDirError }, attribute: infrastructure, sufficient: true },
  { id: gone, when: { cause: process_gone }, attribute: infrastructure, sufficient: true } ]`;

/** One task for each of these modes of the stand-in for Harbor. */
export function harborPlan(modes: readonly string[], options: HarborOptions = {}): PlanSetting {
  const file = (name: string) => readFileSync(join(import.meta.dirname, name));
  const stop =
    "import { appendFileSync } from 'node:fs';\nappendFileSync('../../../stopped.log', process.argv[2] + '\\n');\n";
  return {
    prompts: Object.fromEntries(modes.map((mode) => [mode, mode])),
    fields: { harbor_digest: digestOf('task') },
    files: {
      'harbor/harbor.mjs': file('harbor-stub.mjs'),
      'harbor/linger.mjs': file('harbor-linger.mjs'),
      'harbor/container.mjs': file('container.mjs'),
      'containers/README': 'Numbers of processes that stand for containers.\n',
      'harbor/stop.mjs': stop,
      ...Object.fromEntries(modes.map((mode) => [`harbor-tasks/${mode}/instruction.md`, `${mode}\n`])),
    },
    runner: harborRunner(options),
    grader: '{ kind: reward, key: reward, reward: { min: 0, max: 1 } }',
    attempts: `{ replacements: 1, regrades: 1, breaker: 100, rules: ${RULES} }`,
  };
}
