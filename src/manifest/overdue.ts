import type { Digest } from '../core/digest.js';
import { ancestry } from './lineage.js';
import { successorOf, supersededBy } from './succession.js';
import type { StoredManifest } from './workspace.js';

/** A plan whose report is due and was not seen. */
export interface OverduePlan {
  readonly name: string;
  readonly revision: number;
  /** `YYYY-MM-DD` */
  readonly due: string;
  /** Its latest manifests, those that no other builds on. */
  readonly manifests: readonly StoredManifest[];
}

/**
 * Frozen plans past their due date that were never reported, by due date: the gap has a name. A superseded plan hands its
 * duty on to its successor, with its own date when that one declares none.
 *
 * @param today `YYYY-MM-DD`; a plan is overdue from the day after it was due
 * @param isReported whether a report of any manifest of the plan is known
 */
export function overduePlans(
  all: readonly StoredManifest[],
  today: string,
  isReported: (stored: StoredManifest) => boolean,
): readonly OverduePlan[] {
  const overdue: OverduePlan[] = [];
  for (const members of plansOf(all)) {
    const [first] = members;
    if (first === undefined || successorOf(first, all) !== null) continue;
    const due = dutyOf(first, all);
    if (due === null || due.date >= today) continue;
    const owed = due.declaredBy === first ? members : [...members, due.declaredBy];
    if (owed.some(isReported)) continue;
    const parents = new Set(members.map(({ manifest }) => manifest.parent));
    const { name, revision } = first.manifest;
    const manifests = members.filter(({ digest }) => !parents.has(digest));
    overdue.push({ name, revision, due: due.date, manifests });
  }
  return overdue.sort((a, b) => (a.due < b.due ? -1 : a.due > b.due ? 1 : a.name < b.name ? -1 : 1));
}

/** Manifests by plan: the first one and what was bound from it. */
function plansOf(all: readonly StoredManifest[]): readonly (readonly StoredManifest[])[] {
  const plans = new Map<Digest, StoredManifest[]>();
  for (const stored of all) {
    const origin = ancestry(stored, all).at(-1)?.digest ?? stored.digest;
    plans.set(origin, [...(plans.get(origin) ?? []), stored]);
  }
  return [...plans.values()];
}

/** The due date of a plan, and the manifest that declares it: the plan's own, or that of the last it supersedes. */
function dutyOf(
  first: StoredManifest,
  all: readonly StoredManifest[],
): { readonly date: string; readonly declaredBy: StoredManifest } | null {
  for (const declaredBy of [first, ...supersededBy(first.manifest, all).plans]) {
    if (declaredBy.manifest.due !== null) return { date: declaredBy.manifest.due, declaredBy };
  }
  return null;
}
