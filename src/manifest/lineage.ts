import type { Digest } from '../core/digest.js';
import type { Fault } from '../core/errors.js';
import type { IdentifiedManifest } from './manifest.js';
import type { Binding, Manifest } from './schema.js';
import type { StoredManifest } from './workspace.js';

/** The manifest and those that it was bound from, the youngest first. Ends where a parent is not in the workspace. */
export function ancestry<M extends IdentifiedManifest>(stored: M, all: readonly M[]): readonly M[] {
  const byDigest = new Map(all.map((one) => [one.digest, one]));
  const chain: M[] = [];
  for (let at: M | undefined = stored; at !== undefined; ) {
    chain.push(at);
    const { parent }: Manifest = at.manifest;
    // A digest can't name its own descendant, so the chain ends.
    at = parent === null ? undefined : byDigest.get(parent);
  }
  return chain;
}

/** The first manifest of a plan, which stands for the plan in counts. */
function originOf(stored: StoredManifest, all: readonly StoredManifest[]): Digest {
  return ancestry(stored, all).at(-1)?.digest ?? stored.digest;
}

/**
 * For each bound task list, how many other plans of the workspace bound the same bytes before: a second look at a
 * hold-out has a count (F-171). A plan and what was bound from it count once; an amended plan counts as another.
 *
 * @param parent the manifest that is bound further; null for a new plan
 */
export function taskUse(
  bindings: readonly Binding[],
  earlier: readonly StoredManifest[],
  parent: StoredManifest | null,
): Manifest['task_use'] {
  const own = parent === null ? null : originOf(parent, earlier);
  return bindings
    .filter(({ name }) => name.startsWith('tasks/'))
    .map(({ name, digest }) => {
      const plans = new Set(
        earlier
          .filter(({ manifest }) =>
            manifest.bindings.some((one) => one.name.startsWith('tasks/') && one.digest === digest),
          )
          .map((one) => originOf(one, earlier)),
      );
      if (own !== null) plans.delete(own);
      return { binding: name, digest, plans: plans.size };
    });
}

/**
 * Breaks in the workspace's sequence: numbers that no manifest has, numbers that two have, and manifests whose
 * predecessor is another than they say. A removed manifest leaves such a gap.
 *
 * @param all by sequence
 */
export function sequenceGaps(all: readonly StoredManifest[]): readonly Fault[] {
  const faults: Fault[] = [];
  let last: StoredManifest | null = null;
  for (const stored of all) {
    const { sequence, previous } = stored.manifest;
    const expected: number = (last?.manifest.sequence ?? 0) + 1;
    if (sequence > expected) {
      const missing =
        sequence - 1 === expected ? `number ${expected} is` : `numbers ${expected} to ${sequence - 1} are`;
      faults.push({
        where: stored.file,
        message: `${missing} missing from the sequence before it`,
      });
    } else if (sequence < expected) {
      faults.push({
        where: stored.file,
        message: `has number ${sequence} of the sequence, as ${last?.file} has`,
      });
    } else if (previous !== (last?.digest ?? null)) {
      faults.push({
        where: stored.file,
        message: `names ${previous ?? 'nothing'} as the manifest before it`,
      });
    }
    last = stored;
  }
  return faults;
}
