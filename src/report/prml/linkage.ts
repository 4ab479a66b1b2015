import { type Digest, hexOf } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { type PrmlMapping, prmlHash } from './canonical.js';
import { hashClaim, type PrmlClaim } from './claim.js';
import { satisfies } from './decision.js';

/**
 * Linkage records (prml-linkage/0, a draft): that a run began after its claim was fixed, and what it observed. The
 * start record holds no result; the final record names it by hash.
 */

export interface LinkageStart {
  readonly claim: PrmlClaim;
  /** Address of a registry's receipt, or null. */
  readonly receipt: string | null;
  readonly run: {
    readonly id: string;
    /** RFC 3339, UTC. */
    readonly startedAt: string;
    readonly environment: string;
    readonly modelVersion: string | null;
  };
}

export interface LinkageResult {
  /** From `observedOf`. */
  readonly observed: number;
  /** Digest of the report. */
  readonly digest: Digest;
  /** RFC 3339, UTC; later than the start. */
  readonly finishedAt: string;
}

/** Exit codes of PRML, section 7. */
const PASS = 0n;
const FAIL = 10n;

/** Section 3.1. Hash and bytes of it by `prmlHash` and `prmlBytes`. @throws {BoundbookError} CLAIM_INVALID */
export function linkageStart(start: LinkageStart): PrmlMapping {
  return {
    linkage_version: 'prml-linkage/0',
    manifest_hash: hashClaim(start.claim),
    receipt: start.receipt,
    run: {
      id: start.run.id,
      started_at: start.run.startedAt,
      environment: start.run.environment,
      model_version: start.run.modelVersion,
      dataset_hash: start.claim.dataset.hash,
    },
  };
}

/**
 * Section 3.2: the start record, its hash, and the result.
 *
 * @throws {BoundbookError} CLAIM_INVALID, also when the run did not end after it began.
 */
export function linkageFinal(start: LinkageStart, result: LinkageResult): PrmlMapping {
  const record = linkageStart(start);
  if (!isBefore(start.run.startedAt, result.finishedAt)) {
    throw new BoundbookError('CLAIM_INVALID', 'a run must end after it began', {
      evidence: { started_at: start.run.startedAt, finished_at: result.finishedAt },
    });
  }
  return {
    ...record,
    start_hash: prmlHash(record),
    result: {
      observed: result.observed,
      digest: hexOf(result.digest),
      exit_code: satisfies(start.claim, result.observed) ? PASS : FAIL,
      finished_at: result.finishedAt,
    },
  };
}

/** Whole seconds first, then the fractions as text: a Date would drop what is below a millisecond. */
function isBefore(a: string, b: string): boolean {
  const [left, right] = [instantOf(a), instantOf(b)];
  return left.seconds !== right.seconds ? left.seconds < right.seconds : left.fraction < right.fraction;
}

function instantOf(time: string): { seconds: number; fraction: string } {
  const [, whole, fraction = ''] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,12}))?Z$/.exec(time) ?? [];
  const seconds = Date.parse(`${whole}Z`);
  if (Number.isNaN(seconds))
    throw new BoundbookError('CLAIM_INVALID', `not a time in UTC: ${time.slice(0, 60)}`);
  return { seconds, fraction: fraction.padEnd(12, '0') };
}
