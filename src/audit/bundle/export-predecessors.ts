import { BoundbookError } from '../../core/errors.js';
import type { LedgerFold } from '../../ledger/fold.js';
import type { StoredManifest } from '../../manifest/workspace.js';
import type { BundleFolder } from './bundle-folder.js';
import { predecessorPart } from './layout.js';
import type { Redaction } from './redaction.js';
import { openSnapshot } from './snapshot.js';
import { writeLedger } from './write-ledger.js';

/**
 * Writes the ledgers that a ledger carries outcomes of, one behind the other (P22).
 *
 * @param manifests what the plan rests on
 * @throws {BoundbookError} MANIFEST_NOT_FOUND for one whose manifest is not at hand; as `openSnapshot`.
 */
export async function writePredecessors(
  root: string,
  folder: BundleFolder,
  fold: LedgerFold,
  manifests: readonly StoredManifest[],
  redaction: Redaction | null,
): Promise<void> {
  for (let carries = fold.opened?.carries ?? null; carries !== null; ) {
    const { manifest, ledger } = carries;
    const stored = manifests.find(({ digest }) => digest === manifest);
    if (stored === undefined) {
      throw new BoundbookError(
        'MANIFEST_NOT_FOUND',
        `the superseded manifest ${manifest} is not in this workspace`,
        {
          hint: 'Put it back, with its ledger: what was carried rests on it.',
          evidence: { manifest, ledger },
        },
      );
    }
    const snapshot = await openSnapshot(root, stored);
    try {
      const { context, schemas, getObject } = snapshot;
      const content = { records: snapshot.records(), schemas, taskIds: context.taskIds, getObject };
      writeLedger(folder, predecessorPart(ledger), content, redaction);
      carries = snapshot.fold.opened?.carries ?? null;
    } finally {
      snapshot.close();
    }
  }
}
