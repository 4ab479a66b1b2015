import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { LEDGER_FOLDER, ledgerFolder } from '../ledger/book.js';
import { type IdentifiedManifest, manifestFileName } from '../manifest/manifest.js';
import type { Findings } from './finding.js';
import { FolderObjects } from './folder-objects.js';
import { damageNote } from './head.js';
import { AuditReader } from './reader.js';
import type { PredecessorSource } from './source.js';

/** The ledgers of superseded plans in a workspace, opened when they are asked for. */
export class EarlierLedgers {
  readonly #root: string;
  readonly #lineage: readonly IdentifiedManifest[];
  readonly #schemas: ReadonlyMap<string, ReadonlyMap<string, Uint8Array>>;
  readonly #readers: AuditReader[] = [];

  /** @param schemas report schemas at hand, by manifest */
  constructor(
    root: string,
    lineage: readonly IdentifiedManifest[],
    schemas: ReadonlyMap<string, ReadonlyMap<string, Uint8Array>>,
  ) {
    this.#root = root;
    this.#lineage = lineage;
    this.#schemas = schemas;
  }

  /** The ledger of a manifest; null when there is none. One that cannot be read is a finding. */
  open(digest: Digest, findings: Findings): PredecessorSource | null {
    const manifest = this.#lineage.find((one) => one.digest === digest);
    if (manifest === undefined) return null;
    const folder = ledgerFolder(this.#root, manifestFileName(manifest));
    const name = `${LEDGER_FOLDER}/${manifestFileName(manifest).replace(/\.json$/, '')}`;
    try {
      const reader = AuditReader.open(folder);
      this.#readers.push(reader);
      for (const error of reader.damage) findings.within(name).add(damageNote(error));
      const ledger = {
        rows: (from?: number) => reader.rows(from),
        objects: new FolderObjects(reader),
        schemas: () => this.#schemas.get(digest) ?? new Map<string, Uint8Array>(),
        taskIds: () => new Map(),
      };
      // What lies beside its entries is for an audit of that ledger by itself.
      return { manifest, name, ledger, conclude: () => undefined };
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      if (error.code !== 'LEDGER_NOT_FOUND') {
        findings.add({ code: 'LEDGER_DAMAGED', where: { file: name }, message: error.message });
      }
      return null;
    }
  }

  close(): void {
    for (const reader of this.#readers) reader.close();
  }
}
