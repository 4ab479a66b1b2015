import { readdir } from 'node:fs/promises';
import { basename, isAbsolute, join, resolve } from 'node:path';
import type { Digest } from '../core/digest.js';
import { BoundbookError, systemCode } from '../core/errors.js';
import { readError, readFileBounded } from '../core/files.js';
import { assertBelongsTo, LEDGER_FOLDER, ledgerFolder } from '../ledger/book.js';
import { LedgerReader } from '../ledger/reader.js';
import {
  type IdentifiedManifest,
  type Manifest,
  parseManifest,
  readManifestFileName,
} from '../manifest/manifest.js';
import { loadManifest } from '../manifest/select.js';
import { successorOf } from '../manifest/succession.js';
import { MANIFEST_FOLDER, readWorkspace } from '../manifest/workspace.js';
import type { Findings } from './finding.js';

const MAX_SCHEMA_BYTES = 16 * 1024 * 1024;

/** What is audited: a manifest and the folder of its ledger. */
export interface Subject {
  /** null when neither the workspace nor the ledger holds a manifest that can be read. */
  readonly identified: IdentifiedManifest | null;
  /** The manifest's file name. */
  readonly file: string;
  readonly folder: string;
}

/**
 * Finds the manifest and its ledger. A manifest that was edited is a finding; the audit then goes on with the copy that
 * the ledger kept.
 *
 * @throws {BoundbookError} as `loadManifest`, except for an altered manifest whose ledger can be found.
 */
export async function readSubject(
  root: string,
  selector: string | undefined,
  ledger: string | undefined,
  findings: Findings,
): Promise<Subject> {
  try {
    const { manifest, digest, file } = await loadManifest(root, selector);
    return { identified: { manifest, digest }, file, folder: ledgerAt(root, ledger, file) };
  } catch (error) {
    if (!(error instanceof BoundbookError) || !isAltered(error)) throw error;
    const file = await alteredFile(root, selector);
    if (file === null) throw error;
    findings.add({
      code: 'MANIFEST_ALTERED',
      where: { file: `${MANIFEST_FOLDER}/${file}` },
      message: error.message,
      evidence: {
        ...(error.evidence === undefined ? {} : { found: error.evidence }),
        faults: error.faults.slice(0, 20).map(({ where, message }) => ({ where, message })),
      },
    });
    const folder = ledgerAt(root, ledger, file);
    return { identified: keptManifest(folder), file, folder };
  }
}

/** Other folders of the workspace that hold a ledger of the same manifest. */
export async function otherLedgers(
  root: string,
  { identified, folder }: Subject,
): Promise<readonly string[]> {
  if (identified === null) return [];
  const parent = join(root, LEDGER_FOLDER);
  const names = await readdir(parent).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR') return [];
    throw readError(parent, error);
  });
  return names.sort().filter((name) => {
    const other = join(parent, name);
    return resolve(other) !== resolve(folder) && holdsLedgerOf(other, identified);
  });
}

/**
 * The manifests that one was bound from or that its plan supersedes, the nearest first. Ends where one is not in the
 * workspace.
 */
export async function readLineage(
  root: string,
  { manifest, digest }: IdentifiedManifest,
): Promise<readonly IdentifiedManifest[]> {
  const byDigest = new Map((await readWorkspace(root)).manifests.map((one) => [one.digest, one]));
  const found = new Map<Digest, IdentifiedManifest>();
  const open: (Digest | null)[] = [manifest.parent, manifest.supersedes];
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    const one = next === null ? undefined : byDigest.get(next);
    if (one === undefined || one.digest === digest || found.has(one.digest)) continue;
    found.set(one.digest, { manifest: one.manifest, digest: one.digest });
    open.push(one.manifest.parent, one.manifest.supersedes);
  }
  return [...found.values()];
}

/** The manifest that took the plan's place (P22); null for a plan in force. */
export async function readSuccessor(
  root: string,
  identified: IdentifiedManifest | null,
): Promise<IdentifiedManifest | null> {
  const { manifests } = await readWorkspace(root);
  const stored = manifests.find(({ digest }) => digest === identified?.digest);
  const successor = stored === undefined ? null : successorOf(stored, manifests);
  return successor === null ? null : { manifest: successor.manifest, digest: successor.digest };
}

/** The declared report schemas that lie in the workspace, by binding name. */
export async function readSchemas(
  root: string,
  manifest: Manifest,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  for (const { name, path } of manifest.bindings) {
    if (!name.startsWith('report-schema/')) continue;
    const bytes = await readFileBounded(isAbsolute(path) ? path : join(root, path), {
      maxBytes: MAX_SCHEMA_BYTES,
    }).catch((error: unknown) => {
      if (error instanceof BoundbookError) return null;
      throw error;
    });
    if (bytes !== null) files.set(name, bytes);
  }
  return files;
}

function ledgerAt(root: string, ledger: string | undefined, file: string): string {
  if (ledger === undefined) return ledgerFolder(root, file);
  return isAbsolute(ledger) ? ledger : join(root, ledger);
}

function isAltered({ code }: BoundbookError): boolean {
  return code === 'MANIFEST_ALTERED' || code === 'FILE_EMPTY';
}

/** The name of the altered manifest that a selector means: a file, or the one damaged manifest of that name. */
async function alteredFile(root: string, selector: string | undefined): Promise<string | null> {
  if (selector !== undefined && readManifestFileName(basename(selector)) !== null) return basename(selector);
  const { damaged } = await readWorkspace(root);
  const meant = damaged.filter(
    ({ name, file }) =>
      selector === undefined || name === selector.replace(/\.r\d{1,4}$/, '') || file.includes(selector),
  );
  return meant.length === 1 ? (meant[0]?.file ?? null) : null;
}

/** The manifest that a ledger kept as an object; null when there is none that can be read. */
function keptManifest(folder: string): IdentifiedManifest | null {
  let reader: LedgerReader | undefined;
  try {
    reader = LedgerReader.open(folder);
    for (const { entry } of reader.entries()) {
      if (entry.type !== 'ledger.opened') return null;
      return parseManifest(reader.getObject(entry.manifest_object), 'the manifest in the ledger');
    }
    return null;
  } catch (error) {
    if (error instanceof BoundbookError) return null;
    throw error;
  } finally {
    reader?.close();
  }
}

function holdsLedgerOf(folder: string, { digest }: IdentifiedManifest): boolean {
  let reader: LedgerReader | undefined;
  try {
    reader = LedgerReader.open(folder);
    assertBelongsTo(reader, digest, 'LEDGER_FOREIGN');
    return true;
  } catch (error) {
    // What cannot be read is nobody's second ledger.
    if (error instanceof BoundbookError) return false;
    throw error;
  } finally {
    reader?.close();
  }
}
