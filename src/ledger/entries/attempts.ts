import { z } from 'zod';
import { STAGES } from '../../protocol/schema/signals.js';
import {
  attribution,
  basis,
  digest,
  ended,
  hex32,
  seconds,
  signals,
  slotKey,
  unresolvedReason,
} from './forms.js';

/** Attempts from their start to what their slot settles on. */
export const ATTEMPT_ENTRIES = [
  /** law 2: durable before the attempt touches a model. */
  z.strictObject({
    type: z.literal('attempt.started'),
    session: hex32,
    attempt: hex32,
    slot: hex32,
    key: slotKey,
    kind: z.enum(['first', 'replacement', 'regrade']),
    of: hex32.nullable(),
    sampling_seed: z.int().min(0),
    candidate: digest.nullable(),
    request: digest.nullable().describe('the request as it will be sent'),
  }),
  z.strictObject({
    type: z.literal('stage.finished'),
    attempt: hex32,
    slot: hex32,
    stage: z.enum(STAGES),
    result: z.discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('candidate'), candidate: digest }),
      z.strictObject({ kind: z.literal('report'), candidate: digest, report: digest, value: z.number() }),
      z.strictObject({ kind: z.literal('failure'), signals }),
    ]),
    ...ended,
  }),
  z.strictObject({
    type: z.literal('attempt.finished'),
    attempt: hex32,
    slot: hex32,
    outcome: z.enum(['report', 'failure']),
    seconds,
  }),
  z.strictObject({
    type: z.literal('attempt.recovered'),
    attempt: hex32,
    slot: hex32,
    session: hex32.describe('the session that found it'),
    found: z
      .enum(['candidate', 'nothing', 'end'])
      .describe('`end`: the end of a stage, which the next entry records'),
    evidence: z.strictObject({
      reason: z
        .enum(['boot_changed', 'process_gone', 'pid_reused', 'same_process', 'abandoned'])
        .describe('`abandoned`: the session itself gave it up on a second stop'),
      boot_id: z.string(),
      pid: z.int(),
    }),
  }),
  z.strictObject({
    type: z.literal('attribution.recorded'),
    attempt: hex32,
    slot: hex32,
    attribution,
    by: z.enum(['rule', 'adjudicator']),
    rule: z.string().nullable(),
    late: z.boolean(),
    reason: z.string().max(4000).nullable(),
  }),
  z.strictObject({ type: z.literal('slot.settled'), slot: hex32, value: z.number(), basis }),
  z.strictObject({
    type: z.literal('slot.unresolved'),
    slot: hex32,
    reason: unresolvedReason,
  }),
] as const;
