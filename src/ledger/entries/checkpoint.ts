import { z } from 'zod';
import { digest } from './forms.js';

/** What is published of the ledger. */
export const CHECKPOINT_ENTRIES = [
  /** The tree over all entries before this one, as it is published. */
  z.strictObject({
    type: z.literal('checkpoint'),
    size: z.int().min(1).describe('number of entries before this one, so its own position'),
    root: z.string().regex(/^[0-9a-f]{64}$/),
    note: z.string().max(16_384).nullable().describe('the signed note; null when no key was given'),
    timestamps: z
      .array(digest)
      .max(100)
      .describe(
        'time-stamp tokens, as objects, that lay beside the manifest or the ledger and no entry named before',
      ),
  }),
] as const;
