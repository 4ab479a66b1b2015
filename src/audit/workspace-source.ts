import { basename, resolve } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import { readFileBounded } from '../core/files.js';
import { anchorPath } from '../ledger/anchor.js';
import { LEDGER_FOLDER } from '../ledger/book.js';
import { readNotes } from '../ledger/note-files.js';
import { loadAttestations } from '../manifest/attestations.js';
import type { IdentifiedManifest } from '../manifest/manifest.js';
import { EarlierLedgers } from './earlier-ledgers.js';
import type { Findings } from './finding.js';
import { FolderObjects } from './folder-objects.js';
import { damageNote } from './head.js';
import { findOrphans, findWorkOrphans, unreadable } from './leftovers.js';
import type { ObjectShelf } from './objects.js';
import { AuditReader } from './reader.js';
import type { AuditSource, Surroundings } from './source.js';
import { otherLedgers, readLineage, readSchemas, readSubject, readSuccessor } from './subject.js';

/**
 * Opens a manifest's ledger in a workspace for an audit.
 *
 * @param selector what a person writes for a manifest, see `loadManifest`
 * @param ledger the ledger's folder, when it is not the manifest's own below `ledger/`
 * @throws {BoundbookError} what keeps an audit from beginning: MANIFEST_NOT_FOUND, LEDGER_NOT_FOUND, LEDGER_FOREIGN,
 * LEDGER_BUSY, FILE_UNREADABLE and the like.
 */
export async function openWorkspaceSource(
  root: string,
  selector: string | undefined,
  ledger: string | undefined,
  findings: Findings,
): Promise<AuditSource> {
  const subject = await readSubject(root, selector, ledger, findings);
  const { identified, file, folder } = subject;
  const schemas = await schemasOf(root, identified);
  const others = await otherLedgers(root, subject);
  const lineage = identified === null ? [] : await readLineage(root, identified);
  const attestations = await loadAttestations(root);
  const notes = await readNotes(folder);
  const states = await readStates(folder);
  const successor = await readSuccessor(root, identified);
  const earlier = new EarlierLedgers(root, lineage, await schemasOf(root, ...lineage));
  const reader = AuditReader.open(folder);
  for (const error of reader.damage) findings.add(damageNote(error));
  const workFolders = new Set(reader.workFolders());
  return {
    identified,
    manifestFile: file,
    ledgerName: basename(resolve(folder)),
    ledger: {
      rows: (from) => reader.rows(from),
      objects: new FolderObjects(reader),
      schemas: () => schemas.get(identified?.digest ?? '') ?? new Map(),
      taskIds: () => new Map(),
    },
    lineage,
    successor,
    predecessor: (digest, found) => earlier.open(digest, found),
    notes,
    states,
    attestations,
    reports: [],
    bundle: null,
    workFolders,
    conclude({ head }, shelf, found): Surroundings {
      for (const other of others) {
        const message = `${LEDGER_FOLDER}/${other} is a second ledger of the same manifest`;
        found.add({ code: 'LEDGER_SECOND', where: { file: `${LEDGER_FOLDER}/${other}` }, message });
      }
      const orphans = listOrphans(reader, shelf, found);
      const grown = reader.hasGrown(head.size);
      const foreign = grown ? [] : findWorkOrphans(workFolders, found);
      return { remarks: [...orphans, ...foreign], checked: [], notChecked: [], grown };
    },
    close: () => {
      reader.close();
      earlier.close();
    },
  };
}

/** The `.head` file beside a ledger's folder, as it lies there. */
async function readStates(folder: string): Promise<AuditSource['states']> {
  try {
    const path = anchorPath(folder);
    return [{ name: basename(path), bytes: await readFileBounded(path, { maxBytes: 4096 }) }];
  } catch (error) {
    if (error instanceof BoundbookError) return [];
    throw error;
  }
}

/** The report schemas at hand of some manifests. */
async function schemasOf(
  root: string,
  ...manifests: readonly (IdentifiedManifest | null)[]
): Promise<ReadonlyMap<string, ReadonlyMap<string, Uint8Array>>> {
  const found = new Map<string, ReadonlyMap<string, Uint8Array>>();
  for (const one of manifests) if (one !== null) found.set(one.digest, await readSchemas(root, one.manifest));
  return found;
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
