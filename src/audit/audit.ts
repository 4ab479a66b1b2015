import { basename, resolve } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import { LEDGER_FOLDER } from '../ledger/book.js';
import { Findings } from './finding.js';
import { damageNote, type KnownHead } from './head.js';
import { auditLedger, type LedgerAudit } from './ledger-audit.js';
import { findOrphans, findWorkOrphans, unreadable } from './leftovers.js';
import { type Circumstances, checkedLines, notCheckedLines, orderLines, remarkLines } from './limits.js';
import { ObjectStream } from './object-stream.js';
import { ObjectShelf } from './objects.js';
import { SchemaShelf } from './plan.js';
import { AuditReader } from './reader.js';
import { auditReport, type ReportFile } from './report-audit.js';
import type { AuditResult } from './result.js';
import { otherLedgers, readSchemas, readSubject, type Subject } from './subject.js';

export interface AuditOptions {
  /** The ledger's folder, when it is not the manifest's own below `ledger/`. */
  readonly ledger?: string;
  /** A head that somebody else held. */
  readonly head?: KnownHead;
  /** A report to rebuild. */
  readonly report?: ReportFile;
}

/**
 * Audits a manifest's ledger: recomputes everything that follows from manifest, entries and objects, and lists every
 * difference.
 *
 * @param selector what a person writes for a manifest, see `loadManifest`
 * @throws {BoundbookError} what keeps an audit from beginning: MANIFEST_NOT_FOUND, LEDGER_NOT_FOUND, LEDGER_FOREIGN,
 * LEDGER_BUSY, FILE_UNREADABLE and the like.
 */
export async function audit(
  root: string,
  selector: string | undefined,
  options: AuditOptions = {},
): Promise<AuditResult> {
  const findings = new Findings();
  const subject = await readSubject(root, selector, options.ledger, findings);
  const schemas =
    subject.identified === null
      ? null
      : new SchemaShelf(subject.identified.manifest, await readSchemas(root, subject.identified.manifest));
  const reader = AuditReader.open(subject.folder);
  try {
    for (const error of reader.damage) findings.add(damageNote(error));
    const shelf = new ObjectShelf(reader, findings, new ObjectStream(reader, reader));
    const workFolders = new Set(reader.workFolders());
    const ledger = auditLedger({
      manifest: subject.identified,
      schemas,
      source: reader,
      shelf,
      findings,
      knownHead: options.head ?? null,
      workFolders,
    });
    for (const other of await otherLedgers(root, subject)) {
      const message = `${LEDGER_FOLDER}/${other} is a second ledger of the same manifest`;
      findings.add({ code: 'LEDGER_SECOND', where: { file: `${LEDGER_FOLDER}/${other}` }, message });
    }
    const compared = compareReport(options.report, subject, ledger, reader, findings);
    const orphans = listOrphans(reader, shelf, findings);
    const grown = reader.hasGrown(ledger.head.size);
    const foreign = grown ? [] : findWorkOrphans(workFolders, findings);
    const circumstances: Circumstances = {
      protocol: subject.identified?.manifest.protocol ?? null,
      audit: ledger,
      schemas,
      headGiven: options.head !== undefined,
      reportGiven: options.report !== undefined,
      grown,
    };
    return conclude(subject, ledger, findings, circumstances, {
      objects: shelf.size,
      orphans: [...orphans, ...foreign],
      report: compared,
    });
  } finally {
    reader.close();
  }
}

function compareReport(
  report: ReportFile | undefined,
  { identified }: Subject,
  { fold, head }: LedgerAudit,
  source: AuditReader,
  findings: Findings,
): string | null {
  if (report === undefined) return null;
  if (identified !== null && fold !== null) {
    const { context } = fold;
    return auditReport(report, { identified, context, source, size: head.size, findings });
  }
  const message = 'the report cannot be rebuilt: there is no plan to rebuild it from';
  findings.add({ code: 'REPORT_FORM', where: { file: report.name }, message });
  return null;
}

function listOrphans(reader: AuditReader, shelf: ObjectShelf, findings: Findings): readonly string[] {
  try {
    return findOrphans(reader, shelf, findings);
  } catch (error) {
    if (!(error instanceof BoundbookError)) throw error;
    unreadable(error, findings);
    return [];
  }
}

function conclude(
  subject: Subject,
  ledger: LedgerAudit,
  findings: Findings,
  circumstances: Circumstances,
  extent: {
    readonly objects: number;
    readonly orphans: readonly string[];
    readonly report: string | null;
  },
): AuditResult {
  const { identified, file, folder } = subject;
  const manifest = identified?.manifest;
  return {
    schema: 'boundbook/audit/1',
    verdict: findings.total === 0 ? 'clean' : 'findings',
    manifest: {
      digest: identified?.digest ?? null,
      name: manifest?.name ?? null,
      revision: manifest?.revision ?? null,
      file,
    },
    ledger: { name: basename(resolve(folder)), head: ledger.head },
    coverage: ledger.fold?.slots.counts() ?? null,
    findings: findings.list(ledger.fold?.outcomesVisible ?? false),
    omitted: findings.omitted,
    checked: [
      ...checkedLines(circumstances, extent.objects),
      ...(extent.report === null ? [] : [extent.report]),
    ],
    remarks: [...remarkLines(ledger), ...extent.orphans],
    order: orderLines(ledger),
    notChecked: notCheckedLines(circumstances),
  };
}
