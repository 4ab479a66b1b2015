import type { VerifierKey } from '../signing/keys.js';
import { type AttestationVerdict, auditAttestations } from './attestation-audit.js';
import { Findings } from './finding.js';
import type { KnownHead } from './head.js';
import { auditLedger, type LedgerAudit } from './ledger-audit.js';
import { type Circumstances, checkedLines, notCheckedLines, orderLines, remarkLines } from './limits.js';
import { checkLineage } from './lineage.js';
import { ObjectShelf } from './objects.js';
import { SchemaShelf } from './plan.js';
import { auditReport, type ReportFile } from './report-audit.js';
import type { AuditResult } from './result.js';
import type { AuditSource } from './source.js';
import type { Authority } from './stamps.js';
import { openWorkspaceSource } from './workspace-source.js';

export interface AuditOptions {
  /** The ledger's folder, when it is not the manifest's own below `ledger/`. */
  readonly ledger?: string;
  /** A head that somebody else held. */
  readonly head?: KnownHead;
  /** A report to rebuild. */
  readonly report?: ReportFile;
  /** Keys whose signatures count. */
  readonly keys?: readonly VerifierKey[];
  /** The authority whose time stamps count. */
  readonly authority?: Authority;
}

/**
 * Audits a manifest's ledger in a workspace.
 *
 * @param selector what a person writes for a manifest, see `loadManifest`
 * @throws {BoundbookError} as {@link openWorkspaceSource}
 */
export async function audit(
  root: string,
  selector: string | undefined,
  options: AuditOptions = {},
): Promise<AuditResult> {
  const findings = new Findings();
  const source = await openWorkspaceSource(root, selector, options.ledger, findings);
  try {
    return await auditSource(source, options, findings);
  } finally {
    source.close();
  }
}

/**
 * Recomputes everything that follows from manifest, entries and objects, and lists every difference.
 *
 * @param findings what was found while the source was opened; more is added
 */
export async function auditSource(
  source: AuditSource,
  options: AuditOptions,
  findings: Findings,
): Promise<AuditResult> {
  const { identified, ledger } = source;
  const schemas =
    identified === null ? null : new SchemaShelf(identified.manifest, ledger.schemas(identified.manifest));
  const unseen = identified === null ? [] : checkLineage(identified, source.lineage, findings);
  const shelf = new ObjectShelf(ledger.objects, findings);
  const replayed = auditLedger({
    manifest: identified,
    schemas,
    source: ledger,
    shelf,
    findings,
    knownHead: options.head ?? null,
    workFolders: source.workFolders,
  });
  const compared = compareReport(options.report, source, replayed, findings);
  const attested = await auditAttestations(
    {
      source,
      audit: replayed,
      report: options.report ?? null,
      readToken: (digest, seq) => shelf.read(digest, { seq }),
      findings,
    },
    { keys: options.keys ?? [], authority: options.authority ?? null },
  );
  const { remarks, grown } = source.conclude(replayed, shelf, findings);
  const circumstances: Circumstances = {
    protocol: identified?.manifest.protocol ?? null,
    audit: replayed,
    schemas,
    unseen,
    headGiven: options.head !== undefined,
    reportGiven: options.report !== undefined,
    grown,
  };
  return conclude(source, replayed, findings, circumstances, {
    objects: shelf.size,
    remarks,
    report: compared,
    attested,
  });
}

function compareReport(
  report: ReportFile | undefined,
  { identified, ledger }: AuditSource,
  { fold, head }: LedgerAudit,
  findings: Findings,
): string | null {
  if (report === undefined) return null;
  if (identified !== null && fold !== null) {
    const { context } = fold;
    return auditReport(report, { identified, context, source: ledger, size: head.size, findings });
  }
  const message = 'the report cannot be rebuilt: there is no plan to rebuild it from';
  findings.add({ code: 'REPORT_FORM', where: { file: report.name }, message });
  return null;
}

function conclude(
  source: AuditSource,
  ledger: LedgerAudit,
  findings: Findings,
  circumstances: Circumstances,
  extent: {
    readonly objects: number;
    readonly remarks: readonly string[];
    readonly report: string | null;
    readonly attested: AttestationVerdict;
  },
): AuditResult {
  const { identified, manifestFile, ledgerName } = source;
  const manifest = identified?.manifest;
  return {
    schema: 'boundbook/audit/1',
    verdict: findings.total === 0 ? 'clean' : 'findings',
    manifest: {
      digest: identified?.digest ?? null,
      name: manifest?.name ?? null,
      revision: manifest?.revision ?? null,
      file: manifestFile,
    },
    ledger: { name: ledgerName, head: ledger.head },
    coverage: ledger.fold?.slots.counts() ?? null,
    findings: findings.list(ledger.fold?.outcomesVisible ?? false),
    omitted: findings.omitted,
    checked: [
      ...checkedLines(circumstances, extent.objects),
      ...(extent.report === null ? [] : [extent.report]),
      ...extent.attested.checked,
    ],
    remarks: [...remarkLines(ledger), ...extent.remarks],
    order: [...orderLines(ledger), ...extent.attested.order],
    times: extent.attested.times,
    notChecked: [...notCheckedLines(circumstances), ...extent.attested.notChecked],
  };
}
