import { z } from 'zod';
import { digest, hex32 } from './forms.js';

/** B6: outputs graded again with a corrected grader. */
export const REGRADING_ENTRIES = [
  /** B6: outputs are graded again with a corrected grader, beside what they settled on. */
  z.strictObject({
    type: z.literal('regrading.opened'),
    regrading: hex32,
    grader: digest.describe('canonical JSON of the grader, as an object'),
    conditions: z.array(z.string()).min(1).max(1000),
    reason: z.string().min(1).max(4000),
    slots: z.strictObject({
      count: z.int().min(1),
      digest: digest.describe(
        'file digest of the ids of all slots that a report settled, ascending, one a line',
      ),
    }),
  }),
  z.strictObject({
    type: z.literal('regrading.recorded'),
    regrading: hex32,
    slot: hex32,
    candidate: digest,
    before: z.strictObject({ value: z.number(), report: digest }).describe('what the slot settled on'),
    result: z.discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('graded'), value: z.number(), report: digest }),
      z.strictObject({ kind: z.literal('truncated') }),
    ]),
  }),
  z.strictObject({
    type: z.literal('regrading.closed'),
    regrading: hex32,
    changed: z.int().min(0),
    same: z.int().min(0),
    truncated: z.int().min(0),
  }),
] as const;
