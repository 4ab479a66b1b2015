import type { Digest } from '../core/digest.js';
import type { IdentifiedManifest, Manifest } from '../manifest/manifest.js';
import { type PlanChanges, planChanges } from './plan-changes.js';

/** One amendment of a plan (P22). */
export interface Revision {
  readonly revision: number;
  readonly manifest: Digest;
  readonly supersedes: Digest;
  readonly reason: string;
  /** What was known of outcomes at that moment. */
  readonly exposure: {
    readonly slots_run: number;
    readonly settled: number;
    readonly unblinded: boolean;
    readonly declared: string | null;
  };
  /** null when the superseded manifest is not at hand. */
  readonly changes: PlanChanges | null;
}

/** Whether a plan was amended, and whether outcomes were open at one of the times. */
export type AmendmentKind = 'before unblinding' | 'post hoc';

/**
 * The amendments that led to a plan, the latest first.
 *
 * @param superseded the plans that it supersedes, the latest first
 */
export function revisionsOf(
  identified: IdentifiedManifest,
  superseded: readonly IdentifiedManifest[],
): readonly Revision[] {
  return [identified, ...superseded].flatMap(({ manifest, digest }, i) => {
    const { revision, supersedes, reason, exposure } = manifest;
    if (supersedes === null || exposure === null) return [];
    const { slots_run, settled, unblinded, declared } = exposure;
    const before = superseded[i]?.manifest;
    return [
      {
        revision,
        manifest: digest,
        supersedes,
        reason: reason ?? '',
        exposure: { slots_run, settled, unblinded, declared },
        changes: before === undefined ? null : planChanges(before, manifest),
      },
    ];
  });
}

export function amendmentKind(revisions: readonly Revision[]): AmendmentKind | null {
  if (revisions.length === 0) return null;
  return revisions.some(({ exposure }) => exposure.unblinded) ? 'post hoc' : 'before unblinding';
}

/** As {@link amendmentKind}, of the manifest alone: exposure adds up from revision to revision. */
export function ownAmendment({ exposure }: Pick<Manifest, 'exposure'>): AmendmentKind | null {
  if (exposure === null) return null;
  return exposure.unblinded ? 'post hoc' : 'before unblinding';
}

/** Whether the amendments took parts away and put none in their place. */
export function isNarrower(revisions: readonly Revision[]): boolean {
  const changes = revisions.flatMap((one) => one.changes ?? []);
  return (
    changes.length === revisions.length &&
    changes.some(({ dropped }) => dropped.length > 0) &&
    changes.every(
      ({ added, analysis }) => added.length + analysis.added.length + analysis.changed.length === 0,
    )
  );
}
