import { renameSync, rmSync } from 'node:fs';
import { mkdtemp, readdir } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type Digest, hexOf } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { exists, readError, readFileBounded, syncFolder, writeError } from '../../core/files.js';
import { openBook } from '../../ledger/book.js';
import { EXPORTED_BLINDED, noteDeviation } from '../../ledger/deviations.js';
import type { LedgerHead } from '../../ledger/reader.js';
import { loadManifest } from '../../manifest/select.js';
import type { StoredManifest } from '../../manifest/workspace.js';
import { BundleFolder } from './bundle-folder.js';
import { fill } from './fill.js';
import type { WrittenFile } from './hashed-file.js';
import { isReportName } from './layout.js';
import { assertOutsideRecord } from './place.js';
import { Redaction, type RedactionChoice } from './redaction.js';
import { type LedgerSnapshot, openSnapshot } from './snapshot.js';
import { writeTar } from './tar-write.js';

const MAX_REPORT_BYTES = 256 * 1024 * 1024;

export interface ExportOptions {
  /** The new folder. */
  readonly out: string;
  /** A new tar of it. */
  readonly tar?: string;
  /** Reports to take along instead of those that are built now. */
  readonly reports?: readonly string[];
  readonly redact?: RedactionChoice;
  /**
   * Why outcomes leave the house although they are blinded: the ledger notes it as a deviation of all slots. `true`, which no
   * verb gives: the bundle stays in the house and nothing is noted.
   */
  readonly beforeUnblinding?: string | true;
}

export interface Exported {
  readonly manifest: StoredManifest;
  /** Identity of the bundle. */
  readonly bundle: Digest;
  readonly folder: string;
  readonly tar: (WrittenFile & { readonly file: string }) | null;
  readonly head: LedgerHead;
  /** Different objects; null while outcomes are blinded: equal answers are one object (law 8). */
  readonly objects: number | null;
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
 * @throws {BoundbookError} FILE_EXISTS for a name that is taken; OUTCOME_BLINDED; USAGE, also for a place among plans or ledgers; DISK_FULL, FILE_UNWRITABLE; as
 * `loadManifest` and `openSnapshot`.
 */
export async function exportBundle(
  root: string,
  selector: string | undefined,
  options: ExportOptions,
  now: () => string = () => new Date().toISOString(),
): Promise<Exported> {
  const out = resolve(root, options.out);
  const tar = options.tar === undefined ? null : resolve(root, options.tar);
  const salts = options.redact === undefined ? null : `${out}.salts`;
  for (const path of [out, tar, salts]) {
    if (path === null) continue;
    assertOutsideRecord(root, path);
    await assertNew(path);
  }
  const reports = await readReports(root, options.reports);
  const stored = await loadManifest(root, selector);
  const { beforeUnblinding } = options;
  if (typeof beforeUnblinding === 'string') await noteExposure(root, stored, beforeUnblinding, now);
  const snapshot = await openSnapshot(root, stored);
  try {
    assertMayLeave(snapshot, beforeUnblinding !== undefined);
    return await writeAll(root, snapshot, { ...options, out, tar, salts, reports });
  } finally {
    snapshot.close();
  }
}

/** Puts on the record, before it happens, that outcomes leave a blinded ledger. */
async function noteExposure(
  root: string,
  stored: StoredManifest,
  reason: string,
  now: () => string,
): Promise<void> {
  const book = await openBook(root, stored, 'write', now);
  try {
    if (book.fold.outcomesVisible) return;
    noteDeviation(book, `${EXPORTED_BLINDED}${reason}`, new Map());
  } finally {
    book.close();
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
      objects: snapshot.fold.outcomesVisible ? objects : null,
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

/** A bundle of a blinded ledger shows outcomes by arm to whoever opens it (law 8). */
function assertMayLeave({ fold }: LedgerSnapshot, noted: boolean): void {
  if (fold.outcomesVisible || noted) return;
  throw new BoundbookError(
    'OUTCOME_BLINDED',
    'a bundle holds every outcome by arm, and outcomes are blinded until unblinding',
    {
      hint: 'Run `boundbook unblind` first. To hand it over all the same: --before-unblinding REASON, which the ledger notes as a deviation.',
    },
  );
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
