import type { EntryOf } from '../ledger/entries/entry.js';
import type { LedgerFold } from '../ledger/fold.js';
import { ancestry } from '../manifest/lineage.js';
import type { IdentifiedManifest } from '../manifest/manifest.js';
import { supersededBy } from '../manifest/succession.js';
import type { Findings } from './finding.js';

/** The ledger's own amendment and the successor's manifest name each other. */
export function checkSeal(
  successor: IdentifiedManifest | null,
  { amended }: LedgerFold,
  findings: Findings,
  verdict: { readonly remarks: string[]; readonly notChecked: string[] },
): void {
  if (successor === null) {
    if (amended !== null)
      verdict.notChecked.push(
        `the successor ${amended.successor} (revision ${amended.revision}): it is not at hand`,
      );
    return;
  }
  const { manifest, digest } = successor;
  if (amended === null) {
    verdict.remarks.push(
      `revision ${manifest.revision} (${digest}) took the plan's place; the ledger does not say so yet, the next amend or run completes it`,
    );
    return;
  }
  verdict.remarks.push(
    `the plan was superseded by revision ${amended.revision} with entry ${amended.seq}: ${amended.reason}`,
  );
  assertAgreed(amended, successor, findings);
}

function assertAgreed(
  amended: EntryOf<'amended'>,
  { manifest, digest }: IdentifiedManifest,
  findings: Findings,
): void {
  const { seq, successor, revision, reason } = amended;
  if (successor === digest && revision === manifest.revision && reason === manifest.reason) return;
  const expected = { successor: digest, revision: manifest.revision, reason: manifest.reason };
  findings.add({
    code: 'AMENDMENT_DIFFERS',
    where: { seq },
    message: `the ledger names ${successor} (revision ${revision}) as successor; the manifest that supersedes it is ${digest} (revision ${manifest.revision})`,
    evidence: { expected, actual: { successor, revision, reason } },
  });
}

/** The successor that a superseded ledger names is the first manifest of the revision that followed. */
export function checkSuccessor(
  amended: EntryOf<'amended'>,
  after: IdentifiedManifest,
  all: readonly IdentifiedManifest[],
  findings: Findings,
): void {
  const chain = [after, ...supersededBy(after.manifest, all).plans];
  const origins = chain.map((one) => ancestry(one, all).at(-1) ?? one);
  const named = origins.find(({ digest }) => digest === amended.successor);
  if (named === undefined) {
    const message = `a superseded ledger names ${amended.successor} as successor, which is no revision of this plan`;
    findings.add({ code: 'AMENDMENT_DIFFERS', where: {}, message });
  } else assertAgreed(amended, named, findings);
}
