import { hash } from 'node:crypto';
import { compare, fromNumber, fromText, type Rational, toNumber } from '../../analysis/rational.js';
import { canonicalText } from '../../core/canonical-json.js';
import { type Digest, hexOf } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import type { AmendmentKind } from '../revisions.js';
import { PRML_VERSION, type PrmlClaim, type PrmlComparator } from './claim.js';

/**
 * A declared decision as a PRML claim, and the figure it is judged by. The claim holds what the plan fixed and nothing
 * that was observed, so that it can be published before the first attempt.
 */

/** What manifest and protocol say about a decision. */
export interface ClaimSource {
  /** When the plan was frozen: RFC 3339, UTC, with milliseconds. */
  readonly createdAt: string;
  /** Domain name, ORCID or account of who makes the claim. */
  readonly producer: string;
  readonly decision: string;
  /** Name of the figure that is compared: a contrast or a score. */
  readonly metric: string;
  readonly comparator: PrmlComparator;
  readonly threshold: number;
  /** In words: what the figure estimates. */
  readonly estimand: string;
  readonly grader: string;
  readonly plannedSlots: number;
  /** The task list: its name, and the digest of its file. */
  readonly tasks: { readonly name: string; readonly digest: Digest };
  /** The weights, when the decision is about one model; null for a comparison of several. */
  readonly model: { readonly name: string; readonly digest: Digest } | null;
  /** The one evaluation seed, or null when there are several. */
  readonly seed: bigint | null;
  readonly protocol: Digest;
  readonly manifest: Digest;
  /** Whether the plan was amended, and whether outcomes were open then (P22); null for a plan as it was frozen first. */
  readonly amendment: AmendmentKind | null;
}

/** The bound that a report gives for the figure. Exact values in the form of the report: `5/12`. */
export interface ReportedBound {
  readonly lower: string;
  readonly upper: string;
}

/** The claim of a decision: the same source gives the same bytes (law 10). @throws {BoundbookError} CLAIM_INVALID */
export function claimOf(source: ClaimSource): PrmlClaim {
  return {
    version: PRML_VERSION,
    claim_id: claimId(source),
    created_at: `${source.createdAt.slice(0, 19)}Z`,
    metric: source.metric,
    comparator: source.comparator,
    threshold: source.threshold,
    dataset: { id: source.tasks.name, hash: hexOf(source.tasks.digest) },
    seed: source.seed,
    producer: { id: source.producer },
    ...(source.model === null ? {} : { model: { id: source.model.name, hash: hexOf(source.model.digest) } }),
    metric_args: {
      ...(source.amendment === null ? {} : { amendment: source.amendment }),
      decision: source.decision,
      estimand: source.estimand,
      judge: source.grader,
      manifest_sha256: hexOf(source.manifest),
      planned_slots: BigInt(source.plannedSlots),
      protocol_sha256: hexOf(source.protocol),
      unresolved_rule: 'worst-case',
    },
  };
}

/** UUIDv7 (RFC 9562, 5.7): the time of freezing, and 74 bits of SHA-256 over manifest and decision for random ones. */
function claimId(source: ClaimSource): string {
  const time = Date.parse(source.createdAt);
  if (!Number.isSafeInteger(time) || time < 0) {
    throw new BoundbookError('CLAIM_INVALID', `the time of the plan is not a time: ${source.createdAt}`);
  }
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(time, 0, 6);
  hash('sha256', canonicalText(['prml', source.manifest, source.decision]), 'buffer').copy(bytes, 6, 0, 10);
  bytes.writeUInt8(0x70 | (bytes.readUInt8(6) & 0x0f), 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/**
 * The figure that a claim is judged by: the unfavourable end of the bound, as a double. Where rounding to a double
 * would let a claim pass that the exact value does not meet, the next double on the unfavourable side is taken.
 *
 * @throws {BoundbookError} CLAIM_UNSUPPORTED for `==` while the bound is not one value.
 */
export function observedOf(comparator: PrmlComparator, threshold: number, bound: ReportedBound): number {
  const upward = comparator === '<' || comparator === '<=';
  if (comparator === '==' && bound.lower !== bound.upper) {
    throw new BoundbookError('CLAIM_UNSUPPORTED', 'equality cannot be judged while slots are unresolved', {
      hint: 'Adjudicate the unresolved slots; PRML has no way to state a bound.',
      evidence: { lower: bound.lower, upper: bound.upper },
    });
  }
  const exact = fromText(upward ? bound.upper : bound.lower);
  const nearest = toNumber(exact);
  if (
    comparator === '==' ||
    meetsExactly(exact, comparator, threshold) ||
    !meets(nearest, comparator, threshold)
  ) {
    return nearest;
  }
  return neighbour(nearest, upward);
}

/** Section 5.1: whether an observed value satisfies a claim. */
export function satisfies(claim: PrmlClaim, observed: number): boolean {
  const tolerance = claim.metric_args?.tolerance;
  return meets(
    observed,
    claim.comparator,
    claim.threshold,
    tolerance === undefined ? undefined : Number(tolerance),
  );
}

function meets(observed: number, comparator: PrmlComparator, threshold: number, tolerance = 1e-9): boolean {
  switch (comparator) {
    case '>=':
      return observed >= threshold;
    case '>':
      return observed > threshold;
    case '<=':
      return observed <= threshold;
    case '<':
      return observed < threshold;
    case '==':
      return Math.abs(observed - threshold) < tolerance;
    default:
      return comparator satisfies never;
  }
}

function meetsExactly(
  value: Rational,
  comparator: Exclude<PrmlComparator, '=='>,
  threshold: number,
): boolean {
  const order = compare(value, fromNumber(threshold));
  if (comparator === '>=' || comparator === '<=') return order === 0 || order > 0 === (comparator === '>=');
  return comparator === '>' ? order > 0 : order < 0;
}

/** The next double above or below. */
function neighbour(value: number, upward: boolean): number {
  if (value === 0) return upward ? Number.MIN_VALUE : -Number.MIN_VALUE;
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const away = value > 0 === upward;
  view.setBigInt64(0, view.getBigInt64(0) + (away ? 1n : -1n));
  return view.getFloat64(0);
}
