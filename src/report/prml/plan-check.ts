import type { IdentifiedManifest } from '../../manifest/manifest.js';
import type { TaskIds } from '../../slots/plan.js';
import { type ClaimCheck, checkClaim } from './check.js';
import { type PrmlClaim, readClaim } from './claim.js';
import type { ReportedBound } from './decision.js';
import { claimSource } from './source.js';

/**
 * Holds a claim file against a plan: the decision that it names, or the one with its figure, comparator and threshold.
 *
 * @param boundOf what the report gives for a contrast; null while it gives none
 * @returns the check; null when the plan declares no such decision
 * @throws {BoundbookError} CLAIM_INVALID for the file; CLAIM_UNSUPPORTED as `claimSource`
 */
export function checkAgainstPlan(
  bytes: Uint8Array,
  name: string,
  identified: IdentifiedManifest,
  taskIds: TaskIds,
  boundOf: (contrast: string) => ReportedBound | null,
): ClaimCheck | null {
  const { claim } = readClaim(bytes, name);
  const decision = decisionMeant(claim, identified);
  if (decision === null) return null;
  const source = claimSource(identified, taskIds, decision, claim.producer.id);
  return checkClaim(bytes, name, source, boundOf(source.metric));
}

function decisionMeant(claim: PrmlClaim, { manifest }: IdentifiedManifest): string | null {
  const decisions = manifest.protocol.analysis.decisions ?? [];
  const named = claim.metric_args?.decision;
  const found =
    named === undefined
      ? decisions.find(
          ({ contrast, comparator, threshold }) =>
            contrast === claim.metric && comparator === claim.comparator && threshold === claim.threshold,
        )
      : decisions.find(({ id }) => id === named);
  return found?.id ?? null;
}
