import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { canonicalBytes } from '../core/canonical-json.js';
import type { Digest } from '../core/digest.js';
import { BoundbookError, systemCode } from '../core/errors.js';
import { readError } from '../core/files.js';
import { VERSION } from '../core/version.js';
import { bindingOf, type Manifest } from '../manifest/manifest.js';
import { loadManifest } from '../manifest/select.js';
import type { StoredManifest } from '../manifest/workspace.js';
import { resolveTaskSets, type TaskSets, taskFiles } from '../protocol/tasks.js';
import { BookState } from './book-state.js';
import type { DraftOf, EntryOf } from './entries/entry.js';
import type { LedgerFold } from './fold.js';
import type { CompactRange } from './merkle.js';
import type { Carry } from './new-ledger.js';
import { toObject } from './objects.js';
import { type PlanContext, PlanIndex } from './plan-index.js';
import { damageOf, type LedgerHead, LedgerReader } from './reader.js';
import { StateCache } from './state-cache.js';
import { LedgerStore } from './store.js';

export const LEDGER_FOLDER = 'ledger';

/** A manifest by what a person writes (see `loadManifest`), or as it was loaded. */
export type ManifestReference = string | StoredManifest | undefined;

/** What a ledger is and belongs to, before its entries are folded. */
export interface OpenLedger {
  readonly stored: StoredManifest;
  readonly manifest: Manifest;
  readonly manifestDigest: Digest;
  readonly folder: string;
  readonly reader: LedgerReader;
  readonly opened: EntryOf<'ledger.opened'>;
  readonly context: PlanContext;
  /** The tasks that the ledger was opened with: its own copy, equal to what the manifest binds. */
  readonly tasks: TaskSets;
}

/** Manifest, ledger and state, opened together; every entry is verified and lawful. */
export interface Book<Store extends LedgerReader = LedgerReader> extends Omit<OpenLedger, 'reader'> {
  readonly store: Store;
  /** Follows the ledger: in a book for writing it is up to date after every append and transaction. */
  readonly fold: LedgerFold;
  /** Of the entries that {@link fold} has taken. */
  readonly head: () => LedgerHead;
  /** A copy of the tree over those entries. */
  readonly tree: () => CompactRange;
  readonly close: () => void;
}

/** Which refusal a foreign ledger is: of a reader (exit 4), or of the gate before a run (exit 3). */
type ForeignCode = 'LEDGER_FOREIGN' | 'GATE_REFUSED';

/** The folder of a manifest's one ledger: `ledger/<manifest file name without .json>`. */
export function ledgerFolder(root: string, manifestFile: string): string {
  return join(root, LEDGER_FOLDER, basename(manifestFile).replace(/\.json$/, ''));
}

/**
 * Opens a manifest's ledger without judging its entries. For the audit, which lists what is wrong with them.
 *
 * @param anchored false: a ledger that is shorter than its anchor is opened as well
 * @throws {BoundbookError} as `loadManifest` and `LedgerReader.open`; LEDGER_FOREIGN (for a run GATE_REFUSED) when it
 * belongs to another manifest or is not the only one; LEDGER_DAMAGED, OBJECT_MISSING, OBJECT_ALTERED, TASKS_INVALID.
 */
export async function openLedger(
  root: string,
  reference: ManifestReference,
  foreign: ForeignCode = 'LEDGER_FOREIGN',
  anchored = true,
): Promise<OpenLedger> {
  const stored = typeof reference === 'object' ? reference : await loadManifest(root, reference);
  const { manifest, digest } = stored;
  const plan = assertPlan(stored);
  const folder = ledgerFolder(root, stored.file);
  const reader = LedgerReader.open(folder, anchored);
  try {
    const opened = assertBelongsTo(reader, digest, foreign);
    await assertOnlyLedger(root, folder, digest, foreign);
    const tasks = resolveTaskSets(manifest.protocol, taskBytes(manifest, opened, reader));
    const context: PlanContext = { manifest: digest, protocol: manifest.protocol, taskIds: tasks.ids, plan };
    const { count } = new PlanIndex(context.protocol, context.taskIds);
    if (count !== plan.count) {
      throw damageOf(reader.file, {
        seq: 0,
        what: `its tasks make ${count} slots, not the planned ${plan.count}`,
      });
    }
    return { stored, manifest, manifestDigest: digest, folder, reader, opened, context, tasks };
  } catch (error) {
    reader.close();
    throw error;
  }
}

/**
 * Opens a manifest's ledger and folds all of its entries.
 *
 * @param now needed for writing: the clock of new entries
 * @throws {BoundbookError} as {@link openLedger} and `LedgerStore.openWriter`; LEDGER_DAMAGED with `{seq, what}` at the
 * first entry that breaks the chain or a law. A foreign ledger is LEDGER_FOREIGN for reading and GATE_REFUSED for
 * writing.
 */
export function openBook(root: string, reference: ManifestReference, mode: 'read'): Promise<Book>;
export function openBook(
  root: string,
  reference: ManifestReference,
  mode: 'write',
  now: () => string,
): Promise<Book<LedgerStore>>;
export async function openBook(
  root: string,
  reference: ManifestReference,
  mode: 'read' | 'write',
  now: () => string = () => new Date().toISOString(),
): Promise<Book | Book<LedgerStore>> {
  const foreign = mode === 'read' ? 'LEDGER_FOREIGN' : 'GATE_REFUSED';
  const { reader, ...ledger } = await openLedger(root, reference, foreign);
  if (mode === 'write') return openWriter(ledger, reader, now);
  const state = BookState.empty(ledger.context);
  try {
    for (const record of reader.entries()) state.take(record, reader.file);
  } catch (error) {
    reader.close();
    throw error;
  }
  return toBook(ledger, reader, state);
}

/**
 * Makes a manifest's ledger, with the manifest and the task files as its first objects, and opens it for writing. One
 * that is there already is opened instead.
 *
 * @param files the bytes of every task file, by binding name
 * @param carry asked for a new ledger of an amended plan: what it takes over
 * @throws {BoundbookError} as {@link openBook}; GATE_REFUSED when a task file is not the bound one, the manifest has no
 * plan yet, or the clock lies before it; DISK_FULL, FILE_UNWRITABLE.
 */
export async function openOrCreateBook(
  root: string,
  stored: StoredManifest,
  files: ReadonlyMap<string, Uint8Array>,
  now: () => string,
  carry?: () => Promise<Carry | null>,
): Promise<Book<LedgerStore>> {
  try {
    return await openBook(root, stored, 'write', now);
  } catch (error) {
    if (!(error instanceof BoundbookError) || error.code !== 'LEDGER_NOT_FOUND') throw error;
  }
  if (carry === undefined && stored.manifest.supersedes !== null)
    throw new BoundbookError('INTERNAL', 'an amended plan was to be opened without what it carries');
  await createLedger(root, stored, files, now, (await carry?.()) ?? null);
  return openBook(root, stored, 'write', now);
}

async function createLedger(
  root: string,
  stored: StoredManifest,
  files: ReadonlyMap<string, Uint8Array>,
  now: () => string,
  carry: Carry | null,
): Promise<void> {
  const plan = assertPlan(stored);
  const folder = ledgerFolder(root, stored.file);
  await assertOnlyLedger(root, folder, stored.digest, 'GATE_REFUSED');
  assertClock(stored, now());
  // A manifest file is the canonical form of its content; reading it has proved that.
  const manifestObject = toObject(canonicalBytes(stored.manifest));
  const tasks = taskFiles(stored.manifest.protocol).map(({ binding }) => {
    const object = toObject(files.get(binding) ?? new Uint8Array());
    assertBound(stored.manifest, binding, object.digest);
    return { binding, object };
  });
  const draft: DraftOf<'ledger.opened'> = {
    type: 'ledger.opened',
    ledger: randomBytes(16).toString('hex'),
    incarnation: 1,
    carries: carry?.state ?? null,
    restored: null,
    manifest: stored.digest,
    manifest_object: manifestObject.digest,
    plan: { ...plan },
    task_objects: Object.fromEntries(tasks.map(({ binding, object }) => [binding, object.digest])),
    tool: { name: 'boundbook', version: VERSION },
  };
  const objects = [manifestObject, ...tasks.map(({ object }) => object)];
  try {
    const opening = { draft, objects, carried: carry?.drafts ?? [] };
    (await LedgerStore.create(folder, opening, { now })).close();
  } catch (error) {
    // Another process was faster by a moment, with the same manifest.
    if (!(error instanceof BoundbookError) || error.code !== 'FILE_EXISTS') throw error;
  }
}

/**
 * Checks that a ledger was opened for a manifest.
 *
 * @returns its first entry
 * @throws {BoundbookError} LEDGER_FOREIGN or GATE_REFUSED, as asked for, naming both manifests; LEDGER_DAMAGED when the
 * first entry is no opening.
 */
export function assertBelongsTo(
  reader: LedgerReader,
  manifest: Digest,
  code: ForeignCode,
): EntryOf<'ledger.opened'> {
  const opened = openingOf(reader);
  if (opened === null)
    throw damageOf(reader.file, { seq: 0, what: 'it does not say what the ledger belongs to' });
  if (opened.manifest !== manifest) {
    throw new BoundbookError(code, `${reader.file} belongs to another manifest`, {
      hint: 'A ledger belongs to one manifest for ever. Put each ledger back into the folder that carries its name.',
      evidence: { binding: 'ledger', expected: manifest, actual: opened.manifest },
    });
  }
  return opened;
}

/** @throws {BoundbookError} when another folder of the workspace holds a ledger of the same manifest. */
async function assertOnlyLedger(
  root: string,
  folder: string,
  manifest: Digest,
  code: ForeignCode,
): Promise<void> {
  for (const name of await subfolders(join(root, LEDGER_FOLDER))) {
    const other = join(root, LEDGER_FOLDER, name);
    if (other === folder || manifestOf(other) !== manifest) continue;
    throw new BoundbookError(code, `${other} is a second ledger of the same manifest`, {
      hint: 'One of the two is a copy or was made elsewhere. Keep the one whose head is known, outside this folder the other.',
      evidence: { manifest, ledgers: [basename(folder), name] },
    });
  }
}

async function subfolders(folder: string): Promise<readonly string[]> {
  try {
    const found = await readdir(folder, { withFileTypes: true });
    return found.flatMap((item) => (item.isDirectory() ? [item.name] : [])).sort();
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw readError(folder, error);
  }
}

/** The manifest of a ledger that may be anything: one that cannot be read is nobody's second ledger. */
function manifestOf(folder: string): Digest | null {
  let reader: LedgerReader | undefined;
  try {
    reader = LedgerReader.open(folder);
    return openingOf(reader)?.manifest ?? null;
  } catch {
    return null;
  } finally {
    reader?.close();
  }
}

function openingOf(reader: LedgerReader): EntryOf<'ledger.opened'> | null {
  for (const { entry } of reader.entries()) return entry.type === 'ledger.opened' ? entry : null;
  return null;
}

function assertPlan({ manifest, file }: StoredManifest): NonNullable<Manifest['plan']> {
  if (manifest.plan !== null) return manifest.plan;
  throw new BoundbookError('GATE_REFUSED', `${file} has no plan yet: a task file is not bound`, {
    hint: 'Put the task files in place and bind them with `boundbook bind`.',
    evidence: { pending: [...manifest.pending] },
  });
}

/** A ledger that says it is older than its plan would contradict the plan for ever. */
function assertClock({ manifest, file }: StoredManifest, time: string): void {
  if (Date.parse(time) >= Date.parse(manifest.created)) return;
  throw new BoundbookError('GATE_REFUSED', `the clock says ${time}, before ${file} was frozen`, {
    hint: 'Set the clock of this host right. If it was wrong when the plan was frozen, freeze a new revision.',
    evidence: { binding: 'clock', expected: `not before ${manifest.created}`, actual: time },
  });
}

function assertBound(manifest: Manifest, binding: string, actual: Digest): void {
  const expected = bindingOf(manifest, binding)?.digest ?? null;
  if (expected === actual) return;
  throw new BoundbookError('GATE_REFUSED', `${binding} is not the task file that the manifest binds`, {
    hint: 'Restore the bound file. Other tasks are another plan.',
    evidence: { binding, expected, actual },
  });
}

function taskBytes(
  manifest: Manifest,
  opened: EntryOf<'ledger.opened'>,
  reader: LedgerReader,
): ReadonlyMap<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  for (const { binding } of taskFiles(manifest.protocol)) {
    const bound = bindingOf(manifest, binding)?.digest;
    const kept = opened.task_objects[binding];
    if (kept === undefined || kept !== bound) {
      throw damageOf(reader.file, {
        seq: 0,
        what: `it names ${kept ?? 'nothing'} as ${binding}, bound is ${bound ?? 'nothing'}`,
      });
    }
    files.set(binding, reader.getObject(kept));
  }
  return files;
}

/** Only what the state cache does not know is verified and folded. */
function openWriter(
  ledger: Omit<OpenLedger, 'reader'>,
  reader: LedgerReader,
  now: () => string,
): Book<LedgerStore> {
  const cache = new StateCache(ledger.folder);
  const state = cache.load(ledger.context, reader) ?? BookState.empty(ledger.context);
  const { file } = reader;
  reader.close();
  try {
    const store = LedgerStore.openWriter(ledger.folder, {
      now,
      after: state.tail,
      follow: (record) => state.take(record, file),
      committed: (records) => cache.committed(records, state, store),
    });
    return toBook(ledger, store, state, () => cache.close(store.isUsable ? state : null, store));
  } catch (error) {
    cache.close(null, reader);
    throw error;
  }
}

function toBook<Store extends LedgerReader>(
  ledger: Omit<OpenLedger, 'reader'>,
  store: Store,
  state: BookState,
  beforeClose: () => void = () => undefined,
): Book<Store> {
  return {
    ...ledger,
    store,
    fold: state.fold,
    head: () => state.head(),
    tree: () => state.range.clone(),
    close: () => {
      beforeClose();
      store.close();
    },
  };
}
