import { DEFAULT_RULES } from '../attempts/default-rules.js';
import { rulesYaml } from './rules-yaml.js';

/** What `boundbook init` writes: a protocol to start from and three tasks, so that `check` passes at once. */

export const STARTER_PROTOCOL = `# A plan for comparing two models. Read it from top to bottom, then make it yours; \`boundbook check\` explains what it
# does not accept. Nothing that affects an outcome has a default.
boundbook: 1 # version of this format
name: example
revision: 1
title: Does the trained model answer better than its base?

# What is asked: one JSON object a line. \`id\` names the field that holds the task's id; \`count\` is checked.
task_sets:
  arithmetic: { file: tasks/example.jsonl, id: id, count: 3 }

# Who is asked. Weights are folders, bound by the digest of every file; {seed} stands for the training seed.
models:
  base:
    weights: models/base
  tuned:
    training_seeds: [1, 2, 3]
    weights: "models/tuned-{seed}"

# How they are asked, and how answers are graded. {question} is a field of the task; {{ and }} stand for braces.
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
      answer: answer

# An arm is a model under a condition.
arms:
  base: { model: base, condition: default }
  tuned: { model: tuned, condition: default }

# How often each arm meets each task, and whether that is the confirmatory sample.
queues:
  main: { tasks: arithmetic, reps: 16, arms: [base, tuned], role: confirmatory }

# Sampling seeds follow from namespace, queue, task and rep; give every study its own namespace.
sampling:
  namespace: example-study
  bits: 31

# Groups run one after the other; inside a group a hash decides.
order:
  group_by: [arm, training_seed]
  within: hash

# The service under test. The gate starts it with the weights that it has just verified.
runner:
  adapter: openai
  endpoint: chat
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
  sources: {} # bind the code that you rely on, for example: { prompts: src/prompts }

# What may happen after a failure: the first rule that matches decides. What no rule attributes stays unresolved, which
# widens the bounds and is neither a 0 nor dropped. \`boundbook check --failures\` shows what the rules make of what.
attempts:
  replacements: 1
  regrades: 1
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
  - { queue: main, assumed_accuracy: 0.5, max_standard_error: 0.08 }

# What must be settled before the plan may run; closed by \`boundbook bind --resolve ITEM --evidence FILE\`.
pending: []
`;

export const STARTER_TASKS = `{"id":"sum-1","question":"What is 17 + 25?","answer":"42"}
{"id":"sum-2","question":"What is 8 * 9?","answer":"72"}
{"id":"sum-3","question":"What is 100 - 58?","answer":"42"}
`;
