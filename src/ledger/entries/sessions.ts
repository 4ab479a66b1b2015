import { z } from 'zod';
import { digest, hex32, processIdentity } from './forms.js';

const mismatch = z.strictObject({
  binding: z.string(),
  path: z.string(),
  expected: z.string().nullable(),
  actual: z.string().nullable(),
  reason: z.string(),
});

/** Sessions: how they pass the gate, live and end, and what a scheduler says of their jobs. */
export const SESSION_ENTRIES = [
  /** A session may execute: everything was re-hashed and agrees. */
  z.strictObject({
    type: z.literal('gate.passed'),
    session: hex32,
    manifest: digest,
    files: z.int(),
    bytes: z.int(),
    process: processIdentity,
    host: z.strictObject({
      node: z.string(),
      platform: z.string(),
      arch: z.string(),
      slurm_job: z.string().max(100).optional().describe('the Slurm job that the session runs in'),
    }),
    heartbeat_s: z
      .int()
      .min(1)
      .optional()
      .describe('the session promises an entry at least this often; absent: it promises nothing'),
    selection: z.record(z.string(), z.union([z.string(), z.int()])),
  }),
  z.strictObject({
    type: z.literal('gate.refused'),
    manifest: digest,
    mismatches: z.array(mismatch).max(100),
    total: z.int().describe('number of mismatches; the list is cut at 100'),
  }),
  /** Nothing happened for a while, and the session is at work (B8). */
  z.strictObject({ type: z.literal('session.alive'), session: hex32 }),
  /** P21: what a scheduler says that a job was given. */
  z.strictObject({
    type: z.literal('account.recorded'),
    source: z.literal('slurm'),
    job: z.string().min(1).max(100),
    seconds: z.int().min(0).describe('elapsed time of the allocation'),
    gpus: z.int().min(0).describe('devices that were allocated'),
    object: digest.describe("the scheduler's own words"),
  }),
  /** The end of a session: why nothing more is started. */
  z.strictObject({
    type: z.literal('run.paused'),
    session: hex32,
    reason: z.enum([
      'finished',
      'limit',
      'signal',
      'breaker',
      'disk_full',
      'service_failed',
      'service_changed',
      'bindings_changed',
      'fault',
    ]),
    detail: z.string().max(2000).nullable(),
  }),
] as const;
