import type { Digest } from '../../core/digest.js';
import { CompactRange, leafHash } from '../../ledger/merkle.js';
import { CheckpointAudit } from '../checkpoint-audit.js';
import type { Findings } from '../finding.js';
import { auditLedger, type LedgerAudit } from '../ledger-audit.js';
import { ObjectShelf } from '../objects.js';
import { SchemaShelf } from '../plan.js';
import type { RowSource } from '../row-source.js';
import type { BundleManifest } from './bundle-manifests.js';
import type { BundleFiles } from './files.js';
import { ENTRIES_FILE, predecessorPart } from './layout.js';
import { LedgerPart } from './ledger-part.js';

export interface PredecessorAudit {
  /** Redacted records in their packs. */
  readonly redacted: number;
  readonly remarks: readonly string[];
}

/**
 * Audits the ledgers that a ledger carries outcomes of, one behind the other, as every ledger is audited: each must be the
 * one that its successor names.
 */
export function auditPredecessors(
  files: BundleFiles,
  audit: LedgerAudit,
  manifests: ReadonlyMap<Digest, BundleManifest>,
  findings: Findings,
): PredecessorAudit {
  const met = new Set<string>();
  const remarks: string[] = [];
  let redacted = 0;
  for (let successor = audit; ; ) {
    const carries = successor.fold?.opened?.carries ?? null;
    if (carries === null || met.has(carries.ledger)) break;
    met.add(carries.ledger);
    const part = predecessorPart(carries.ledger);
    const own = findings.within(part);
    const differs = (message: string): void => own.add({ code: 'PREDECESSOR_DIFFERS', where: {}, message });
    if (!files.sizes.has(`${part}/${ENTRIES_FILE}`)) {
      differs(`the ledger ${carries.ledger} is carried and not in the bundle`);
      break;
    }
    const ledger = new LedgerPart(files, part, own);
    const opened = ledger.opening();
    if (opened?.ledger !== carries.ledger) differs(`it is the ledger ${opened?.ledger ?? 'of nobody'}`);
    if (opened?.manifest !== carries.manifest) {
      differs(`it belongs to the manifest ${opened?.manifest ?? 'of nobody'}, not to ${carries.manifest}`);
    }
    const root = rootOf(ledger, carries.size);
    if (root !== carries.root) {
      differs(`its first ${carries.size} entries have the root ${root ?? 'of fewer'}, not ${carries.root}`);
    }
    const manifest = manifests.get(carries.manifest) ?? null;
    const shelf = new ObjectShelf(ledger.objects, own);
    const schemas =
      manifest === null ? null : new SchemaShelf(manifest.manifest, ledger.schemas(manifest.manifest));
    const workFolders = new Set<string>();
    successor = auditLedger({
      manifest,
      schemas,
      source: ledger,
      shelf,
      findings: own,
      knownHead: null,
      checkpoints: new CheckpointAudit([], null, own),
      since: null,
      workFolders,
    });
    ledger.conclude(shelf);
    redacted += ledger.redacted;
    const { head } = successor;
    remarks.push(`the carried ledger ${carries.ledger} was audited: ${head.size} entries, root ${head.root}`);
  }
  for (const path of files.sizes.keys()) {
    const [folder, id] = path.split('/');
    if (folder !== 'predecessors' || id === undefined || met.has(id)) continue;
    findings.add({
      code: 'PREDECESSOR_DIFFERS',
      where: { file: path },
      message: 'no ledger carries this one',
    });
  }
  return { redacted, remarks };
}

/** The root over the first entries; null when there are fewer. */
function rootOf(source: RowSource, size: number): string | null {
  const range = new CompactRange();
  for (const { body } of source.rows()) {
    range.append(leafHash(body));
    if (range.size === size) return range.root().toString('hex');
  }
  return null;
}
