import type { Digest } from '../../core/digest.js';
import type { Findings } from '../finding.js';
import type { PredecessorSource } from '../source.js';
import type { BundleManifest } from './bundle-manifests.js';
import type { Disclosure } from './disclosure.js';
import type { BundleFiles } from './files.js';
import { ENTRIES_FILE, predecessorPart } from './layout.js';
import { LedgerPart } from './ledger-part.js';

/** The ledgers of superseded plans in a bundle, opened when they are asked for. */
export class BundlePredecessors {
  readonly #files: BundleFiles;
  readonly #manifests: ReadonlyMap<Digest, BundleManifest>;
  readonly #disclosure: Disclosure | null;
  readonly #opened = new Map<string, LedgerPart>();

  constructor(
    files: BundleFiles,
    manifests: ReadonlyMap<Digest, BundleManifest>,
    disclosure: Disclosure | null,
  ) {
    this.#disclosure = disclosure;
    this.#files = files;
    this.#manifests = manifests;
  }

  /** The ledger of a manifest; null when the bundle has none. */
  open(digest: Digest, findings: Findings): PredecessorSource | null {
    const manifest = this.#manifests.get(digest);
    if (manifest === undefined) return null;
    for (const id of this.#ids()) {
      if (this.#opened.has(id) || !this.#files.sizes.has(`${predecessorPart(id)}/${ENTRIES_FILE}`)) continue;
      const name = predecessorPart(id);
      const own = findings.within(name);
      const ledger = new LedgerPart(this.#files, name, own, this.#disclosure);
      const opened = ledger.opening();
      if (opened?.manifest !== digest) continue;
      this.#opened.set(id, ledger);
      if (opened.ledger !== id) {
        own.add({ code: 'PREDECESSOR_DIFFERS', where: {}, message: `it is the ledger ${opened.ledger}` });
      }
      return { manifest, name, ledger, conclude: (shelf) => ledger.conclude(shelf) };
    }
    return null;
  }

  /**
   * Names those that nobody asked for, once all were.
   *
   * @returns redacted records in the packs of the others
   */
  conclude(findings: Findings): number {
    for (const id of this.#ids()) {
      if (this.#opened.has(id)) continue;
      const where = { file: predecessorPart(id) };
      findings.add({ code: 'PREDECESSOR_DIFFERS', where, message: 'no plan of the lineage has this ledger' });
    }
    return [...this.#opened.values()].reduce((sum, { redacted }) => sum + redacted, 0);
  }

  #ids(): readonly string[] {
    const paths = [...this.#files.sizes.keys()].map((path) => path.split('/'));
    return [
      ...new Set(
        paths.flatMap(([folder, id]) => (folder === 'predecessors' && id !== undefined ? [id] : [])),
      ),
    ].sort();
  }
}
