import { z } from 'zod';

/**
 * The protocol's shape (DESIGN §5). zod holds the form of each part; what refers to something else (arms to
 * models, queues to task sets) and what depends on the text (quoting, number forms) is checked in `read.ts`.
 * Nothing that affects an outcome has a default: a misspelt key must never silently change a run.
 */

/** Names that become parts of file names. */
const fileName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9._-]{0,63}$/,
    'use 1 to 64 of a-z, 0-9, dot, dash and underscore, starting with a letter or digit',
  );
const id = z.string().min(1).max(200);
const count = z.int().min(1).max(10_000_000);
const seconds = z
  .number()
  .positive()
  .max(7 * 24 * 3600);
const byteCount = z
  .int()
  .min(1)
  .max(2 ** 40);
const path = z.string().min(1).max(4096);
const argv = z.array(z.string().max(4096)).min(1).max(256);

const taskSet = z.union([
  z.strictObject({
    file: path.describe('a JSONL file, one task object a line'),
    id: z.string().min(1).describe('the field that holds the task id'),
    count,
  }),
  z.strictObject({
    subset_of: id,
    ids: path.describe('a text file, one task id a line'),
    count,
  }),
  z.strictObject({
    union_of: z.array(id).min(2).describe('task sets that are merged task by task'),
    count,
  }),
]);

const model = z.strictObject({
  training_seeds: z.array(z.int()).min(1).optional().describe('absent for a model that was not trained here'),
  weights: path.describe('a folder; {seed} stands for the training seed'),
  tokenizer: path.optional().describe('a file; {seed} stands for the training seed'),
});

const decoding = z.strictObject({
  temperature: z.number().min(0).max(10),
  top_p: z.number().min(0).max(1),
  top_k: z.int().min(-1),
  min_p: z.number().min(0).max(1),
  max_tokens: z.int().min(1),
  stop: z.array(z.string().min(1)).max(4).optional(),
  presence_penalty: z.number().optional(),
  frequency_penalty: z.number().optional(),
  repetition_penalty: z.number().optional(),
});

const rewardRange = z.strictObject({ min: z.number(), max: z.number() });

export const graderSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('exact').describe('the answer equals the task field, after trimming white space'),
    answer: z.string().min(1).describe('the task field that holds the reference answer'),
  }),
  z.strictObject({
    kind: z.literal('integer').describe('the whole answer is one decimal integer of the same value'),
    answer: z.string().min(1).describe('the task field that holds the reference answer'),
  }),
  z.strictObject({
    kind: z
      .literal('boxed')
      .describe('what stands in the last \\boxed{…}; one that is not closed is no answer'),
    answer: z.string().min(1).describe('the task field that holds the reference answer'),
    compare: z.enum(['exact', 'integer']).describe('how both are compared'),
  }),
  z.strictObject({
    kind: z.literal('report').describe("the grade command's report decides"),
    expected_tests: z.string().min(1).optional().describe('the task field that lists the expected tests'),
    reward: rewardRange,
    report_schema: path.optional().describe('a JSON Schema (2020-12) that every report must pass'),
  }),
  z.strictObject({
    kind: z.literal('reward').describe("the reward that Harbor's verifier gives decides"),
    key: z.string().min(1).max(200).describe('the name of the reward; other rewards are not read'),
    reward: rewardRange,
  }),
]);

const loopStop = z.strictObject({
  unit: z.enum(['words', 'characters']),
  length: z.int().min(1).max(256).describe('units in the repeated sequence'),
  repeats: z.int().min(2).max(65_536).describe('how often it must stand in the window'),
  window: z.int().min(2).max(65_536).describe('how many of the last units are looked at'),
});

const condition = z.strictObject({
  prompt: z.strictObject({
    system: z.string().optional(),
    user: z.string().min(1).describe('{field} stands for a field of the task; {{ and }} for braces'),
  }),
  decoding,
  reasoning: z
    .enum(['on', 'off'])
    .optional()
    .describe(
      'sent as chat_template_kwargs.enable_thinking, which a template without such a flag ignores; absent: not sent',
    ),
  grader: graderSchema,
  loop_stop: loopStop
    .optional()
    .describe(
      'a generation that repeats itself so is ended there, and graded as it is; needs a streamed answer',
    ),
  execution: z
    .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
    .optional()
    .describe('further shared conditions (context, time factor, network) that are part of the identity'),
});

const queue = z.strictObject({
  tasks: id,
  reps: z.int().min(1).max(100_000),
  arms: z.array(id).min(1),
  role: z.enum(['confirmatory', 'exploratory']),
  evaluation_seeds: z.array(z.int().min(0)).min(1).optional().describe('absent: one evaluation, seed 0'),
});

const environmentNames = z.array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/)).max(64);

const command = z.strictObject({
  argv: argv.describe(
    '{request} {output} {task} {candidate} stand for paths, {container} for a name; never a shell',
  ),
  wall_s: seconds,
  idle_s: seconds.optional().describe('ends the stage when no byte was written for so long; absent: never'),
  output_bytes: byteCount.describe('how much of each output stream is kept'),
  env: environmentNames.optional().describe('environment variables that are passed on'),
  stop: argv
    .optional()
    .describe('run when the stage is over, however it ended: ends {container}, which may outlive its client'),
});

const artifact = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'is lower case letters, digits, dots, - and _'),
  file: z.string().min(1).describe('the file in the output folder of generate'),
  max_bytes: z
    .int()
    .min(1)
    .max(2 ** 28),
});

const cgroup = z.strictObject({
  path: z
    .string()
    .regex(/^\//, 'begins with a slash')
    .max(4096)
    .describe('a cgroup folder that the runner may write'),
  memory_bytes: z
    .int()
    .min(2 ** 24)
    .max(2 ** 40)
    .optional()
    .describe('what each stage may use; absent: no limit of its own'),
});

const sources = z.record(id, path).describe('files and folders of the runner that are bound, by name');

/** What a protocol must say, word for word, to have a service that the gate did not start (P10). */
export const OPERATORS_WORD = "the identity of the weights rests on the operator's word";

const ready = z.strictObject({ path: z.string().regex(/^\//, 'begins with a slash'), timeout_s: seconds });

const health = z
  .strictObject({
    every_s: seconds,
    timeout_s: seconds,
    failures: z.int().min(1).max(1000).describe('how many in a row end the service'),
    path: ready.shape.path.optional().describe('absent: that of ready'),
  })
  .optional()
  .describe('absent: a service is not asked whether it is well while attempts run');

const canary = z
  .strictObject({
    prompts: z.array(z.string().min(1).max(20_000)).min(1).max(16),
    max_tokens: z.int().min(1).max(512),
    logprobs: z.int().min(0).max(20).describe('how many alternatives are asked for beside each token'),
    logprob_tolerance: z.number().min(0).max(1000),
  })
  .optional()
  .describe('fixed prompts, answered greedily at every start and end of a service, and compared');

const managedService = z.strictObject({
  argv: argv.describe('{weights} {tokenizer} {host} {port} {model} are filled in by the gate'),
  env: environmentNames.optional(),
  ready,
  restarts: z.int().min(0).max(1000).describe('how often a dead service is started again in one session'),
  stop_grace_s: seconds,
  gpus: z.int().min(0),
  max_up: z.int().min(1).max(1000).optional().describe('how many services may be up at once; absent: 1'),
  health,
  canary,
});

const origin = z
  .string()
  .max(300)
  .regex(/^https?:\/\/[A-Za-z0-9._:[\]-]+$/, 'is an address without a path, like "http://127.0.0.1:8000"');

const externalService = z.strictObject({
  external: z.strictObject({
    origin: z
      .union([origin, z.record(id, origin)])
      .describe('the address of the service, or one for each model, by its name (M@42)'),
    accepted: z.literal(OPERATORS_WORD),
    api_key_env: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
      .optional()
      .describe('the environment variable that holds the key; the key itself is never written anywhere'),
  }),
  ready,
  gpus: z.int().min(0),
  health,
  canary,
});

const openaiRunner = z.strictObject({
  adapter: z.literal('openai'),
  endpoint: z.enum(['chat', 'completions']),
  stream: z
    .boolean()
    .optional()
    .describe(
      'true: answers are streamed, so that what came of one that is cut is kept; absent: they are not',
    ),
  service: z.union([managedService, externalService]),
  limits: z.strictObject({
    request_s: seconds,
    queue_wait_s: z
      .number()
      .min(0)
      .max(24 * 3600),
    response_bytes: byteCount,
  }),
  sources,
});

const commandRunner = z.strictObject({
  adapter: z.literal('command'),
  generate: command,
  grade: command,
  grace_s: seconds,
  candidate: z.string().min(1).describe('the file in the output folder that is the candidate'),
  artifacts: z
    .array(artifact)
    .max(32)
    .optional()
    .describe('further files of generate that are kept as evidence; none of them is needed'),
  cgroup: cgroup
    .optional()
    .describe('each stage runs in a control group of its own, and its memory is watched'),
  gpus: z.int().min(0),
  sources,
});

const harborTrial = z.strictObject({
  argv: argv.describe('{config} {trial} {trials} {task} {candidate} {weights} {tokenizer} stand for values'),
  config: z
    .record(z.string(), z.unknown())
    .describe("Harbor's trial config; {model} {sampling_seed} {temperature} … stand for values of the slot"),
  wall_s: seconds.describe("the outer deadline, above Harbor's own"),
  output_bytes: byteCount.describe('how much of each output stream and each log is kept'),
  env: environmentNames.optional().describe('environment variables that are passed on'),
});

const harborRunner = z.strictObject({
  adapter: z.literal('harbor'),
  trial: harborTrial.describe('one whole trial: agent, then verifier'),
  regrade: harborTrial
    .optional()
    .describe('a trial whose agent only applies {candidate}; needed for regrades'),
  stop: z
    .strictObject({ argv, wall_s: seconds })
    .optional()
    .describe('ends what a broken trial leaves behind; {trial} stands for its name'),
  grace_s: seconds,
  tasks: z.strictObject({
    source: id.describe("the source that holds Harbor's task folders"),
    folder: z.string().min(1).describe('the task field that names the folder in it'),
    digest: z.string().min(1).describe("the task field that holds Harbor's digest of it: sha256:…"),
  }),
  candidate: z.strictObject({
    file: z.string().min(1).describe("the patch's file in the trial folder"),
    when_absent: z
      .enum(['empty', 'failure'])
      .describe('what a verified trial without that file is: an empty patch, or no candidate'),
  }),
  model_service: z
    .literal(OPERATORS_WORD)
    .describe('in these words: agents ask services that the gate did not start'),
  gpus: z.int().min(0),
  sources,
});

const runner = z.discriminatedUnion('adapter', [openaiRunner, commandRunner, harborRunner]);

export const STAGES = ['generate', 'grade'] as const;
export const PHASES = [
  'queue',
  'connect',
  'headers',
  'body',
  'spawn',
  'running',
  'collect',
  'between',
  'environment_setup',
  'agent_setup',
  'agent_execution',
  'verifier',
] as const;
export const CAUSES = [
  'connection_refused',
  'connection_lost',
  'time_limit',
  'queue_limit',
  'http_status',
  'body_not_json',
  'body_error',
  'body_no_choice',
  'body_malformed',
  'body_too_large',
  'spawn_failed',
  'exit_status',
  'killed_by_signal',
  'candidate_missing',
  'report_missing',
  'report_invalid',
  'process_gone',
  'grader_fault',
  'storage_fault',
  'stream_cut',
  'model_differs',
  'idle_limit',
  'settings_differ',
  'trial_exception',
  'trial_mismatch',
  'trial_unreadable',
] as const;
/** What befell the host of an attempt. */
export const HOST_EVENTS = ['boot_changed'] as const;

const oneOrMore = <T extends z.ZodType>(item: T) => z.union([item, z.array(item).min(1)]);
const httpStatus = z.union([z.int().min(100).max(599), z.enum(['4xx', '5xx'])]);

const rule = z.strictObject({
  id,
  when: z
    .strictObject({
      stage: oneOrMore(z.enum(STAGES)).optional(),
      phase: oneOrMore(z.enum(PHASES)).optional(),
      cause: oneOrMore(z.enum(CAUSES)).optional(),
      http_status: oneOrMore(httpStatus).optional(),
      embedded_status: oneOrMore(httpStatus)
        .optional()
        .describe('the status inside an error body sent under 200'),
      exit_status: oneOrMore(z.int().min(0).max(255)).optional(),
      signal: oneOrMore(z.string().regex(/^SIG[A-Z0-9]+$/)).optional(),
      service_alive: z.boolean().optional(),
      first_token: z.boolean().optional().describe('of a streamed answer: whether any token had come'),
      oom_kill: z
        .boolean()
        .optional()
        .describe("whether the kernel ended a process of the stage's own control group for want of memory"),
      host_event: oneOrMore(z.enum(HOST_EVENTS)).optional(),
      exception: oneOrMore(z.string().min(1)).optional().describe('never suffices by itself'),
      text: z
        .string()
        .min(1)
        .optional()
        .describe('a regular expression over the error text; never suffices by itself'),
    })
    .refine((when) => Object.keys(when).length > 0, 'a rule needs at least one condition'),
  attribute: z.enum(['infrastructure', 'model', 'undetermined']),
  sufficient: z.boolean().describe('false: the signals hint at the cause but leave it undetermined'),
});

const attempts = z.strictObject({
  replacements: z.int().min(0).max(1),
  regrades: z.int().min(0).max(1),
  breaker: z.int().min(1).describe('how many equal infrastructure failures in a row pause the run'),
  rules: z.array(rule).max(200),
  adjudication: z
    .enum(['required', 'none'])
    .optional()
    .describe('required: every undetermined slot has a verdict before outcomes are unblinded; absent: none'),
});

const contrast = z.strictObject({
  id,
  minuend: id,
  subtrahend: id,
  queue: id,
  role: z.enum(['primary', 'secondary', 'exploratory']),
});

const decision = z.strictObject({
  id,
  contrast: id,
  comparator: z.enum(['>', '>=', '<', '<=']),
  threshold: z.number(),
  when_met: z.string().min(1),
  otherwise: z.string().min(1),
});

const analysis = z.strictObject({
  scores: z.array(z.strictObject({ id, queue: id })).min(1),
  contrasts: z.array(contrast),
  tables: z
    .array(
      z.strictObject({
        id,
        queue: id,
        partitions: z.array(id).min(1),
        role: z.enum(['secondary', 'exploratory']),
      }),
    )
    .optional(),
  decisions: z.array(decision).optional(),
  interval: z.strictObject({
    method: z.literal('two_way_bootstrap'),
    resamples: z.int().min(100).max(1_000_000),
    seed: z.int().min(0),
    level: z.number().gt(0).lt(1),
  }),
});

const precision = z.strictObject({
  queue: id,
  assumed_accuracy: z.number().min(0).max(1),
  max_standard_error: z.number().positive(),
});

export const protocolSchema = z.strictObject({
  boundbook: z.literal(1).describe('version of this format'),
  name: fileName,
  revision: z.int().min(1).max(9999),
  title: z.string().min(1),
  due: z.iso.date().optional().describe('when the report is due, quoted: "2026-12-31"'),
  task_sets: z.record(id, taskSet),
  models: z.record(id, model),
  conditions: z.record(id, condition),
  arms: z.record(id, z.strictObject({ model: id, condition: id })),
  queues: z.record(id, queue),
  sampling: z.strictObject({ namespace: id, bits: z.int().min(8).max(53) }),
  order: z.strictObject({
    group_by: z.array(z.enum(['queue', 'arm', 'training_seed', 'evaluation_seed'])),
    within: z.literal('hash'),
  }),
  runner,
  attempts,
  blinding: z.enum(['masked', 'none']),
  analysis,
  precision: z.array(precision).optional(),
  checkpoints: z
    .strictObject({
      every_attempts: z
        .int()
        .min(1)
        .max(1_000_000)
        .describe('attempts started between two checkpoints of a run'),
    })
    .optional()
    .describe('absent: at the start and the end of a run, and every 1000 attempts'),
  pending: z.array(id),
});

export type Protocol = z.infer<typeof protocolSchema>;
export type TaskSet = Protocol['task_sets'][string];
export type Model = Protocol['models'][string];
export type Condition = Protocol['conditions'][string];
export type Queue = Protocol['queues'][string];
export type LoopStop = z.infer<typeof loopStop>;
export type Decoding = Condition['decoding'];
export type Grader = z.infer<typeof graderSchema>;
export type Runner = Protocol['runner'];
export type OpenaiRunner = z.infer<typeof openaiRunner>;
export type ManagedService = z.infer<typeof managedService>;
export type ExternalService = z.infer<typeof externalService>;
export type CanarySetting = NonNullable<ManagedService['canary']>;
export type HealthSetting = NonNullable<ManagedService['health']>;
export type CommandRunner = z.infer<typeof commandRunner>;
export type HarborRunner = z.infer<typeof harborRunner>;
export type HarborTrial = z.infer<typeof harborTrial>;
export type AttributionRule = z.infer<typeof rule>;
export type AttemptLimits = Protocol['attempts'];
export type Contrast = z.infer<typeof contrast>;
export type Decision = z.infer<typeof decision>;
export type Stage = (typeof STAGES)[number];
export type Phase = (typeof PHASES)[number];
export type Cause = (typeof CAUSES)[number];
export type HostEvent = (typeof HOST_EVENTS)[number];
export type Artifact = z.infer<typeof artifact>;
