import { auditClaim, type ClaimFile, type ClaimVerdict } from '../audit/claim.js';
import { type Finding, Findings } from '../audit/finding.js';
import { BoundbookError } from '../core/errors.js';
import { exists } from '../core/files.js';
import { ledgerFolder } from '../ledger/book.js';
import { loadManifest } from '../manifest/select.js';
import { readWorkspace, type StoredManifest } from '../manifest/workspace.js';
import { beforeRunInput } from '../report/before-run.js';
import { readClaim } from '../report/prml/claim.js';
import type { CommandResult } from './command.js';
import { labelled } from './manifest-output.js';

/**
 * Checks a claim where there is no ledger: against the manifest, or, where there is none either, against the rules of PRML
 * alone.
 *
 * @returns null when there is a ledger, and with it a whole audit
 * @throws {BoundbookError} CLAIM_INVALID; as `loadManifest` for a manifest that was named
 */
export async function claimWithoutLedger(
  root: string,
  selector: string | undefined,
  file: ClaimFile,
): Promise<CommandResult | null> {
  const stored = await manifestMeant(root, selector);
  if (stored === null) return render(file, null, [], { checked: [], remarks: [], notChecked: [NO_PLAN] });
  if (await exists(ledgerFolder(root, stored.file))) return null;
  const findings = new Findings();
  const { plan } = stored.manifest;
  if (plan === null) {
    throw new BoundbookError(
      'CLAIM_UNSUPPORTED',
      `${stored.file} has no plan yet: a task file is not bound`,
      {
        hint: 'Bind it first: boundbook bind.',
      },
    );
  }
  const { taskIds } = await beforeRunInput(root, stored, plan);
  const verdict = auditClaim(file, { identified: stored, taskIds }, () => null, findings);
  return render(file, stored, findings.list(true), verdict);
}

const NO_PLAN = 'whether it is about a plan, and holds: there is no manifest here';

/** null in a folder without manifests, when none was named. */
async function manifestMeant(root: string, selector: string | undefined): Promise<StoredManifest | null> {
  if (selector === undefined) {
    const { manifests, damaged } = await readWorkspace(root);
    if (manifests.length === 0 && damaged.length === 0) return null;
  }
  return loadManifest(root, selector);
}

function render(
  file: ClaimFile,
  stored: StoredManifest | null,
  findings: readonly Finding[],
  { checked, remarks, notChecked }: ClaimVerdict,
): CommandResult {
  const { claim, hash, canonical } = readClaim(file.bytes, file.name);
  const all = ['the form of a PRML claim, v0.1', ...checked];
  const rows: [string, string][] = [
    ['claim', file.name],
    ['hash', `${hash}${canonical ? ', of the file' : ', not of the file: it is not in its canonical form'}`],
    ['says', `${claim.metric} ${claim.comparator} ${claim.threshold}`],
    ['manifest', stored === null ? 'none here' : stored.digest],
    ...findings.map(({ message }): [string, string] => ['finding', message]),
    ...all.map((line): [string, string] => ['checked', line]),
    ...remarks.map((line): [string, string] => ['remark', line]),
    ...notChecked.map((line): [string, string] => ['not checked', line]),
  ];
  return {
    text: labelled(rows),
    json: {
      schema: 'boundbook/claim-check/1',
      verdict: findings.length === 0 ? 'clean' : 'findings',
      claim: { file: file.name, hash, canonical, id: claim.claim_id },
      manifest: stored?.digest ?? null,
      findings: findings.map((finding) => ({ ...finding, where: { ...finding.where } })),
      checked: all,
      remarks: [...remarks],
      not_checked: [...notChecked],
    },
    ...(findings.length === 0 ? {} : { exitCode: 4 as const }),
  };
}
