import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import type { Manifest } from './schema.js';
import type { StoredManifest } from './workspace.js';

/** The manifests that a manifest rests on: what it was bound from and what it amends. */
export function foundationsOf({ parent, supersedes }: Manifest): readonly Digest[] {
  return [parent, supersedes].filter((digest) => digest !== null);
}

/**
 * A manifest and all that it names by `parent` and `supersedes`, and so on; itself first.
 *
 * @throws {BoundbookError} MANIFEST_NOT_FOUND when one of them is not in the workspace.
 */
export function closureOf(stored: StoredManifest, all: readonly StoredManifest[]): readonly StoredManifest[] {
  const byDigest = new Map(all.map((one) => [one.digest, one]));
  const found = new Map([[stored.digest, stored]]);
  for (const one of found.values()) {
    for (const digest of foundationsOf(one.manifest)) {
      const next = byDigest.get(digest);
      if (next === undefined) {
        throw new BoundbookError(
          'MANIFEST_NOT_FOUND',
          `${one.file} rests on the manifest ${digest}, which is not in this workspace`,
          { hint: 'Restore it from a copy: a plan cannot be shown without what it came from.' },
        );
      }
      found.set(digest, next);
    }
  }
  return [...found.values()];
}
