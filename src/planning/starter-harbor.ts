/** The parts of a starting protocol that are Harbor's own. `check` names what stands in them for the user's dataset. */

const WHERE_THE_DIGEST_STANDS = 'task.digest in the lock.json of any trial of it';

export const HARBOR_TASKS = {
  declared: `# What is asked: one JSON object a line. \`id\` names the field that holds the task's id; \`count\` is checked.
# \`folder\` is the task's folder below harbor-tasks, \`digest\` is Harbor's digest of it: run one trial of the task by hand
# and copy \`task.digest\` from its lock.json.
task_sets:
  dataset: { file: tasks/example.jsonl, id: id, count: 2 }`,
  lines: `{"id":"first-task","folder":"first-task","digest":"${WHERE_THE_DIGEST_STANDS}"}
{"id":"second-task","folder":"second-task","digest":"${WHERE_THE_DIGEST_STANDS}"}
`,
} as const;

export const HARBOR_CONDITIONS = `# How they are asked. The agent reads the task's own instruction; what stands here reaches it only where the trial config
# below names it.
conditions:
  default:
    prompt:
      user: "{id}"
    decoding:
      temperature: 1
      top_p: 1
      top_k: -1
      min_p: 0
      max_tokens: 4096
    grader: # the member of Harbor's rewards that counts, and its range
      kind: reward
      key: reward
      reward: { min: 0, max: 1 }`;

export const HARBOR_RUNNER = `# One Harbor trial for each attempt, under a name of its own. Harbor's retries stay off: what is tried again stands below.
runner:
  adapter: harbor
  trial:
    argv: [env, HARBOR_TELEMETRY=0, harbor, trial, start, -c, "{config}"]
    config: # Harbor's trial config; Boundbook adds trial_name, trials_dir and task
      agent:
        name: terminus-2
        model_name: "openai/{model}"
        kwargs: { api_base: "http://127.0.0.1:8000/v1", temperature: "{temperature}" }
      environment: { type: docker }
      artifacts: [/logs/artifacts/patch.diff]
    wall_s: 10800 # the outer deadline, above Harbor's own limits
    output_bytes: 1000000 # of stdout, of stderr, and of the end of each log
    env: [OPENAI_API_KEY]
  # With attempts.regrades: 1 declare \`regrade\` here: a trial whose agent applies the kept patch (see the guide).
  stop: { argv: [docker, compose, --project-name, "{trial}__env", down, --remove-orphans], wall_s: 60 }
  grace_s: 30
  tasks: { source: tasks, folder: folder, digest: digest }
  candidate: { file: artifacts/logs/artifacts/patch.diff, when_absent: empty }
  model_service: "the identity of the weights rests on the operator's word"
  gpus: 1
  # Bind what you rely on: the dataset, and Harbor as it is installed, for example { …, harbor: /opt/harbor }.
  sources: { tasks: harbor-tasks }`;
