import { z } from 'zod';
import { argv, environmentNames, id, seconds } from './forms.js';

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

export const managedService = z.strictObject({
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

export const externalService = z.strictObject({
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

export type ManagedService = z.infer<typeof managedService>;

export type ExternalService = z.infer<typeof externalService>;

export type CanarySetting = NonNullable<ManagedService['canary']>;

export type HealthSetting = NonNullable<ManagedService['health']>;
