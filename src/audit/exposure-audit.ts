import type { LedgerFold } from '../ledger/fold.js';
import type { IdentifiedManifest } from '../manifest/manifest.js';
import { sameValue } from '../manifest/same-value.js';
import { exposureOf } from '../report/exposure.js';
import type { Findings } from './finding.js';

/**
 * Recomputes what was known of outcomes when a plan was amended (P22). More may be declared than plan and ledger show, never
 * less.
 *
 * @param fold the superseded ledger at that moment; null when the plan never ran
 */
export function checkExposure(
  { manifest }: IdentifiedManifest,
  superseded: IdentifiedManifest,
  fold: LedgerFold | null,
  findings: Findings,
): void {
  const said = manifest.exposure;
  if (said === null) return;
  const shown = exposureOf(superseded.manifest, fold);
  const add = (part: string, actual: number | boolean, expected: number | boolean) =>
    findings.add({
      code: 'EXPOSURE_UNDERSTATED',
      where: { pointer: `/exposure/${part}` },
      message: `revision ${manifest.revision} says ${part} ${actual}; the superseded plan and its ledger show ${expected}`,
      evidence: { expected, actual },
    });
  for (const part of ['slots_run', 'settled'] as const)
    if (said[part] < shown[part]) add(part, said[part], shown[part]);
  if (shown.unblinded && !said.unblinded) add('unblinded', false, true);
  if (sameValue(said.bounds, shown.bounds)) return;
  findings.add({
    code: 'EXPOSURE_UNDERSTATED',
    where: { pointer: '/exposure/bounds' },
    message: `the bounds of revision ${manifest.revision}'s exposure are not those that were visible`,
    evidence: { expected: { ...shown.bounds }, actual: { ...said.bounds } },
    outcome: true,
  });
}
