import { z } from 'zod';
import { argv, byteCount, environmentNames, id, seconds, sources } from './forms.js';
import { OPERATORS_WORD } from './services.js';

const harborTrial = z.strictObject({
  argv: argv.describe('{config} {trial} {trials} {task} {candidate} {weights} {tokenizer} stand for values'),
  config: z
    .record(z.string(), z.unknown())
    .describe("Harbor's trial config; {model} {sampling_seed} {temperature} … stand for values of the slot"),
  wall_s: seconds.describe("the outer deadline, above Harbor's own"),
  output_bytes: byteCount.describe('how much of each output stream and each log is kept'),
  env: environmentNames.optional().describe('environment variables that are passed on'),
});

export const harborRunner = z.strictObject({
  adapter: z.literal('harbor'),
  trial: harborTrial.describe('one whole trial: agent, then verifier'),
  regrade: harborTrial
    .optional()
    .describe('a trial whose agent only applies {candidate}; needed for regrades'),
  stop: z
    .strictObject({ argv, wall_s: seconds })
    .optional()
    .describe('ends what a broken trial leaves behind; {trial} stands for its name'),
  version: z
    .strictObject({
      argv,
      output: z.string().min(1).describe('what it must print, without white space at its ends'),
    })
    .optional()
    .describe('asks the harness which one it is; a run with another one is refused'),
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

export type HarborRunner = z.infer<typeof harborRunner>;

export type HarborTrial = z.infer<typeof harborTrial>;
