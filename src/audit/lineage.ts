import type { Digest } from '../core/digest.js';
import type { Fault } from '../core/errors.js';
import { descentFaults, successionFaults } from '../manifest/descent.js';
import type { IdentifiedManifest } from '../manifest/manifest.js';
import type { Findings } from './finding.js';

/**
 * Holds every manifest of a lineage against those that it names (P1, P22).
 *
 * @param lineage the manifests that `identified` rests on, as far as they are at hand
 * @returns digests of manifests that are named and not at hand
 */
export function checkLineage(
  identified: IdentifiedManifest,
  lineage: readonly IdentifiedManifest[],
  findings: Findings,
): readonly Digest[] {
  const byDigest = new Map([identified, ...lineage].map((one) => [one.digest, one]));
  const missing = new Set<Digest>();
  for (const one of byDigest.values()) {
    const { parent, supersedes } = one.manifest;
    for (const [named, judge] of [
      [parent, descentFaults],
      [supersedes, successionFaults],
    ] as const) {
      if (named === null) continue;
      const earlier = byDigest.get(named);
      if (earlier === undefined) missing.add(named);
      else report(one, earlier, judge(one.manifest, earlier.manifest), findings);
    }
  }
  return [...missing];
}

function report(
  one: IdentifiedManifest,
  earlier: IdentifiedManifest,
  faults: readonly Fault[],
  findings: Findings,
): void {
  for (const { where, message } of faults) {
    findings.add({
      code: 'LINEAGE_BROKEN',
      where: { pointer: where },
      message: `${where} of the manifest ${one.digest} ${message}`,
      evidence: { manifest: one.digest, named: earlier.digest },
    });
  }
}
