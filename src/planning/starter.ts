import { DEFAULT_RULES } from '../attempts/default-rules.js';
import { rulesYaml } from './rules-yaml.js';
import { HARBOR_CONDITIONS, HARBOR_RUNNER, HARBOR_TASKS } from './starter-harbor.js';

/** What `boundbook init` writes: a protocol to start from, and tasks for it. */
export interface Starter {
  readonly protocol: string;
  /** Lines of its task file. */
  readonly tasks: string;
}

interface Parts {
  readonly title: string;
  readonly tasks: string;
  readonly conditions: string;
  readonly runner: string;
  readonly set: string;
  readonly reps: number;
  readonly regrades: number;
  /** The largest standard error that its sample allows. */
  readonly error: number;
}

const CONDITIONS = `# How they are asked, and how answers are graded. {question} is a field of the task; {{ and }} stand for braces.
conditions:
  default:
    prompt:
      user: "{question} Answer with the number only."
    decoding:
      temperature: 1
      top_p: 1
      top_k: -1
      min_p: 0
      max_tokens: 16
    reasoning: off # on or off, sent with every request
    grader:
      kind: integer # the whole answer is one integer, equal to the field \`answer\`; or: exact
      answer: answer`;

const RUNNER = `# The service under test. The gate starts it with the weights that it has just verified.
runner:
  adapter: openai
  endpoint: chat
  stream: true # an answer that is cut leaves what had come as evidence
  service:
    argv: [vllm, serve, "{weights}", --host, "{host}", --port, "{port}", --served-model-name, "{model}"]
    ready: { path: /health, timeout_s: 600 }
    restarts: 3
    stop_grace_s: 30
    gpus: 1
  limits:
    request_s: 300
    queue_wait_s: 60
    response_bytes: 1000000
  sources: {} # bind the code that you rely on, for example: { prompts: src/prompts }`;

const protocolOf = ({
  title,
  tasks,
  conditions,
  runner,
  set,
  reps,
  regrades,
  error,
}: Parts) => `# A plan for comparing two models. Read it from top to bottom, then make it yours; \`boundbook check\` explains what it
# does not accept. Nothing that affects an outcome has a default.
boundbook: 1 # version of this format
name: example
revision: 1
title: ${title}

${tasks}

# Who is asked. Weights are folders, bound by the digest of every file; {seed} stands for the training seed.
models:
  base:
    weights: models/base
  tuned:
    training_seeds: [1, 2, 3]
    weights: "models/tuned-{seed}"

${conditions}

# An arm is a model under a condition.
arms:
  base: { model: base, condition: default }
  tuned: { model: tuned, condition: default }

# How often each arm meets each task, and whether that is the confirmatory sample.
queues:
  main: { tasks: ${set}, reps: ${reps}, arms: [base, tuned], role: confirmatory }

# Sampling seeds follow from namespace, queue, task and rep; give every study its own namespace.
sampling:
  namespace: example-study
  bits: 31

# Groups run one after the other; inside a group a hash decides.
order:
  group_by: [arm, training_seed]
  within: hash

${runner}

# What may happen after a failure: the first rule that matches decides. What no rule attributes stays unresolved, which
# widens the bounds and is neither a 0 nor dropped. \`boundbook check --failures\` shows what the rules make of what.
attempts:
  replacements: 1
  regrades: ${regrades}
  breaker: 10 # so many equal infrastructure failures in a row pause the run
  rules:
${rulesYaml(DEFAULT_RULES)}

# No output shows an outcome by arm before \`boundbook unblind\`.
blinding: masked

# What will be computed. Whatever does not stand here is exploratory, or is not printed at all.
analysis:
  scores:
    - { id: main, queue: main }
  contrasts:
    - { id: tuned-base, minuend: tuned, subtrahend: base, queue: main, role: primary }
  # Both outcomes must be possible.
  decisions:
    - id: adopt
      contrast: tuned-base
      comparator: ">"
      threshold: 0
      when_met: the trained model is adopted
      otherwise: the base model stays
  interval:
    method: two_way_bootstrap
    resamples: 10000
    seed: 1
    level: 0.95

# The standard error that sampling may leave in one score: sqrt(p (1 - p) / (tasks x reps)).
precision:
  - { queue: main, assumed_accuracy: 0.5, max_standard_error: ${error} }

# What must be settled before the plan may run; closed by \`boundbook bind --resolve ITEM --evidence FILE\`.
pending: []
`;

const TASKS = `# What is asked: one JSON object a line. \`id\` names the field that holds the task's id; \`count\` is checked.
task_sets:
  arithmetic: { file: tasks/example.jsonl, id: id, count: 3 }`;

const ARITHMETIC = `{"id":"sum-1","question":"What is 17 + 25?","answer":"42"}
{"id":"sum-2","question":"What is 8 * 9?","answer":"72"}
{"id":"sum-3","question":"What is 100 - 58?","answer":"42"}
`;

/** By the runner that they are for. That of openai passes a check at once, that of harbor needs a dataset first. */
export const STARTERS = {
  openai: {
    protocol: protocolOf({
      title: 'Does the trained model answer better than its base?',
      tasks: TASKS,
      conditions: CONDITIONS,
      runner: RUNNER,
      set: 'arithmetic',
      reps: 16,
      regrades: 1,
      error: 0.08,
    }),
    tasks: ARITHMETIC,
  },
  harbor: {
    protocol: protocolOf({
      title: 'Does the trained model solve more tasks than its base?',
      tasks: HARBOR_TASKS.declared,
      conditions: HARBOR_CONDITIONS,
      runner: HARBOR_RUNNER,
      set: 'dataset',
      reps: 4,
      regrades: 0,
      error: 0.2,
    }),
    tasks: HARBOR_TASKS.lines,
  },
} as const satisfies Readonly<Record<string, Starter>>;

export type StarterName = keyof typeof STARTERS;
