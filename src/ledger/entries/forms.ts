import { z } from 'zod';
import type { Digest } from '../../core/digest.js';
import { CAUSES, HOST_EVENTS, PHASES, STAGES } from '../../protocol/schema/signals.js';

/** Forms that entries of several kinds share. */

export const digest = z.custom<Digest>(
  (value) => typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value),
  'not a digest',
);

export const hex32 = z.string().regex(/^[0-9a-f]{32}$/);

export const hex64 = z.string().regex(/^[0-9a-f]{64}$/);

export const seconds = z.number().min(0);

export const slotKey = z.strictObject({
  queue: z.string(),
  arm: z.string(),
  training_seed: z.int().nullable(),
  evaluation_seed: z.int(),
  task: z.string(),
  rep: z.int().min(0),
});

export const attribution = z.enum(['infrastructure', 'model', 'undetermined']);

export const unresolvedReason = z.enum(['undetermined', 'limit_reached']);

export const basis = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('report'), attempt: hex32, report: digest }),
  z.strictObject({ kind: z.literal('model_failure'), attempt: hex32 }),
]);

export const signals = z.strictObject({
  stage: z.enum(STAGES),
  phase: z.enum(PHASES),
  cause: z.enum(CAUSES),
  http_status: z.int().nullable(),
  embedded_status: z.int().nullable(),
  exit_status: z.int().nullable(),
  signal: z.string().nullable(),
  service_alive: z.boolean().nullable(),
  /** Absent when no control group was watched. */
  oom_kill: z.boolean().exactOptional(),
  host_event: z.enum(HOST_EVENTS).exactOptional(),
  exception: z.string().nullable(),
  text: z.string().nullable(),
  first_token: z.boolean().exactOptional().describe('of a streamed answer: whether any token had come'),
});

/** What tells one process from every other one on its host. */
export const processIdentity = z.strictObject({
  boot_id: z.string(),
  pid: z.int(),
  started: z.string().describe('start time as the kernel counts it'),
});

/** How a stage ended. */
export const ended = {
  objects: z.record(z.string(), digest).describe('response, stdout, stderr … by name'),
  usage: z
    .strictObject({ prompt_tokens: z.int().nullable(), completion_tokens: z.int().nullable() })
    .nullable(),
  finish_reason: z.string().nullable(),
  seconds,
  queue_seconds: seconds.describe('waiting for a busy server before the first token; part of seconds'),
  first_token_seconds: seconds
    .exactOptional()
    .describe('of a streamed answer: from its request to its first token'),
} as const;
