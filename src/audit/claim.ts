import { canonicalText } from '../core/canonical-json.js';
import type { IdentifiedManifest } from '../manifest/manifest.js';
import type { ClaimCheck } from '../report/prml/check.js';
import type { ReportedBound } from '../report/prml/decision.js';
import { checkAgainstPlan } from '../report/prml/plan-check.js';
import { reportedBound } from '../report/prml/source.js';
import { type AmendmentKind, ownAmendment } from '../report/revisions.js';
import type { TaskIds } from '../slots/plan.js';
import type { Findings } from './finding.js';
import type { LedgerAudit } from './ledger-audit.js';
import { reportNow } from './report-audit.js';
import type { AuditSource } from './source.js';

/** A PRML claim file that the reader holds against the plan. */
export interface ClaimFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

export interface ClaimVerdict {
  readonly checked: readonly string[];
  readonly remarks: readonly string[];
  readonly notChecked: readonly string[];
}

const NOTHING: ClaimVerdict = { checked: [], remarks: [], notChecked: [] };

/**
 * Holds a claim against an audited ledger: its plan, and after unblinding the bound that it gives.
 *
 * @throws {BoundbookError} CLAIM_INVALID for a file that is no claim
 */
export function compareClaim(
  file: ClaimFile | undefined,
  { identified, lineage, ledger }: Pick<AuditSource, 'identified' | 'lineage' | 'ledger'>,
  { fold, head }: LedgerAudit,
  findings: Findings,
): ClaimVerdict {
  if (file === undefined) return NOTHING;
  if (identified === null || fold === null) {
    return { ...NOTHING, notChecked: [`the claim ${file.name}: there is no plan to hold it against`] };
  }
  const { taskIds } = fold.context;
  const boundOf = (contrast: string) => {
    if (fold.unblinded === null) return null;
    return reportedBound(reportNow({ identified, lineage, source: ledger, fold, head, findings }), contrast);
  };
  return auditClaim(file, { identified, taskIds }, boundOf, findings);
}

/**
 * Holds a claim against the plan, and says whether it holds once outcomes may be seen (law 8). Every contradiction is a
 * finding; that a claim does not hold is none.
 *
 * @param boundOf what the report gives for a contrast; null while it gives none
 * @throws {BoundbookError} CLAIM_INVALID for a file that is no claim
 */
export function auditClaim(
  file: ClaimFile,
  plan: { readonly identified: IdentifiedManifest; readonly taskIds: TaskIds },
  boundOf: (contrast: string) => ReportedBound | null,
  findings: Findings,
): ClaimVerdict {
  const check = checkAgainstPlan(file.bytes, file.name, plan.identified, plan.taskIds, boundOf);
  if (check === null) {
    const message = `${file.name} claims something that the plan does not decide on`;
    findings.add({ code: 'CLAIM_DIFFERS', where: { file: file.name }, message });
    return NOTHING;
  }
  for (const { field, claimed, expected } of check.differences) {
    findings.add({
      code: 'CLAIM_DIFFERS',
      where: { file: file.name, pointer: field },
      message: `${file.name} says ${canonicalText(claimed)}; the plan says ${canonicalText(expected)}`,
      evidence: { claimed, expected },
    });
  }
  return sentences(file.name, check, ownAmendment(plan.identified.manifest));
}

function sentences(
  name: string,
  { claim, hash, canonical, differences, notStated, verdict }: ClaimCheck,
  amendment: AmendmentKind | null,
): ClaimVerdict {
  const condition = `${claim.metric} ${claim.comparator} ${claim.threshold}`;
  const about = `the claim ${name} (${hash}) against the plan: ${condition}`;
  const held =
    verdict === null
      ? []
      : [
          `the claim ${verdict.passes ? 'holds' : 'does not hold'}: ${verdict.observed} was observed, at the unfavourable end`,
        ];
  return {
    checked: [about, ...held],
    remarks: [
      ...(canonical
        ? []
        : [
            `${name} is not in its canonical form: its hash is not that of the file, and \`sha256sum\` prints another`,
          ]),
      ...(amendment === 'post hoc'
        ? [
            `the claim ${name} is post hoc: its plan was changed after outcomes were open, so that it confirms nothing`,
          ]
        : []),
    ],
    notChecked: [
      ...(verdict === null && differences.length === 0
        ? [`whether the claim ${name} holds: outcomes are not unblinded, or give no bound`]
        : []),
      ...notStated.map((field) => `${field} of the claim ${name}: it does not say`),
    ],
  };
}
