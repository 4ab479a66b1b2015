import type { Trust } from '../ledger/trust.js';
import type { WitnessPolicy } from '../ledger/witness-policy.js';
import type { VerifierKey } from '../signing/keys.js';
import { adjudicationChecked, adjudicationRemarks } from './adjudication-lines.js';
import { type AttestationVerdict, auditAttestations } from './attestation-audit.js';
import { openBundleSource } from './bundle/bundle-source.js';
import { type DisclosedContents, Disclosure } from './bundle/disclosure.js';
import { CheckpointAudit } from './checkpoint-audit.js';
import { type ClaimFile, type ClaimVerdict, compareClaim } from './claim.js';
import { compareCommits, type GivenRepository } from './commits.js';
import { Findings } from './finding.js';
import type { KnownHead } from './head.js';
import { auditLedger, type LedgerAudit } from './ledger-audit.js';
import { type Circumstances, checkedLines, notCheckedLines, orderLines, remarkLines } from './limits.js';
import { checkLineage } from './lineage.js';
import { ObjectShelf } from './objects.js';
import { SchemaShelf } from './plan.js';
import { auditReports, type ReportFile } from './report-audit.js';
import type { CommitOrderVerdict } from './repository/commit-order.js';
import type { AuditResult } from './result.js';
import { isGenuine, type KnownCheckpoint, SinceCheck } from './since.js';
import type { AuditSource, Surroundings } from './source.js';
import type { Authority } from './stamps.js';
import { auditSuccession, type SuccessionVerdict } from './succession-audit.js';
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
  /** Whose cosignatures a checkpoint must have. */
  readonly policy?: WitnessPolicy | null;
  /** A checkpoint that the ledger must extend. */
  readonly since?: KnownCheckpoint;
  readonly repository?: GivenRepository;
  /** A PRML claim to hold against the plan. */
  readonly claim?: ClaimFile;
}

export interface BundleAuditOptions extends Omit<AuditOptions, 'ledger'> {
  readonly disclosed?: DisclosedContents;
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
    await source.close();
  }
}

/**
 * Audits a bundle: everything comes from it but whom to trust.
 *
 * @param path a bundle's folder, or a tar of it
 * @throws {BoundbookError} as {@link openBundleSource}
 */
export async function auditBundle(path: string, options: BundleAuditOptions = {}): Promise<AuditResult> {
  const findings = new Findings();
  const disclosure = options.disclosed === undefined ? null : new Disclosure(options.disclosed, findings);
  const source = await openBundleSource(path, findings, disclosure);
  try {
    return await auditSource(source, options, findings);
  } finally {
    await source.close();
  }
}

/**
 * Recomputes everything that follows from manifest, entries and objects, and lists every difference.
 *
 * @param findings what was found while the source was opened; more is added
 * @throws {BoundbookError} for the known checkpoint: NOTE_INVALID, SIGNATURE_INVALID, and with a policy QUORUM_UNMET
 */
export async function auditSource(
  source: AuditSource,
  options: AuditOptions,
  findings: Findings,
): Promise<AuditResult> {
  const { identified, ledger } = source;
  const trust = trustOf(options);
  const since = options.since === undefined ? null : new SinceCheck(options.since, ledger);
  const genuine = options.since === undefined || isGenuine(options.since, trust);
  const checkpoints = new CheckpointAudit(source.notes, trust, findings);
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
    checkpoints,
    since,
    workFolders: source.workFolders,
  });
  const succession = auditSuccession(source, replayed, findings);
  const reports = [...(options.report === undefined ? [] : [options.report]), ...source.reports];
  const compared = compareReports(reports, source, replayed, findings);
  const attested = await auditAttestations(
    {
      source,
      audit: replayed,
      reports,
      readToken: (digest, seq) => shelf.read(digest, { seq }),
      findings,
    },
    { keys: options.keys ?? [], authority: options.authority ?? null },
  );
  const committed = await compareCommits(options.repository, source, reports, findings);
  const claimed = compareClaim(options.claim, source, replayed, findings);
  const beside = await source.conclude(replayed, shelf, findings);
  const circumstances: Circumstances = {
    protocol: identified?.manifest.protocol ?? null,
    audit: replayed,
    schemas,
    unseen,
    headGiven: options.head !== undefined || options.since !== undefined,
    sinceUnverified: !genuine,
    reportGiven: reports.length > 0,
    grown: beside.grown,
    redacted: shelf.redacted,
    otherReports: source.bundle?.otherReports ?? [],
  };
  return conclude(source, replayed, findings, circumstances, {
    objects: shelf.size,
    beside: { ...beside, remarks: [...checkpoints.remarks, ...claimed.remarks, ...beside.remarks] },
    reports: compared,
    attested,
    committed,
    succession,
    claimed,
  });
}

function trustOf({ keys = [], policy = null }: AuditOptions): Trust | null {
  return keys.length === 0 && policy === null ? null : { keys, policy };
}

function compareReports(
  reports: readonly ReportFile[],
  { identified, lineage, ledger }: AuditSource,
  { fold, head }: LedgerAudit,
  findings: Findings,
): readonly string[] {
  if (identified !== null && fold !== null) {
    return auditReports(reports, { identified, lineage, source: ledger, fold, head, findings });
  }
  const message = 'the report cannot be rebuilt: there is no plan to rebuild it from';
  for (const { name } of reports) findings.add({ code: 'REPORT_FORM', where: { file: name }, message });
  return [];
}

function conclude(
  source: AuditSource,
  ledger: LedgerAudit,
  findings: Findings,
  circumstances: Circumstances,
  extent: {
    readonly objects: number;
    readonly beside: Surroundings;
    readonly reports: readonly string[];
    readonly attested: AttestationVerdict;
    readonly committed: CommitOrderVerdict;
    readonly succession: SuccessionVerdict;
    readonly claimed: ClaimVerdict;
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
    bundle:
      source.bundle === null
        ? null
        : { name: source.bundle.name, form: source.bundle.form, digest: source.bundle.digest },
    ledger: { name: ledgerName, head: ledger.head },
    coverage: ledger.fold?.slots.counts() ?? null,
    findings: findings.list(ledger.fold?.outcomesVisible ?? false),
    omitted: findings.omitted,
    checked: [
      ...checkedLines(circumstances, extent.objects),
      ...(ledger.fold === null ? [] : adjudicationChecked(ledger.fold)),
      ...extent.reports,
      ...extent.succession.checked,
      ...extent.beside.checked,
      ...extent.attested.checked,
      ...extent.claimed.checked,
    ],
    remarks: [
      ...remarkLines(ledger),
      ...(ledger.fold === null ? [] : adjudicationRemarks(ledger.fold, manifest?.exposure ?? null)),
      ...extent.succession.remarks,
      ...extent.beside.remarks,
    ],
    order: [...orderLines(ledger), ...extent.attested.order, ...extent.committed.order],
    times: extent.attested.times,
    notChecked: [
      ...notCheckedLines(circumstances),
      ...extent.succession.notChecked,
      ...extent.beside.notChecked,
      ...extent.attested.notChecked,
      ...extent.committed.notChecked,
      ...extent.claimed.notChecked,
    ],
  };
}
