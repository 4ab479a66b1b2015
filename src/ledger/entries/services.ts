import { z } from 'zod';
import { OPERATORS_WORD } from '../../protocol/schema/services.js';
import { digest, hex32, seconds } from './forms.js';

/** Services: their starts and ends, what they say of themselves and how they answer their canary. */
export const SERVICE_ENTRIES = [
  z.strictObject({
    type: z.literal('service.started'),
    session: hex32,
    service: z.string().describe('model@seed and a counter'),
    model: z.string(),
    pid: z.int(),
    port: z.int(),
    start: z.int().describe('0 for the first start in this session, then counting restarts'),
    effective: digest.nullable().describe('what the service says of itself, as an object'),
    seconds: seconds.describe('from spawn to ready'),
  }),
  /** P10: a service that the gate did not start; what it serves rests on the operator's word. */
  z.strictObject({
    type: z.literal('service.attached'),
    session: hex32,
    service: z.string().describe('model@seed and a counter'),
    model: z.string(),
    origin: z.string(),
    accepted: z.literal(OPERATORS_WORD),
    effective: digest.nullable().describe('what the service says of itself, as an object'),
    seconds: seconds.describe('from the first question to ready'),
  }),
  /** What a service says of itself, beside what it, or an earlier one of its model, said before. */
  z.strictObject({
    type: z.literal('service.described'),
    session: hex32,
    service: z.string(),
    model: z.string(),
    at: z
      .enum(['start', 'end'])
      .describe('`start`: against the first service of the model; `end`: against its own start'),
    effective: digest,
    compared_with: z.int().min(0).describe('position of the entry whose `effective` it is held against'),
    changed: z.array(z.string().max(1000)).max(50).describe('JSON pointers to what is different'),
    total: z.int().min(0).describe('number of differences; the list is cut at 50'),
  }),
  /** Answers to the fixed prompts of the protocol, to catch a service that changes. */
  z.strictObject({
    type: z.literal('canary.recorded'),
    session: hex32,
    service: z.string(),
    model: z.string(),
    at: z.enum(['start', 'end']),
    answers: digest,
    compared_with: z.int().min(0).nullable().describe('position of the reference; null for the reference'),
    verdict: z.enum(['reference', 'same', 'differs']),
    largest_logprob_difference: z.number().min(0).nullable(),
  }),
  z.strictObject({
    type: z.literal('service.stopped'),
    session: hex32,
    service: z.string(),
    model: z.string(),
    reason: z.enum(['done', 'died', 'run_ended', 'bindings_changed', 'unresponsive']),
    exit_status: z.int().nullable(),
    signal: z.string().nullable(),
    seconds: seconds.describe('from spawn to end'),
    gpus: z.int(),
  }),
] as const;
