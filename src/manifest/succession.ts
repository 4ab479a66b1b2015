import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { ancestry } from './lineage.js';
import type { IdentifiedManifest, Manifest } from './manifest.js';
import { parentsOf, type StoredManifest } from './workspace.js';

/**
 * The manifest that took the place of a plan: the first that supersedes it, what it was bound from or what was bound
 * from it. null for a plan that is in force.
 *
 * @param all by sequence
 */
export function successorOf(stored: StoredManifest, all: readonly StoredManifest[]): StoredManifest | null {
  const origin = ancestry(stored, all).at(-1)?.digest;
  const plan = new Set(
    all.filter((one) => ancestry(one, all).at(-1)?.digest === origin).map(({ digest }) => digest),
  );
  return all.find(({ manifest: { supersedes } }) => supersedes !== null && plan.has(supersedes)) ?? null;
}

/** The most bound manifest of the revision that is in force now, however often the plan was amended since. */
export function inForce(stored: StoredManifest, all: readonly StoredManifest[]): StoredManifest {
  let at = stored;
  for (let next = successorOf(at, all); next !== null; next = successorOf(at, all)) at = next;
  const parents = parentsOf(all);
  return (
    all.findLast(
      (one) => !parents.has(one.digest) && ancestry(one, all).some(({ digest }) => digest === at.digest),
    ) ?? at
  );
}

/** The plans that a plan supersedes, the latest first. */
export interface Superseded<M extends IdentifiedManifest = IdentifiedManifest> {
  readonly plans: readonly M[];
  /** The manifest at which the chain breaks, because it is not at hand. */
  readonly missing: Digest | null;
}

export function supersededBy<M extends IdentifiedManifest>(
  manifest: Manifest,
  all: readonly M[],
): Superseded<M> {
  const byDigest = new Map(all.map((one) => [one.digest, one]));
  const plans: M[] = [];
  let { supersedes } = manifest;
  // A digest can't name its own descendant, so the chain ends.
  while (supersedes !== null) {
    const next = byDigest.get(supersedes);
    if (next === undefined) return { plans, missing: supersedes };
    plans.push(next);
    supersedes = next.manifest.supersedes;
  }
  return { plans, missing: null };
}

/**
 * The plans that a plan supersedes, the latest first.
 *
 * @throws {BoundbookError} MANIFEST_NOT_FOUND when one of them is not at hand.
 */
export function requireSuperseded<M extends IdentifiedManifest>(
  manifest: Manifest,
  all: readonly M[],
): readonly M[] {
  const { plans, missing } = supersededBy(manifest, all);
  if (missing !== null) throw notAtHand(missing);
  return plans;
}

export function notAtHand(manifest: Digest): BoundbookError {
  return new BoundbookError(
    'MANIFEST_NOT_FOUND',
    `the superseded manifest ${manifest} is not in this workspace`,
    {
      hint: 'Put it back, with its ledger if it has one: what was closed there is not run again.',
      evidence: { supersedes: manifest },
    },
  );
}

/** @throws {BoundbookError} PLAN_SUPERSEDED when another revision took the plan's place (P22). */
export function assertInForce(stored: StoredManifest, all: readonly StoredManifest[]): void {
  const successor = successorOf(stored, all);
  if (successor === null) return;
  const newest = inForce(stored, all);
  throw new BoundbookError(
    'PLAN_SUPERSEDED',
    `${stored.file} was superseded by revision ${successor.manifest.revision}: nothing more is started or noted under it`,
    {
      hint: `Go on with ${newest.file}.`,
      evidence: { manifest: stored.digest, successor: successor.digest, newest: newest.digest },
    },
  );
}
