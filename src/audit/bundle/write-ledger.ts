import { canonicalBytes } from '../../core/canonical-json.js';
import { type Digest, hexOf } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import type { LedgerRecord } from '../../ledger/chain.js';
import { type Mention, mentionsOf } from '../../ledger/mentions.js';
import { CompactRange } from '../../ledger/merkle.js';
import type { LedgerObject } from '../../ledger/objects.js';
import type { TaskIds } from '../../protocol/tasks.js';
import { DigestTable } from '../digest-table.js';
import type { BundleFolder } from './bundle-folder.js';
import type { HashedFile } from './hashed-file.js';
import { ENTRIES_FILE, LEDGER_PART, PACK_FILE, SQLITE_FILE, TASK_IDS_FILE } from './layout.js';
import { formatRecordHeader } from './pack-format.js';
import type { Redaction } from './redaction.js';
import { SqliteCopy } from './sqlite-copy.js';

/** A ledger as it is written into a bundle. */
export interface LedgerContent {
  /** Every entry, verified, in order. */
  readonly records: Iterable<LedgerRecord>;
  /** The report schemas that its manifest binds, by binding name. */
  readonly schemas: readonly LedgerObject[];
  readonly taskIds: TaskIds;
  /** The bytes of an object, checked. @throws {BoundbookError} OBJECT_MISSING, OBJECT_ALTERED. */
  readonly getObject: (digest: Digest) => Uint8Array;
}

export interface WrittenLedger {
  readonly id: string;
  readonly size: number;
  readonly leaf: string;
  readonly root: string;
  /** Records in the pack. */
  readonly objects: number;
}

/** Writes the entries and the objects of a ledger, in memory that grows with the number of objects alone. */
export function writeLedger(
  folder: BundleFolder,
  part: string,
  content: LedgerContent,
  redaction: Redaction | null,
): WrittenLedger {
  const sqlitePath = `${part}/${SQLITE_FILE}`;
  const sqlite = part === LEDGER_PART ? new SqliteCopy(folder.placeFor(sqlitePath)) : null;
  try {
    const written = writeParts(folder, part, content, redaction, (record) => sqlite?.add(record));
    if (sqlite !== null) folder.adopt(sqlitePath, sqlite.finish());
    return written;
  } finally {
    sqlite?.abandon();
  }
}

function writeParts(
  folder: BundleFolder,
  part: string,
  content: LedgerContent,
  redaction: Redaction | null,
  also: (record: LedgerRecord) => void,
): WrittenLedger {
  const entriesPath = `${part}/${ENTRIES_FILE}`;
  const packPath = `${part}/${PACK_FILE}`;
  const entries = folder.create(entriesPath);
  const pack = new PackWriter(folder.create(packPath), content.getObject, redaction);
  for (const schema of content.schemas) pack.keep(schema);
  const range = new CompactRange();
  let id: string | null = null;
  let leaf: Buffer | null = null;
  const redactedSets: string[] = [];
  for (const record of content.records) {
    const { entry, body } = record;
    entries.write(body);
    entries.write('\n');
    also(record);
    range.append(record.leaf);
    leaf = record.leaf;
    for (const mention of mentionsOf(entry)) pack.mention(mention);
    if (entry.type !== 'ledger.opened' || id !== null) continue;
    id = entry.ledger;
    for (const [binding, digest] of Object.entries(entry.task_objects)) {
      if (pack.isRedacted(digest)) redactedSets.push(binding.replace(/^tasks\//, ''));
    }
  }
  folder.close(entriesPath, entries);
  folder.close(packPath, pack.file);
  if (redactedSets.length > 0) {
    const ids = redactedSets.map((set) => [set, [...(content.taskIds.get(set) ?? [])]] as const);
    folder.put(`${part}/${TASK_IDS_FILE}`, canonicalBytes(Object.fromEntries(ids)));
  }
  if (id === null || leaf === null) throw new BoundbookError('INTERNAL', 'a ledger without its first entry');
  const root = range.root().toString('hex');
  return { id, size: range.size, leaf: leaf.toString('hex'), root, objects: pack.objects };
}

const KEPT = 0;
const REDACTED = 1;

class PackWriter {
  readonly file: HashedFile;
  readonly #getObject: (digest: Digest) => Uint8Array;
  readonly #redaction: Redaction | null;
  readonly #written = new DigestTable();

  constructor(file: HashedFile, getObject: (digest: Digest) => Uint8Array, redaction: Redaction | null) {
    this.file = file;
    this.#getObject = getObject;
    this.#redaction = redaction;
  }

  get objects(): number {
    return this.#written.size;
  }

  /** Writes an object at its first mention. */
  mention(mention: Mention): void {
    const { digest } = mention;
    if (this.#written.get(digest) !== undefined) return;
    const bytes = this.#getObject(digest);
    if (this.#redaction?.applies(mention) === true) {
      this.#written.set(digest, REDACTED);
      this.file.write(formatRecordHeader(this.#redaction.redact(digest, bytes)));
    } else this.keep({ digest, bytes });
  }

  keep({ digest, bytes }: LedgerObject): void {
    if (this.#written.get(digest) !== undefined) return;
    this.#written.set(digest, KEPT);
    this.file.write(formatRecordHeader({ hex: hexOf(digest), length: bytes.length, commitment: null }));
    this.file.write(bytes);
    this.file.write('\n');
  }

  isRedacted(digest: Digest): boolean {
    return this.#written.get(digest) === REDACTED;
  }
}
