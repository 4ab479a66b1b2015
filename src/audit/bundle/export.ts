import { renameSync, rmSync } from 'node:fs';
import { mkdtemp, readdir } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { canonicalBytes } from '../../core/canonical-json.js';
import { type Digest, digestOf, hexOf } from '../../core/digest.js';
import { BoundbookError, systemCode } from '../../core/errors.js';
import { exists, readError, readFileBounded, syncFolder, writeError } from '../../core/files.js';
import type { LedgerHead } from '../../ledger/reader.js';
import { attestationsAbout, loadAttestations } from '../../manifest/attestations.js';
import { closureOf } from '../../manifest/closure.js';
import { loadManifest } from '../../manifest/select.js';
import { supersededBy } from '../../manifest/succession.js';
import { readWorkspace, type StoredManifest } from '../../manifest/workspace.js';
import { buildReport } from '../../report/build.js';
import { reportInput } from '../../report/input.js';
import { renderReport } from '../../report/render.js';
import { BundleFolder } from './bundle-folder.js';
import { writePredecessors } from './export-predecessors.js';
import type { WrittenFile } from './hashed-file.js';
import { isReportName, LEDGER_PART, noteSize } from './layout.js';
import { Redaction, type RedactionChoice } from './redaction.js';
import { type LedgerSnapshot, openSnapshot } from './snapshot.js';
import { writeTar } from './tar-write.js';
import { writeLedger } from './write-ledger.js';

const MAX_NOTE_BYTES = 1_000_000;
const MAX_REPORT_BYTES = 256 * 1024 * 1024;

export interface ExportOptions {
  /** The new folder. */
  readonly out: string;
  /** A new tar of it. */
  readonly tar?: string;
  /** Reports to take along instead of those that are built now. */
  readonly reports?: readonly string[];
  readonly redact?: RedactionChoice;
  /** Outcomes are blinded, and whoever asks knows that the bundle holds them all the same. */
  readonly beforeUnblinding?: boolean;
}

export interface Exported {
  readonly manifest: StoredManifest;
  /** Identity of the bundle. */
  readonly bundle: Digest;
  readonly folder: string;
  readonly tar: (WrittenFile & { readonly file: string }) | null;
  readonly head: LedgerHead;
  readonly objects: number;
  readonly redaction: {
    readonly salts: string;
    readonly objects: number;
    /** Redacted objects so short that a guess at them can be confirmed. */
    readonly guessable: number;
  } | null;
}

/**
 * Writes a bundle of a manifest's ledger: a folder and, when asked for, a tar of it. Both appear whole and durable under
 * their names, or not at all. A run may go on meanwhile: the bundle is of one state.
 *
 * @param selector what a person writes for a manifest, see `loadManifest`
 * @throws {BoundbookError} FILE_EXISTS for a name that is taken; OUTCOME_BLINDED; USAGE; DISK_FULL, FILE_UNWRITABLE; as
 * `loadManifest` and `openSnapshot`.
 */
export async function exportBundle(
  root: string,
  selector: string | undefined,
  options: ExportOptions,
): Promise<Exported> {
  const out = resolve(root, options.out);
  const tar = options.tar === undefined ? null : resolve(root, options.tar);
  const salts = options.redact === undefined ? null : `${out}.salts`;
  for (const path of [out, tar, salts]) if (path !== null) await assertNew(path);
  const reports = await readReports(root, options.reports);
  const stored = await loadManifest(root, selector);
  const snapshot = await openSnapshot(root, stored);
  try {
    assertMayLeave(snapshot, options);
    return await writeAll(root, snapshot, { ...options, out, tar, salts, reports });
  } finally {
    snapshot.close();
  }
}

interface Targets {
  readonly out: string;
  readonly tar: string | null;
  readonly salts: string | null;
  readonly redact?: RedactionChoice;
  readonly reports: ReadonlyMap<string, Buffer> | null;
}

async function writeAll(root: string, snapshot: LedgerSnapshot, targets: Targets): Promise<Exported> {
  const { out, tar, salts } = targets;
  const temporary = await makeTemporary(out);
  const temporarySalts = `${temporary}.salts`;
  const undo: string[] = [temporary, temporarySalts];
  const folder = new BundleFolder(temporary);
  let redaction: Redaction | null = null;
  try {
    if (targets.redact !== undefined) redaction = new Redaction(targets.redact, temporarySalts);
    const { bundle, objects } = await fill(root, folder, snapshot, targets.reports, redaction);
    redaction?.finish();
    const { manifest } = snapshot.stored;
    const top = `${manifest.name}.r${manifest.revision}.${hexOf(bundle).slice(0, 12)}`;
    const written = tar === null ? null : writeTar(temporary, folder.paths(), top, tar);
    if (written !== null && tar !== null) {
      undo.push(written.temporary);
      await publish(written.temporary, tar);
      undo.push(tar);
    }
    // Salts first: a bundle whose salts are lost can never be opened again.
    if (salts !== null) {
      await publish(temporarySalts, salts);
      undo.push(salts);
    }
    await publish(temporary, out);
    return {
      manifest: snapshot.stored,
      bundle,
      folder: out,
      tar:
        written === null || tar === null ? null : { file: tar, size: written.size, digest: written.digest },
      head: snapshot.head,
      objects,
      redaction:
        redaction === null || salts === null
          ? null
          : { salts, objects: redaction.count, guessable: redaction.guessable },
    };
  } catch (error) {
    folder.abandon();
    redaction?.abandon();
    for (const path of undo) rmSync(path, { recursive: true, force: true });
    throw writeError(out, error);
  }
}

async function fill(
  root: string,
  folder: BundleFolder,
  snapshot: LedgerSnapshot,
  given: ReadonlyMap<string, Buffer> | null,
  redaction: Redaction | null,
): Promise<{ readonly bundle: Digest; readonly objects: number }> {
  const { stored, context } = snapshot;
  const manifests = closureOf(stored, (await readWorkspace(root)).manifests);
  for (const one of [...manifests].sort((a, b) => (a.file < b.file ? -1 : 1))) {
    // A manifest file is the canonical form of its content; reading it has proved that.
    folder.put(`manifests/${one.file}`, canonicalBytes(one.manifest));
    redaction?.addTasksOf(one.manifest);
  }
  const ledger = writeLedger(
    folder,
    LEDGER_PART,
    {
      records: snapshot.records(),
      schemas: snapshot.schemas,
      taskIds: context.taskIds,
      getObject: snapshot.getObject,
    },
    redaction,
  );
  await writePredecessors(root, folder, snapshot.fold, manifests, redaction);
  const subjects = new Set(manifests.map(({ digest }) => digest));
  for (const [name, bytes] of await notesOf(snapshot)) {
    subjects.add(digestOf(bytes));
    folder.put(`checkpoints/${name}`, bytes);
  }
  for (const [name, bytes] of given ?? builtReports(snapshot, manifests)) {
    subjects.add(digestOf(bytes));
    folder.put(`report/${name}`, bytes);
  }
  for (const { file, bytes } of attestationsAbout(await loadAttestations(root), subjects)) {
    folder.put(`attestations/${file}`, bytes);
  }
  const { id, size, leaf, root: tree } = ledger;
  const index = {
    manifest: stored.digest,
    ledger: { id, size, leaf, root: tree },
    redacted: redaction?.count ?? 0,
  };
  return { bundle: folder.finish(index), objects: ledger.objects };
}

/** A bundle of a blinded ledger shows outcomes by arm to whoever opens it (law 8). */
function assertMayLeave({ fold }: LedgerSnapshot, { beforeUnblinding }: ExportOptions): void {
  if (fold.outcomesVisible || beforeUnblinding === true) return;
  throw new BoundbookError(
    'OUTCOME_BLINDED',
    'a bundle holds every outcome by arm, and outcomes are blinded until unblinding',
    {
      hint: 'Run `boundbook unblind` first. To hand it over all the same: --before-unblinding REASON, which goes on the record.',
    },
  );
}

/** The signed notes beside the ledger that are about entries of the snapshot, by size. */
async function notesOf({ folder, head }: LedgerSnapshot): Promise<readonly (readonly [string, Buffer])[]> {
  const place = join(folder, 'checkpoints');
  const names = await readdir(place).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw readError(place, error);
  });
  const sizes = names.flatMap((name) => noteSize(name) ?? []).filter((size) => size <= head.size);
  const notes: [string, Buffer][] = [];
  for (const name of sizes.sort((a, b) => a - b).map((size) => `${size}.note`)) {
    const limits = { maxBytes: MAX_NOTE_BYTES, followLinks: false };
    notes.push([name, await readFileBounded(join(place, name), limits)]);
  }
  return notes;
}

/** The report of the snapshot in its forms, when outcomes may be shown. */
function builtReports(
  snapshot: LedgerSnapshot,
  manifests: readonly StoredManifest[],
): ReadonlyMap<string, Buffer> {
  const { stored, fold, head } = snapshot;
  if (!fold.outcomesVisible) return new Map();
  const report = buildReport(
    reportInput({
      manifest: stored.manifest,
      manifestDigest: stored.digest,
      superseded: supersededBy(stored.manifest, manifests).plans,
      fold,
      head,
      entries: entriesOf(snapshot),
    }),
  );
  return new Map([
    ['report.json', Buffer.from(renderReport(report, 'json'))],
    ['report.md', Buffer.from(`${renderReport(report, 'markdown')}\n`)],
    ['report.txt', Buffer.from(`${renderReport(report, 'text')}\n`)],
  ]);
}

function* entriesOf({ records }: LedgerSnapshot) {
  for (const { entry } of records()) yield entry;
}

async function readReports(
  root: string,
  paths: readonly string[] | undefined,
): Promise<ReadonlyMap<string, Buffer> | null> {
  if (paths === undefined || paths.length === 0) return null;
  const reports = new Map<string, Buffer>();
  for (const path of paths) {
    const name = basename(path);
    if (!isReportName(name) || [...reports.keys()].some((one) => one.toLowerCase() === name.toLowerCase())) {
      throw new BoundbookError('USAGE', `a report cannot be called ${JSON.stringify(name)} in a bundle`, {
        hint: 'Its name has letters, digits, points, lines and underscores, and is not that of another report.',
      });
    }
    reports.set(name, await readFileBounded(resolve(root, path), { maxBytes: MAX_REPORT_BYTES }));
  }
  return reports;
}

async function assertNew(path: string): Promise<void> {
  if (await exists(path)) throw writeError(path, { code: 'EEXIST' });
}

/** A folder beside the target, so that it can be renamed. */
async function makeTemporary(out: string): Promise<string> {
  try {
    await readdir(dirname(out));
  } catch (error) {
    throw readError(dirname(out), error);
  }
  try {
    return await mkdtemp(join(dirname(out), `.${basename(out)}.`));
  } catch (error) {
    throw writeError(out, error);
  }
}

/** Gives something its name, which must still be free, durably. */
async function publish(temporary: string, path: string): Promise<void> {
  await assertNew(path);
  try {
    renameSync(temporary, path);
    await syncFolder(dirname(path));
  } catch (error) {
    throw writeError(path, error);
  }
}
