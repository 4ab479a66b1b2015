import { z } from 'zod';
import { digest } from './forms.js';

/** What befalls the plan as a whole. */
export const PLAN_ENTRIES = [
  /** B9: a change made in mid-run and the slots that it touches. */
  z.strictObject({
    type: z.literal('deviation.noted'),
    text: z.string().min(1).max(4000),
    selector: z
      .record(z.string(), z.array(z.string()))
      .describe('field and accepted values; empty: all slots'),
    slots: z.strictObject({
      count: z.int().min(1),
      digest: digest.describe('file digest of the selected slot ids, ascending, one a line'),
    }),
  }),
  /** The plan was amended; nothing more is started here. */
  z.strictObject({
    type: z.literal('amended'),
    successor: digest.describe('the manifest that supersedes this one'),
    revision: z.int().min(1),
    reason: z.string().min(1).max(4000),
  }),
  z.strictObject({
    type: z.literal('unblinded'),
    partial: z.boolean(),
    planned: z.int(),
    settled: z.int(),
    unresolved: z.int(),
    pending: z.int(),
  }),
] as const;
