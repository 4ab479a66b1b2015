import type { Digest } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { foundationsOf } from '../../manifest/closure.js';
import { type IdentifiedManifest, parseManifest } from '../../manifest/manifest.js';
import { MAX_MANIFEST_BYTES } from '../../manifest/workspace.js';
import type { Findings } from '../finding.js';
import type { BundleFiles } from './files.js';
import { readWhole } from './region.js';

/** What all manifests of a bundle may have together. */
const MAX_BYTES = 512 * 1024 * 1024;

export interface BundleManifest extends IdentifiedManifest {
  /** Path in the bundle. */
  readonly path: string;
}

/** The manifests of a bundle by digest; one that was altered is a finding. */
export function readManifests(files: BundleFiles, findings: Findings): ReadonlyMap<Digest, BundleManifest> {
  const manifests = new Map<Digest, BundleManifest>();
  let budget = MAX_BYTES;
  for (const path of [...files.sizes.keys()].filter((one) => one.startsWith('manifests/')).sort()) {
    try {
      const bytes = readWhole(files.open(path), Math.min(budget, MAX_MANIFEST_BYTES));
      budget -= bytes.length;
      const identified = parseManifest(bytes, path);
      manifests.set(identified.digest, { ...identified, path });
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      findings.add({
        code: 'MANIFEST_ALTERED',
        where: { file: path },
        message: error.message,
        evidence: { faults: error.faults.slice(0, 20).map(({ where, message }) => ({ where, message })) },
      });
    }
  }
  return manifests;
}

/**
 * Holds the manifests against those that a plan rests on: none may be missing, none too many.
 *
 * @returns those that it rests on, the nearest first, itself left out
 */
export function checkLineage(
  identified: IdentifiedManifest,
  manifests: ReadonlyMap<Digest, BundleManifest>,
  findings: Findings,
): readonly IdentifiedManifest[] {
  const reached = new Map<Digest, IdentifiedManifest>([[identified.digest, identified]]);
  for (const { manifest, digest } of reached.values()) {
    for (const foundation of foundationsOf(manifest)) {
      const found = manifests.get(foundation);
      if (found !== undefined) reached.set(foundation, found);
      else {
        const message = `the manifest ${digest} rests on ${foundation}, which is not in the bundle`;
        findings.add({ code: 'MANIFEST_MISSING', where: {}, message });
      }
    }
  }
  for (const { digest, path } of manifests.values()) {
    if (reached.has(digest)) continue;
    const message = `the plan does not rest on the manifest ${digest}`;
    findings.add({ code: 'MANIFEST_SURPLUS', where: { file: path }, message });
  }
  return [...reached.values()].slice(1);
}
