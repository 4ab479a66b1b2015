import { z } from 'zod';
import { type Digest, isDigest } from '../core/digest.js';
import { isTime } from '../core/time.js';
import { protocolSchema } from '../protocol/schema/protocol.js';
import { IGNORE_RULE } from './names.js';

/** The form of a manifest (DESIGN §6). What its parts must have to do with each other is checked in `consistency.ts`. */

export const MANIFEST_FORMAT = 'boundbook/manifest/1';

const digest = z.custom<Digest>(isDigest, 'not a digest');
const bytes = z.int().min(0);
const count = z.int().min(0);

const fileBinding = z.strictObject({
  kind: z.literal('file'),
  name: z.string().min(1),
  path: z.string().min(1),
  size: bytes,
  digest,
});

const treeBinding = z.strictObject({
  kind: z.literal('tree'),
  name: z.string().min(1),
  path: z.string().min(1),
  size: bytes,
  files: z.int().min(1),
  digest,
  oms_root: digest,
  ignored: z.literal(IGNORE_RULE).describe('the rule by which version-control data at the top is left out'),
  entries: z.array(z.strictObject({ path: z.string().min(1), size: bytes, digest })),
});

const evidence = z.strictObject({ path: z.string().min(1), size: bytes, digest });

/** What was known of the outcomes when a plan was amended. */
const exposure = z.strictObject({
  slots_run: count,
  settled: count,
  unblinded: z.boolean(),
  bounds: z.record(z.string(), z.strictObject({ lower: z.number(), upper: z.number() })),
  declared: z.string().nullable().describe('more than the ledger shows, in the words of the author'),
});

export const manifestSchema = z.strictObject({
  format: z.literal(MANIFEST_FORMAT),
  tool: z.strictObject({
    name: z.literal('boundbook'),
    version: z.string().min(1),
    dependencies: z.record(z.string(), z.string()),
  }),
  created: z.custom<string>(isTime, 'not a time in UTC with milliseconds'),
  name: z.string(),
  revision: z.int(),
  title: z.string(),
  sequence: z.int().min(1).describe('position among the manifests of its workspace'),
  previous: digest.nullable().describe('the manifest before it in that sequence'),
  due: z.iso.date().nullable(),
  protocol: protocolSchema,
  protocol_source: z.strictObject({
    raw_digest: digest,
    parser: z.strictObject({ name: z.string(), version: z.string() }),
  }),
  bindings: z.array(z.discriminatedUnion('kind', [fileBinding, treeBinding])),
  plan: z.strictObject({ count, digest }).nullable(),
  pending_items: z.array(z.strictObject({ item: z.string(), evidence: evidence.nullable() })),
  pending: z.array(z.string()),
  execution_ready: z.boolean(),
  parent: digest.nullable(),
  supersedes: digest.nullable(),
  reason: z.string().min(1).nullable(),
  exposure: exposure.nullable(),
  task_use: z
    .array(z.strictObject({ binding: z.string(), digest, plans: count }))
    .describe('how many earlier plans of the workspace bound the same task list'),
});

export type Manifest = z.infer<typeof manifestSchema>;
export type Binding = Manifest['bindings'][number];
export type TreeBinding = Extract<Binding, { kind: 'tree' }>;
export type Exposure = z.infer<typeof exposure>;
export type Evidence = z.infer<typeof evidence>;
