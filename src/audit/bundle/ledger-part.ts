import { z } from 'zod';
import { canonicalBytes } from '../../core/canonical-json.js';
import type { Digest } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { parseStrictJson } from '../../core/strict-json.js';
import { decodeEntry } from '../../ledger/codec.js';
import type { EntryOf } from '../../ledger/entries/entry.js';
import type { IdentifiedManifest } from '../../manifest/manifest.js';
import { type Manifest, parseManifest } from '../../manifest/manifest.js';
import { Findings } from '../finding.js';
import type { Found, ObjectShelf, ObjectSource } from '../objects.js';
import type { LedgerSource } from '../row-source.js';
import type { Disclosure } from './disclosure.js';
import { EntriesFile } from './entries-file.js';
import type { BundleFiles } from './files.js';
import { ENTRIES_FILE, PACK_FILE, TASK_IDS_FILE } from './layout.js';
import { PackObjects } from './pack-objects.js';
import { readWhole } from './region.js';

const MAX_TASK_IDS_BYTES = 1024 * 1024 * 1024;
const taskIdsSchema = z.record(z.string(), z.array(z.string()));

/** One ledger of a bundle: `ledger`, or `predecessors/<id>`. */
export class LedgerPart implements LedgerSource {
  readonly part: string;
  readonly objects: ObjectSource;
  readonly #files: BundleFiles;
  readonly #findings: Findings;
  readonly #entries: EntriesFile;
  readonly #pack: PackObjects | null;
  #taskIds: ReadonlyMap<string, readonly string[]> | null = null;

  /**
   * @throws {BoundbookError} BUNDLE_INVALID when it has no entries; FILE_UNREADABLE and the like.
   */
  constructor(files: BundleFiles, part: string, findings: Findings, disclosure: Disclosure | null) {
    this.part = part;
    this.#files = files;
    this.#findings = findings;
    const entries = `${part}/${ENTRIES_FILE}`;
    if (!files.sizes.has(entries)) {
      throw new BoundbookError('BUNDLE_INVALID', `the bundle has no ${entries}`, {
        hint: 'Get it again from its sender: there is nothing to audit without the entries.',
      });
    }
    this.#entries = new EntriesFile(files.open(entries), findings);
    this.#pack = openPack(files, part, findings, disclosure);
    this.objects = this.#pack ?? NOTHING;
  }

  rows(from?: number) {
    return this.#entries.rows(from);
  }

  /** Reads the schemas that lead the pack. To be called once, before any object is taken. */
  schemas(manifest: Manifest): ReadonlyMap<string, Uint8Array> {
    const found = new Map<string, Uint8Array>();
    const byDigest = new Map<Digest, Buffer | null>();
    for (const { name, digest } of manifest.bindings) {
      if (!name.startsWith('report-schema/')) continue;
      if (!byDigest.has(digest)) byDigest.set(digest, this.#schema(name, digest));
      const bytes = byDigest.get(digest) ?? null;
      if (bytes !== null) found.set(name, bytes);
    }
    return found;
  }

  /** The next schema of the pack; null when it is not there or has other bytes, which is a finding. */
  #schema(name: string, digest: Digest): Buffer | null {
    const where = { file: `${this.part}/${PACK_FILE}`, object: digest };
    try {
      const bytes = this.#pack?.lead(digest) ?? null;
      if (bytes !== null) return bytes;
      const message = `the pack does not begin with ${name}`;
      this.#findings.add({ code: 'OBJECT_MISSING', where, message });
    } catch (error) {
      if (!(error instanceof BoundbookError) || error.code !== 'OBJECT_ALTERED') throw error;
      this.#findings.add({ code: 'OBJECT_ALTERED', where, message: error.message });
    }
    return null;
  }

  /** The ids of redacted task files, as the bundle states them; what is wrong with their form is a finding. */
  taskIds(): ReadonlyMap<string, readonly string[]> {
    this.#taskIds ??= this.#readTaskIds();
    return this.#taskIds;
  }

  #readTaskIds(): ReadonlyMap<string, readonly string[]> {
    const path = `${this.part}/${TASK_IDS_FILE}`;
    if (!this.#files.sizes.has(path)) return new Map();
    try {
      const bytes = readWhole(this.#files.open(path), MAX_TASK_IDS_BYTES);
      const ids = taskIdsSchema.safeParse(parseStrictJson(bytes, path));
      if (ids.success && canonicalBytes(ids.data).equals(bytes)) return new Map(Object.entries(ids.data));
      const message = 'it is not the canonical form of lists of task ids';
      this.#findings.add({ code: 'BUNDLE_FORM', where: { file: path }, message });
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      this.#findings.add({ code: 'BUNDLE_FORM', where: { file: path }, message: error.message });
    }
    return new Map();
  }

  /** The first entry, when it says what the ledger belongs to. */
  opening(): EntryOf<'ledger.opened'> | null {
    for (const { body } of this.#entries.rows()) {
      const decoded = decodeEntry(body);
      return decoded.ok && decoded.entry.type === 'ledger.opened' ? decoded.entry : null;
    }
    return null;
  }

  /** The manifest that the ledger keeps as an object; null when there is none that can be read. */
  keptManifest(): IdentifiedManifest | null {
    const opened = this.opening();
    const pack = openPack(this.#files, this.part, new Findings(), null);
    if (opened === null || pack === null) return null;
    try {
      const found = pack.take(opened.manifest_object);
      return found.state === 'here' ? parseManifest(found.bytes, 'the manifest in the ledger') : null;
    } catch (error) {
      if (error instanceof BoundbookError) return null;
      throw error;
    }
  }

  /** Judges what lies there beside what the entries asked for. */
  conclude(shelf: ObjectShelf): void {
    this.#pack?.conclude(shelf);
    this.#checkTaskIds(shelf);
  }

  /** Ids are stated of exactly the redacted task files. */
  #checkTaskIds(shelf: ObjectShelf): void {
    const due = Object.entries(this.opening()?.task_objects ?? {})
      .filter(([, digest]) => shelf.isRedacted(digest) || this.#pack?.isDisclosed(digest) === true)
      .map(([binding]) => binding.slice('tasks/'.length))
      .sort();
    const stated = [...this.taskIds().keys()].sort();
    if (stated.join('\0') === due.join('\0')) return;
    const message = `it states ids of ${stated.join(', ') || 'nothing'}; redacted are the files of ${due.join(', ') || 'nothing'}`;
    const where = { file: `${this.part}/${TASK_IDS_FILE}` };
    this.#findings.add({ code: 'BUNDLE_FORM', where, message });
  }

  /** Redacted records, once {@link conclude} was called. */
  get redacted(): number {
    return this.#pack?.redacted ?? 0;
  }
}

const NOTHING: ObjectSource = {
  take: (): Found => ({ state: 'missing' }),
  again(digest) {
    throw new BoundbookError('OBJECT_MISSING', `there is no object ${digest}`);
  },
};

function openPack(
  files: BundleFiles,
  part: string,
  findings: Findings,
  disclosure: Disclosure | null,
): PackObjects | null {
  const path = `${part}/${PACK_FILE}`;
  if (files.sizes.has(path)) return new PackObjects(files.open(path), findings, disclosure);
  findings.add({ code: 'BUNDLE_FORM', where: { file: path }, message: 'the bundle has no such file' });
  return null;
}
