import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { digestOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { exists, readFileBounded } from '../core/files.js';
import { type Inspection, inspectHost, type Mismatch } from '../gate/inspect.js';
import { alteredManifestError, gateError } from '../gate/refusal.js';
import { type Book, ledgerFolder, openBook, openOrCreateBook } from '../ledger/book.js';
import type { DraftOf } from '../ledger/entries/entry.js';
import type { Restoration } from '../ledger/incarnations.js';
import { prepareCarry } from '../ledger/predecessor.js';
import { openIncarnation, type RestoreRequest } from '../ledger/restore.js';
import { LEDGER_FILE } from '../ledger/schema.js';
import { assertLocalDisk } from '../ledger/sqlite.js';
import type { LedgerStore } from '../ledger/store.js';
import { bindingOf, type Manifest } from '../manifest/manifest.js';
import type { Product } from '../manifest/product.js';
import { loadManifest } from '../manifest/select.js';
import { assertInForce } from '../manifest/succession.js';
import { readWorkspace, type StoredManifest } from '../manifest/workspace.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { readTaskFiles } from '../protocol/task-files.js';
import { resolveTaskSets } from '../protocol/tasks.js';
import { planDigest, type TaskIds } from '../slots/plan.js';
import { ownIdentity, type ProcessIdentity } from './process-identity.js';

export interface GateOptions {
  readonly root: string;
  /** The manifest, as `loadManifest` takes it. */
  readonly manifest?: string | undefined;
  readonly signal: AbortSignal;
  readonly now: () => string;
  readonly product?: Product | undefined;
  readonly onHash?: ((done: number, total: number) => void) | undefined;
}

export interface AdmissionOptions extends GateOptions {
  /** Goes on with an older copy that was put back, on the record. */
  readonly restore?: RestoreRequest | undefined;
  /** Told what was lost by it. */
  readonly onRestored?: ((restoration: Restoration) => void) | undefined;
  /** What is asked for must be planned: looked at before anything is made. */
  readonly check: (protocol: Protocol, taskIds: TaskIds) => void;
}

/** A manifest that may be executed on this host now, and its book. */
export interface Admission {
  readonly stored: StoredManifest;
  readonly inspection: Inspection;
  readonly book: Book<LedgerStore>;
  readonly session: string;
  readonly process: ProcessIdentity;
}

/** A ledger entry lists so many mismatches; the total is kept beside them. */
const LISTED = 100;

/**
 * The gate before a session (law 1): everything that is bound is hashed and compared. What differs is refused with
 * every mismatch; nothing but the refusal is written then, and that only into a ledger that is there already.
 *
 * @throws {BoundbookError} PLAN_SUPERSEDED; LEDGER_ON_NETWORK; GATE_REFUSED; STOPPED; MANIFEST_NOT_FOUND; what the check or opening the ledger throws.
 */
export async function admit(options: AdmissionOptions): Promise<Admission> {
  const stored = await load(options);
  assertInForce(stored, (await readWorkspace(options.root)).manifests);
  assertLocalDisk(ledgerFolder(options.root, stored.file));
  const inspection = await inspect(stored.manifest, options);
  if (inspection.mismatches.length > 0) {
    await recordRefusal(stored, inspection.mismatches, options);
    throw gateError(`manifests/${stored.file}`, inspection.mismatches);
  }
  const files = await boundTaskFiles(stored.manifest, inspection);
  const { protocol } = stored.manifest;
  const tasks = resolveTaskSets(protocol, files);
  options.check(protocol, tasks.ids);
  const { root, now } = options;
  if (options.restore !== undefined) {
    options.onRestored?.(await openIncarnation(root, stored, options.restore, now));
  }
  const carry = () => prepareCarry(root, stored, tasks, now);
  const book = await openOrCreateBook(root, stored, files, now, carry);
  try {
    assertOrigin(book);
    assertPlan(book);
  } catch (error) {
    book.close();
    throw error;
  }
  return { stored, inspection, book, session: randomBytes(16).toString('hex'), process: ownIdentity() };
}

/** Hashes what one model runs on again: its weights, its tokenizer and the runner's sources. */
export async function inspectModel(
  manifest: Manifest,
  model: string,
  options: GateOptions,
): Promise<Inspection> {
  const names = new Set([`weights/${model}`, `tokenizer/${model}`]);
  const bindings = manifest.bindings.filter(({ name }) => names.has(name) || name.startsWith('runner/'));
  return inspect({ ...manifest, bindings }, options);
}

/** The entry that opens a session. */
export function gatePassed(
  { session, process: identity, inspection, book }: Admission,
  selection: Readonly<Record<string, string | number>>,
  heartbeatSeconds: number,
): DraftOf<'gate.passed'> {
  const { files, bytes } = inspection;
  const host = { node: hostname(), platform: process.platform, arch: process.arch, ...slurmJob() };
  return {
    type: 'gate.passed',
    session,
    manifest: book.manifestDigest,
    files,
    bytes,
    process: identity,
    host,
    heartbeat_s: heartbeatSeconds,
    selection: { ...selection },
  };
}

/** The job that Slurm runs this process in; its numbers never begin with a zero. */
function slurmJob(): { readonly slurm_job?: string } {
  const job = process.env.SLURM_JOB_ID;
  return job !== undefined && /^[1-9]\d{0,9}$/.test(job) ? { slurm_job: job } : {};
}

async function load({ root, manifest }: GateOptions): Promise<StoredManifest> {
  try {
    return await loadManifest(root, manifest);
  } catch (error) {
    const altered =
      error instanceof BoundbookError && (error.code === 'MANIFEST_ALTERED' || error.code === 'FILE_EMPTY');
    throw altered ? alteredManifestError(error) : error;
  }
}

function inspect(manifest: Manifest, { root, signal, product, onHash }: GateOptions): Promise<Inspection> {
  return inspectHost(manifest, {
    root,
    signal,
    ...(product === undefined ? {} : { product }),
    ...(onHash === undefined ? {} : { onProgress: onHash }),
  });
}

async function recordRefusal(
  stored: StoredManifest,
  mismatches: readonly Mismatch[],
  { root, now }: GateOptions,
): Promise<void> {
  if (!(await exists(join(ledgerFolder(root, stored.file), LEDGER_FILE)))) return;
  let book: Book<LedgerStore>;
  try {
    book = await openBook(root, stored, 'write', now);
  } catch {
    // The gate refuses in any case; a ledger that cannot take the refusal is not touched.
    return;
  }
  try {
    book.store.append([
      {
        type: 'gate.refused',
        manifest: stored.digest,
        mismatches: mismatches.slice(0, LISTED).map(shortened),
        total: mismatches.length,
      },
    ]);
  } finally {
    book.close();
  }
}

/** A hundred mismatches with hostile file names must still fit into one entry. */
function shortened({ binding, path, expected, actual, reason }: Mismatch): Mismatch {
  const cut = (text: string, length: number) => text.slice(0, length).toWellFormed();
  return { binding: cut(binding, 80), path: cut(path, 120), expected, actual, reason: cut(reason, 120) };
}

/** @throws {BoundbookError} GATE_REFUSED when a file changed after it was hashed. */
async function boundTaskFiles(
  manifest: Manifest,
  { paths }: Inspection,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const files = await readTaskFiles(manifest.protocol, ({ binding, path }) => paths.get(binding) ?? path);
  const changed: Mismatch[] = [];
  for (const [binding, bytes] of files) {
    const bound = bindingOf(manifest, binding);
    const actual = digestOf(bytes);
    if (bound === null || bound.digest === actual) continue;
    const reason = 'changed after it was hashed';
    changed.push({ binding, path: bound.path, expected: bound.digest, actual, reason });
  }
  if (changed.length > 0) throw gateError('the manifest', changed);
  return files;
}

/**
 * The ledger's own copies of what it was opened for must be whole before anything is added to it.
 *
 * @throws {BoundbookError} OBJECT_ALTERED, OBJECT_MISSING.
 */
function assertOrigin({ opened, store }: Book<LedgerStore>): void {
  for (const digest of [opened.manifest_object, ...Object.values(opened.task_objects)]) {
    store.getObject(digest);
  }
}

/** @throws {BoundbookError} GATE_REFUSED when the plan is not the one that was frozen. */
function assertPlan({ context }: Book<LedgerStore>): void {
  const actual = planDigest(context.protocol, context.taskIds);
  const { count, digest } = context.plan;
  if (actual.count === count && actual.digest === digest) return;
  const reason = `the bound protocol and tasks make ${actual.count} slots, not the planned ${count}`;
  throw gateError('the manifest', [
    { binding: 'plan', path: 'plan', expected: digest, actual: actual.digest, reason },
  ]);
}

/** The bytes of a bound file at its verified place. @throws {BoundbookError} GATE_REFUSED when it changed. */
export async function readBound(
  manifest: Manifest,
  inspection: Inspection,
  binding: string,
): Promise<Buffer | null> {
  const bound = bindingOf(manifest, binding);
  const path = inspection.paths.get(binding);
  if (bound === null || path === undefined) return null;
  const bytes = await readFileBounded(path, { maxBytes: 2 ** 30 });
  const actual = digestOf(bytes);
  if (actual === bound.digest) return bytes;
  const reason = 'changed after it was hashed';
  throw gateError('the manifest', [{ binding, path: bound.path, expected: bound.digest, actual, reason }]);
}
