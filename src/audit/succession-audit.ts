import { Closings } from '../ledger/carry.js';
import type { IdentifiedManifest } from '../manifest/manifest.js';
import { type AuditedLedger, checkChain } from './carry-chain.js';
import { CheckpointAudit } from './checkpoint-audit.js';
import { checkExposure } from './exposure-audit.js';
import type { Findings } from './finding.js';
import { auditLedger, type LedgerAudit } from './ledger-audit.js';
import { ObjectShelf } from './objects.js';
import { SchemaShelf } from './plan.js';
import { redactionLines } from './redaction-lines.js';
import { checkSeal } from './seal-audit.js';
import type { AuditSource, PredecessorSource } from './source.js';

/** What was found of a plan's revisions beside findings. */
export interface SuccessionVerdict {
  readonly checked: readonly string[];
  readonly remarks: readonly string[];
  readonly notChecked: readonly string[];
}

/**
 * Audits the revisions before a plan (P22): each superseded ledger by itself, what was carried from it, and what each
 * amendment says was known of outcomes; and whether the plan's own ledger agrees with its successor.
 */
export function auditSuccession(
  source: AuditSource,
  audit: LedgerAudit,
  findings: Findings,
): SuccessionVerdict {
  const verdict = { checked: [] as string[], remarks: [] as string[], notChecked: [] as string[] };
  const { identified } = source;
  if (identified === null || audit.fold === null) return verdict;
  checkSeal(source.successor, audit.fold, findings, verdict);
  const ledgers: AuditedLedger[] = [
    { manifest: identified, audit, closings: new Closings(), rootCarried: null },
  ];
  const all = [identified, ...source.lineage];
  for (let at = identified; at.manifest.supersedes !== null; ) {
    const superseded = all.find(({ digest }) => digest === at.manifest.supersedes);
    if (superseded === undefined) {
      const message = `${at.manifest.name} revision ${at.manifest.revision} supersedes ${at.manifest.supersedes}, which is not at hand`;
      findings.add({ code: 'MANIFEST_MISSING', where: { pointer: '/supersedes' }, message });
      break;
    }
    const part = source.predecessor(superseded.digest, findings);
    const audited =
      part === null ? null : auditPredecessor(part, at, carriedSize(ledgers), findings, verdict);
    if (part === null) checkExposure(at, superseded, null, findings);
    if (audited !== null) ledgers.push(audited);
    at = superseded;
  }
  checkChain(ledgers, all, findings, verdict);
  return verdict;
}

function auditPredecessor(
  part: PredecessorSource,
  successor: IdentifiedManifest,
  carriedSize: number | null,
  findings: Findings,
  verdict: { readonly checked: string[]; readonly notChecked: string[] },
): AuditedLedger {
  const { manifest, ledger, name } = part;
  const own = findings.within(name);
  const closings = new Closings();
  const shelf = new ObjectShelf(ledger.objects, own);
  let sealed = false;
  const audit = auditLedger({
    manifest,
    schemas: new SchemaShelf(manifest.manifest, ledger.schemas(manifest.manifest)),
    source: ledger,
    shelf,
    findings: own,
    knownHead: null,
    checkpoints: new CheckpointAudit([], null, own),
    since: null,
    workFolders: new Set(),
    closings,
    ...(carriedSize === null ? {} : { rootAt: carriedSize }),
    onAmended: (fold) => {
      sealed = true;
      checkExposure(successor, manifest, fold, findings);
    },
  });
  part.conclude(shelf);
  if (!sealed && audit.fold !== null) {
    const message = `${name} was superseded by ${successor.digest} and does not say so`;
    own.add({ code: 'AMENDMENT_DIFFERS', where: {}, message });
    checkExposure(successor, manifest, audit.fold, findings);
  }
  verdict.notChecked.push(...redactionLines(audit, shelf.redacted).map((line) => `${name}: ${line}`));
  verdict.checked.push(`the superseded ledger ${name}: its ${audit.head.size} entries, as those of this one`);
  return { manifest, audit, closings, rootCarried: audit.rootThere };
}

/** The size from which the last of these ledgers carries. */
function carriedSize(ledgers: readonly AuditedLedger[]): number | null {
  return ledgers.at(-1)?.audit.fold?.opened?.carries?.size ?? null;
}
