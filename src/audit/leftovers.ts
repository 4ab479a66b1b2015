import type { Digest } from '../core/digest.js';
import type { BoundbookError } from '../core/errors.js';
import type { Findings } from './finding.js';
import type { ObjectShelf } from './objects.js';

/** What lies in a ledger's folder beside its entries. */
export interface FolderListing {
  countRows(): number;
  rowDigests(): Iterable<string>;
  objectFiles(): Iterable<{ readonly hex: string | null; readonly path: string }>;
}

/**
 * Finds objects that no entry names (F-91, F-127). A row is written in the transaction of the entry that names it, so
 * an orphan there is a trace of removed entries. A file is written before its entry: a crash in between leaves one
 * behind lawfully, which is a remark.
 *
 * @returns remarks
 * @throws {BoundbookError} as the listing
 */
export function findOrphans(
  listing: FolderListing,
  shelf: ObjectShelf,
  findings: Findings,
): readonly string[] {
  const files = [...listing.objectFiles()];
  const named = files.filter(({ hex }) => hex !== null && shelf.isNamed(hex)).length;
  // Every named object lies in a row or in a file: equal numbers leave no room for an orphan.
  if (listing.countRows() + named !== shelf.size) {
    for (const hex of listing.rowDigests()) {
      if (shelf.isNamed(hex)) continue;
      const object: Digest = `sha256:${hex}`;
      const message = `the object ${object} is in the ledger and no entry names it`;
      findings.add({ code: 'OBJECT_ORPHAN', where: { object }, message });
    }
  }
  return files
    .filter(({ hex }) => hex === null || !shelf.isNamed(hex))
    .map(({ hex, path }) =>
      hex === null
        ? `${path} is no object; an interrupted write leaves such a file`
        : `${path} is an object that no entry names: a write without its entry, or an entry that is gone`,
    );
}

/**
 * An attempt is durable before its folder is made (law 2), and a session before that of its services: a folder without
 * its entry stands for an entry that is gone. Other names are not the runner's.
 *
 * @returns remarks
 */
export function findWorkOrphans(workFolders: ReadonlySet<string>, findings: Findings): readonly string[] {
  const foreign: string[] = [];
  for (const name of workFolders) {
    if (/^lost\.[0-9]+$/.test(name)) {
      foreign.push(
        `work/${name} holds what was left by entries that are lost, since an older copy was put back`,
      );
      continue;
    }
    if (!/^(services-)?[0-9a-f]{32}$/.test(name)) {
      foreign.push(`work/${name} was not made by a run`);
      continue;
    }
    const owner = name.startsWith('services-') ? 'session' : 'attempt';
    const message = `the work folder ${name} belongs to no ${owner} in the ledger`;
    findings.add({ code: 'WORK_ORPHAN', where: { file: `work/${name}` }, message });
  }
  return foreign;
}

/** A listing that cannot be read is damage like any other. */
export function unreadable(error: BoundbookError, findings: Findings): void {
  findings.add({ code: 'LEDGER_DAMAGED', where: {}, message: `orphans cannot be listed: ${error.message}` });
}
