import { z } from 'zod';
import { FRACTION } from '../recheck-sample.js';
import { digest, ended, hex32, signals } from './forms.js';

/** A set of slots: their ids ascending, one a line. */
const slotSet = z.strictObject({ count: z.int().min(0), digest });

/** B10: outputs that the stop rule ended, generated again without it. */
export const RECHECK_ENTRIES = [
  /** B10: a sample of the outputs that the stop rule ended is generated again without it, beside what they settled on. */
  z.strictObject({
    type: z.literal('recheck.declared'),
    recheck: hex32,
    session: hex32,
    fraction: z.string().regex(FRACTION),
    stopped: slotSet.describe('slots that settled on an output that the stop rule ended'),
    sample: slotSet.describe('those of them that are generated again'),
  }),
  /** Durable before the request is sent. */
  z.strictObject({
    type: z.literal('recheck.started'),
    recheck: hex32,
    session: hex32,
    slot: hex32,
    request: digest,
  }),
  z.strictObject({
    type: z.literal('recheck.finished'),
    recheck: hex32,
    session: hex32.describe('the session that sent it, or one that found it gone'),
    slot: hex32,
    result: z.discriminatedUnion('kind', [
      z.strictObject({
        kind: z.literal('graded'),
        candidate: digest,
        report: digest,
        value: z.number(),
        before: z.number().describe('the value that the slot settled on'),
      }),
      z.strictObject({ kind: z.literal('failure'), signals }),
    ]),
    ...ended,
  }),
  z.strictObject({
    type: z.literal('recheck.closed'),
    recheck: hex32,
    recovered: z.int().min(0).describe('outputs with a higher value than before'),
    not_recovered: z.int().min(0),
    failed: z.int().min(0),
  }),
] as const;
