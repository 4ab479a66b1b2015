import { basename, resolve } from 'node:path';
import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { readFileBounded } from '../core/files.js';
import { anchorPath } from '../ledger/anchor.js';
import { LEDGER_FOLDER } from '../ledger/book.js';
import { readNotes } from '../ledger/checkpoints.js';
import { loadAttestations } from '../manifest/attestations.js';
import type { Findings } from './finding.js';
import { damageNote } from './head.js';
import { findOrphans, findWorkOrphans, unreadable } from './leftovers.js';
import { ObjectStream } from './object-stream.js';
import type { Found, ObjectShelf, ObjectSource } from './objects.js';
import { AuditReader } from './reader.js';
import type { AuditSource, Surroundings } from './source.js';
import { otherLedgers, readLineage, readSchemas, readSubject } from './subject.js';

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
  const schemas = identified === null ? new Map() : await readSchemas(root, identified.manifest);
  const others = await otherLedgers(root, subject);
  const lineage = identified === null ? [] : await readLineage(root, identified);
  const attestations = await loadAttestations(root);
  const notes = await readNotes(folder);
  const states = await readStates(folder);
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
      schemas: () => schemas,
    },
    lineage,
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
      return { remarks: [...orphans, ...foreign], grown };
    },
    close: () => reader.close(),
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

/** The objects of a ledger's folder: quick for those that come in the order in which they were written. */
class FolderObjects implements ObjectSource {
  readonly #reader: AuditReader;
  readonly #stream: ObjectStream;

  constructor(reader: AuditReader) {
    this.#reader = reader;
    this.#stream = new ObjectStream(reader, reader);
  }

  take(digest: Digest): Found {
    const bytes = this.#stream.findObject(digest);
    return bytes === null ? { state: 'missing' } : { state: 'here', bytes, at: 0 };
  }

  again(digest: Digest): Buffer {
    return this.#reader.getObject(digest);
  }
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
