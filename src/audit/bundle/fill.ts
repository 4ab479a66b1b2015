import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { canonicalBytes } from '../../core/canonical-json.js';
import { type Digest, digestOf } from '../../core/digest.js';
import { systemCode } from '../../core/errors.js';
import { readError, readFileBounded } from '../../core/files.js';
import { attestationsAbout, loadAttestations } from '../../manifest/attestations.js';
import { closureOf } from '../../manifest/closure.js';
import { supersededBy } from '../../manifest/succession.js';
import { readWorkspace, type StoredManifest } from '../../manifest/workspace.js';
import { buildReport } from '../../report/build.js';
import { reportInput } from '../../report/input.js';
import { renderReport } from '../../report/render.js';
import type { BundleFolder } from './bundle-folder.js';
import { writePredecessors } from './export-predecessors.js';
import { LEDGER_PART, noteSize } from './layout.js';
import type { Redaction } from './redaction.js';
import type { LedgerSnapshot } from './snapshot.js';
import { type LedgerContent, writeLedger } from './write-ledger.js';

const MAX_NOTE_BYTES = 1_000_000;

/**
 * Fills a bundle's folder with everything that belongs to a snapshot of a ledger.
 *
 * @param given reports to take along; null: those of the snapshot, when outcomes may be shown
 * @returns the bundle's identity, and the number of different objects
 */
export async function fill(
  root: string,
  folder: BundleFolder,
  snapshot: LedgerSnapshot,
  given: ReadonlyMap<string, Buffer> | null,
  redaction: Redaction | null,
): Promise<{ readonly bundle: Digest; readonly objects: number }> {
  const { stored } = snapshot;
  const manifests = closureOf(stored, (await readWorkspace(root)).manifests);
  for (const one of [...manifests].sort((a, b) => (a.file < b.file ? -1 : 1))) {
    // A manifest file is the canonical form of its content; reading it has proved that.
    folder.put(`manifests/${one.file}`, canonicalBytes(one.manifest));
    redaction?.addTasksOf(one.manifest);
  }
  const ledger = writeLedger(folder, LEDGER_PART, contentOf(snapshot), redaction);
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

function contentOf(snapshot: LedgerSnapshot): LedgerContent {
  const { schemas, context, getObject } = snapshot;
  return { records: snapshot.records(), schemas, taskIds: context.taskIds, getObject };
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
