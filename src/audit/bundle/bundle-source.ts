import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Digest } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { readError } from '../../core/files.js';
import { CHECKPOINT_FOLDER, type NoteFile } from '../../ledger/note-files.js';
import {
  type Attestation,
  type Attestations,
  attestationKind,
  attestationLimit,
  type DamagedAttestation,
  readAttestation,
} from '../../manifest/attestations.js';
import type { IdentifiedManifest } from '../../manifest/manifest.js';
import { manifestFileName } from '../../manifest/manifest.js';
import type { Findings } from '../finding.js';
import type { LedgerAudit } from '../ledger-audit.js';
import type { ObjectShelf } from '../objects.js';
import type { ReportFile } from '../report-audit.js';
import type { AuditSource, BundleFacts, PredecessorSource, Surroundings } from '../source.js';
import { BulkWorker } from './bulk-worker.js';
import { type BundleManifest, checkLineage, readManifests } from './bundle-manifests.js';
import type { Disclosure } from './disclosure.js';
import type { BundleFiles } from './files.js';
import { openFolder } from './folder-files.js';
import {
  checkFile,
  checkFiles,
  checkStatements,
  MAX_INDEX_BYTES,
  type ReadIndex,
  readIndex,
} from './index-audit.js';
import { ENTRIES_FILE, INDEX_FILE, LEDGER_PART, noteSize, PACK_FILE, SQLITE_FILE } from './layout.js';
import { LedgerPart } from './ledger-part.js';
import { BundlePredecessors } from './predecessors.js';
import { type Region, readWhole } from './region.js';
import { checkSqlite, noteSqliteFault } from './sqlite-check.js';
import { openTar } from './tar-files.js';

/** Below this a second thread costs more than it saves. */
const WORTH_A_THREAD = 8 << 20;
/** The files that grow with a ledger. */
const ENTRIES = `${LEDGER_PART}/${ENTRIES_FILE}`;
const PACK = `${LEDGER_PART}/${PACK_FILE}`;
const SQLITE = `${LEDGER_PART}/${SQLITE_FILE}`;
const LARGE_FILES = [ENTRIES, PACK, SQLITE];
const MAX_NOTE_BYTES = 1_000_000;
const MAX_REPORT_BYTES = 256 * 1024 * 1024;
/** Reports of these forms can be rebuilt. */
const REBUILT = /\.(json|txt|md)$/;

/**
 * Opens a bundle for an audit. All of it is hostile: whatever is wrong with it is a finding, as far as there is anything
 * left to judge.
 *
 * @param path a folder, or a tar of it
 * @param threadFrom a ledger's files of so many bytes are checked in a thread beside the replay
 * @throws {BoundbookError} BUNDLE_INVALID when it is no bundle or has no entries; FILE_NOT_FOUND, FILE_UNREADABLE and the
 * like.
 */
export async function openBundleSource(
  path: string,
  findings: Findings,
  disclosure: Disclosure | null = null,
  threadFrom: number = WORTH_A_THREAD,
): Promise<AuditSource> {
  const files = await openFiles(path);
  const bulk = startBulk(files, threadFrom);
  try {
    return new BundleSource(files, findings, disclosure, bulk);
  } catch (error) {
    await bulk?.close();
    files.close();
    throw error;
  }
}

class BundleSource implements AuditSource {
  readonly identified: IdentifiedManifest | null;
  readonly manifestFile: string;
  readonly ledgerName: string;
  readonly ledger: LedgerPart;
  readonly lineage: readonly IdentifiedManifest[];
  /** A bundle holds what a plan rests on, and not what followed. */
  readonly successor = null;
  readonly notes: readonly NoteFile[];
  readonly attestations: Attestations;
  readonly reports: readonly ReportFile[];
  readonly workFolders = new Set<string>();
  readonly bundle: BundleFacts;
  readonly #files: BundleFiles;
  readonly #disclosure: Disclosure | null;
  readonly #index: ReadIndex;
  readonly #digests: ReadonlyMap<string, Digest>;
  readonly #manifests: ReadonlyMap<Digest, BundleManifest>;
  readonly #predecessors: BundlePredecessors;
  /** What looks at the {@link LARGE_FILES}; null when they were looked at. */
  readonly #bulk: BulkWorker | null;

  constructor(
    files: BundleFiles,
    findings: Findings,
    disclosure: Disclosure | null,
    bulk: BulkWorker | null,
  ) {
    this.#disclosure = disclosure;
    this.#files = files;
    this.#index = readIndex(files, findings);
    this.#bulk = bulk;
    const later = new Set(bulk === null ? [] : LARGE_FILES);
    this.#digests = checkFiles(files, this.#index.index, findings, later);
    this.#manifests = readManifests(files, findings);
    this.#predecessors = new BundlePredecessors(files, this.#manifests, disclosure);
    this.ledger = new LedgerPart(files, LEDGER_PART, findings, disclosure);
    this.identified = this.#identify(findings);
    this.manifestFile = this.identified === null ? '' : manifestFileName(this.identified);
    this.ledgerName = this.manifestFile.replace(/\.json$/, '');
    this.lineage = this.identified === null ? [] : checkLineage(this.identified, this.#manifests, findings);
    this.notes = this.#read(CHECKPOINT_FOLDER, MAX_NOTE_BYTES, findings)
      .sort((a, b) => sizeOf(a) - sizeOf(b))
      .map(({ path, bytes }) => ({ name: path, bytes }));
    this.attestations = this.#readAttestations();
    const reports = this.#read('report', MAX_REPORT_BYTES, findings).filter(({ path }) => REBUILT.test(path));
    this.reports = reports.map(({ path, bytes }) => ({ name: path, bytes }));
    const other = [...files.sizes.keys()].filter((path) => path.startsWith('report/') && !REBUILT.test(path));
    this.bundle = {
      name: files.name,
      form: files.form,
      digest: this.#index.digest,
      otherReports: other.sort(),
    };
  }

  /** Read when it is asked for: the index of a large bundle is large. */
  get states(): AuditSource['states'] {
    return [{ name: INDEX_FILE, bytes: readWhole(this.#files.open(INDEX_FILE), MAX_INDEX_BYTES) }];
  }

  async conclude(audit: LedgerAudit, shelf: ObjectShelf, findings: Findings): Promise<Surroundings> {
    this.ledger.conclude(shelf);
    const before = this.#predecessors.conclude(findings);
    const { index } = this.#index;
    if (index !== null) {
      const opened = this.ledger.opening();
      const { head } = audit;
      const redacted = this.ledger.redacted + before;
      const actual = { manifest: opened?.manifest ?? null, id: opened?.ledger ?? null, head, redacted };
      checkStatements(index, actual, findings);
    }
    await this.#checkCopy(findings);
    this.#disclosure?.conclude();
    const said = this.#disclosure?.lines() ?? { checked: [], notChecked: [] };
    return { ...said, remarks: [], grown: false };
  }

  predecessor(manifest: Digest, findings: Findings): PredecessorSource | null {
    return this.#predecessors.open(manifest, findings);
  }

  async close(): Promise<void> {
    await this.#bulk?.close();
    this.#files.close();
  }

  /** The manifest of the first entry; where the files have it no more, the ledger's own copy of it. */
  #identify(findings: Findings): IdentifiedManifest | null {
    const digest = this.ledger.opening()?.manifest ?? this.#index.index?.manifest ?? null;
    if (digest === null) return null;
    const found = this.#manifests.get(digest);
    if (found !== undefined) return found;
    const message = `the manifest ${digest} of the ledger is not in the bundle`;
    findings.add({ code: 'MANIFEST_MISSING', where: {}, message });
    return this.ledger.keptManifest();
  }

  async #checkCopy(findings: Findings): Promise<void> {
    const entries = this.#digests.get(ENTRIES);
    const { digests = new Map<string, Digest>(), sqliteFault = null } = (await this.#bulk?.verdict()) ?? {};
    for (const [file, digest] of digests) {
      checkFile(file, { size: this.#files.sizes.get(file) ?? 0, digest }, this.#index.index, findings);
    }
    if (!this.#files.sizes.has(SQLITE)) noteSqliteFault(SQLITE, 'the bundle has no such file', findings);
    else if (this.#bulk !== null) noteSqliteFault(SQLITE, sqliteFault, findings);
    else if (entries !== undefined) checkSqlite(this.#files.open(SQLITE), entries, findings);
  }

  #readAttestations(): Attestations {
    const all: Attestation[] = [];
    const damaged: DamagedAttestation[] = [];
    for (const path of this.#paths('attestations')) {
      const file = basename(path);
      try {
        const limit = attestationLimit(attestationKind(file) ?? 'envelope');
        all.push(readAttestation(file, readWhole(this.#files.open(path), limit)));
      } catch (error) {
        if (!(error instanceof BoundbookError)) throw error;
        damaged.push({ file, error });
      }
    }
    return { all, damaged };
  }

  #read(folder: string, maxBytes: number, findings: Findings): { path: string; bytes: Buffer }[] {
    return this.#paths(folder).flatMap((path) => {
      try {
        return [{ path, bytes: readWhole(this.#files.open(path), maxBytes) }];
      } catch (error) {
        if (!(error instanceof BoundbookError)) throw error;
        findings.add({ code: 'BUNDLE_FORM', where: { file: path }, message: error.message });
        return [];
      }
    });
  }

  #paths(folder: string): string[] {
    return [...this.#files.sizes.keys()].filter((path) => path.startsWith(`${folder}/`)).sort();
  }
}

/** Starts with the large files of a bundle that has them; null for a small one. */
function startBulk(files: BundleFiles, threadFrom: number): BulkWorker | null {
  const sizes = LARGE_FILES.map((path) => files.sizes.get(path) ?? 0);
  if (!files.sizes.has(ENTRIES) || sizes.reduce((sum, size) => sum + size, 0) < threadFrom) return null;
  const open = (path: string): Region | null => (files.sizes.has(path) ? files.open(path) : null);
  return new BulkWorker({ entries: files.open(ENTRIES), pack: open(PACK), sqlite: open(SQLITE) });
}

async function openFiles(path: string): Promise<BundleFiles> {
  const stats = await stat(path).catch((error: unknown) => {
    throw readError(path, error);
  });
  return stats.isDirectory() ? openFolder(path) : openTar(path);
}

function sizeOf({ path }: { readonly path: string }): number {
  return noteSize(basename(path)) ?? 0;
}
