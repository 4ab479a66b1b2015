import { z } from 'zod';
import { canonicalBytes } from '../../core/canonical-json.js';
import { type Digest, isDigest } from '../../core/digest.js';
import { BUNDLE_FORMAT, LEDGER_ID } from './layout.js';

const digest = z.custom<Digest>(isDigest, 'not a digest');
const hash = z.string().regex(/^[0-9a-f]{64}$/);

export const bundleIndexSchema = z.strictObject({
  format: z.literal(BUNDLE_FORMAT),
  manifest: digest,
  ledger: z.strictObject({
    id: z.string().regex(LEDGER_ID),
    size: z.int().min(1),
    leaf: hash,
    root: hash,
  }),
  redacted: z.int().min(0).describe('number of redacted records in all packs'),
  files: z.record(z.string(), z.strictObject({ size: z.int().min(0), digest })),
});

/** `bundle.json`: what a bundle holds. Nothing in it is news, so that none of it can be changed unseen. */
export type BundleIndex = z.infer<typeof bundleIndexSchema>;

export function formatIndex(index: BundleIndex): Buffer {
  return canonicalBytes(index);
}
