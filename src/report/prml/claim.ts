import { z } from 'zod';
import { BoundbookError, type Fault } from '../../core/errors.js';
import { type PrmlMapping, type PrmlValue, prmlBytes, prmlHash } from './canonical.js';
import { readPrml } from './read.js';
import { type FieldKind, resolvePrml } from './resolve.js';

/** PRML claims, v0.1 (section 2): the fields, reading and writing. Pure: bytes in, claim out. */

export const PRML_VERSION = 'prml/0.1';

const MIN_SEED = -(1n << 63n);
const MAX_SEED = (1n << 64n) - 1n;

const hex64 = z.string().regex(/^[0-9a-f]{64}$/, 'is not 64 lower-case hexadecimal digits');
const text = z.string().min(1);
const free = z.custom<PrmlMapping>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'is not a mapping',
);

const claimSchema = z.strictObject({
  version: z.literal(PRML_VERSION),
  /** UUIDv7 (RFC 9562). */
  claim_id: z
    .string()
    .regex(
      /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      'is not a UUID of version 7',
    ),
  created_at: z.string().refine((value) => isRfc3339(value), 'is not an RFC 3339 time'),
  metric: text.max(256),
  comparator: z.enum(['>=', '>', '==', '<=', '<']),
  threshold: z.number('is not a number').refine(Number.isFinite, 'is not finite'),
  dataset: z.strictObject({ id: text, hash: hex64, uri: text.optional() }),
  seed: z.bigint('is not an integer').min(MIN_SEED).max(MAX_SEED).nullable(),
  producer: z.strictObject({ id: text, signature: text.optional() }),
  metric_args: free.optional(),
  model: z.strictObject({ id: text.optional(), hash: hex64.optional(), uri: text.optional() }).optional(),
  compute_envelope: free.optional(),
  prior_hash: hex64.optional(),
  notes: z.string().max(4096).optional(),
});

export type PrmlClaim = z.infer<typeof claimSchema>;
export type PrmlComparator = PrmlClaim['comparator'];

export interface ReadClaim {
  readonly claim: PrmlClaim;
  /** The claim's identity: SHA-256 of its canonical bytes. */
  readonly hash: string;
  /** Whether the file is its canonical form already. */
  readonly canonical: boolean;
}

/** Canonical bytes of a claim. @throws {BoundbookError} CLAIM_INVALID */
export function formatClaim(claim: PrmlClaim): Buffer {
  return prmlBytes(mappingOf(checkClaimForm(claim)));
}

/** @throws {BoundbookError} CLAIM_INVALID */
export function hashClaim(claim: PrmlClaim): string {
  return prmlHash(mappingOf(checkClaimForm(claim)));
}

/**
 * Reads a claim in any spelling that section 3.1 allows.
 *
 * @throws {BoundbookError} CLAIM_INVALID: at the first fault of syntax, else with all faults of content.
 */
export function readClaim(bytes: Uint8Array, name: string): ReadClaim {
  const { value, faults } = resolvePrml(readPrml(bytes, name), fieldKind);
  const { threshold } = value;
  // Section 3.5: an integral threshold is a float.
  const fields = typeof threshold === 'bigint' ? { ...value, threshold: Number(threshold) } : { ...value };
  const claim = checkClaimForm(fields, name, faults);
  const canonicalBytes = formatClaim(claim);
  return { claim, hash: hashClaim(claim), canonical: canonicalBytes.equals(bytes) };
}

function checkClaimForm(fields: unknown, name = 'the claim', found: readonly Fault[] = []): PrmlClaim {
  const parsed = claimSchema.safeParse(fields);
  const issues = parsed.success ? [] : parsed.error.issues;
  const faults = [
    ...found,
    ...issues.map((issue): Fault => ({ where: `/${issue.path.join('/')}`, message: issue.message })),
  ];
  if (parsed.success && faults.length === 0) return parsed.data;
  throw new BoundbookError('CLAIM_INVALID', `${name} is not a PRML claim (${PRML_VERSION})`, { faults });
}

/** Free mappings hold no field whose type is known. */
function fieldKind(path: string): FieldKind {
  if (path === '/threshold') return 'number';
  return /^\/(?:metric_args|compute_envelope)\//.test(path) || path === '/seed' ? 'free' : 'text';
}

/** Leaves out what is absent, so that it is not written as null. */
function mappingOf(claim: PrmlClaim): PrmlMapping {
  const strip = (value: object): PrmlMapping =>
    Object.fromEntries(
      Object.entries(value)
        .filter((entry): entry is [string, PrmlValue] => entry[1] !== undefined)
        .map(([key, child]) => [key, typeof child === 'object' && child !== null ? strip(child) : child]),
    );
  return strip(claim);
}

function isRfc3339(value: string): boolean {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|[-+]\d\d:\d\d)$/.exec(value);
  const date = new Date(`${match?.[1]}Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(match?.[1] ?? '-');
}
