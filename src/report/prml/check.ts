import type { Digest } from '../../core/digest.js';
import type { JsonValue } from '../../core/json.js';
import type { PrmlValue } from './canonical.js';
import { type PrmlClaim, readClaim } from './claim.js';
import { type ClaimSource, claimOf, observedOf, type ReportedBound, satisfies } from './decision.js';

/** Checks a claim file against what manifest and report say. */

export interface ClaimDifference {
  readonly field: string;
  readonly claimed: JsonValue;
  readonly expected: JsonValue;
}

export interface ClaimCheck {
  readonly claim: PrmlClaim;
  readonly hash: Digest;
  /** Whether the file is its canonical form, so that `sha256sum` prints the claim's hash. */
  readonly canonical: boolean;
  /** Where the claim contradicts the plan. Empty when it is a claim about this plan. */
  readonly differences: readonly ClaimDifference[];
  /** What the claim leaves open, so that it cannot be checked (law 11). */
  readonly notStated: readonly string[];
  /** Null while the claim is not about this plan, or the report gives no bound. */
  readonly verdict: { readonly observed: number; readonly passes: boolean } | null;
}

/** What must be in a claim, and must be what the plan says. */
const REQUIRED = ['/metric', '/comparator', '/threshold', '/dataset/hash', '/seed'] as const;

/** What a claim by another tool may leave out, and must be what the plan says where it is there. */
const OPTIONAL = [
  '/model/hash',
  '/metric_args/amendment',
  '/metric_args/decision',
  '/metric_args/manifest_sha256',
  '/metric_args/planned_slots',
  '/metric_args/protocol_sha256',
  '/metric_args/unresolved_rule',
] as const;

/**
 * Compares a claim file with the plan, and judges it by the report's bound.
 *
 * @param bound what the report gives for the figure; null while it gives none.
 * @throws {BoundbookError} CLAIM_INVALID; CLAIM_UNSUPPORTED, see {@link observedOf}
 */
export function checkClaim(
  bytes: Uint8Array,
  name: string,
  source: ClaimSource,
  bound: ReportedBound | null,
): ClaimCheck {
  const { claim, hash, canonical } = readClaim(bytes, name);
  const expected = claimOf(source);
  const fields = [...REQUIRED, ...OPTIONAL].map((field) => ({
    field,
    claimed: valueAt(claim, field),
    expected: valueAt(expected, field),
  }));
  const differences = fields.filter(
    ({ field, claimed, expected: value }) =>
      claimed !== value && (claimed !== undefined || isRequired(field)),
  );
  const notStated = fields.filter(
    ({ claimed, expected: value }) => claimed === undefined && value !== undefined,
  );
  return {
    claim,
    hash: `sha256:${hash}`,
    canonical,
    differences: differences.map(({ field, claimed, expected: value }) => ({
      field,
      claimed: jsonOf(claimed),
      expected: jsonOf(value),
    })),
    notStated: notStated.map(({ field }) => field),
    verdict: differences.length > 0 || bound === null ? null : judge(claim, bound),
  };
}

function judge(claim: PrmlClaim, bound: ReportedBound): { observed: number; passes: boolean } {
  const observed = observedOf(claim.comparator, claim.threshold, bound);
  return { observed, passes: satisfies(claim, observed) };
}

function isRequired(field: string): boolean {
  return (REQUIRED as readonly string[]).includes(field);
}

function valueAt(claim: PrmlClaim, field: string): PrmlValue | undefined {
  const steps = field.slice(1).split('/');
  return steps.reduce<unknown>((at, step) => (isRecord(at) ? at[step] : undefined), claim) as
    | PrmlValue
    | undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** Integers as text: they may be larger than JSON readers hold. */
function jsonOf(value: PrmlValue | undefined): JsonValue {
  if (value === undefined || value === null) return null;
  if (typeof value === 'bigint') return String(value);
  return typeof value === 'object' ? '(a mapping)' : value;
}
