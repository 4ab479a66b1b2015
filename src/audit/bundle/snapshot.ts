import type { Digest } from '../../core/digest.js';
import { digestOf } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { readFileBounded } from '../../core/files.js';
import { openLedger } from '../../ledger/book.js';
import type { LedgerRecord } from '../../ledger/chain.js';
import { LedgerFold } from '../../ledger/fold.js';
import { CompactRange } from '../../ledger/merkle.js';
import type { LedgerObject } from '../../ledger/objects.js';
import type { PlanContext } from '../../ledger/plan-index.js';
import type { LedgerHead } from '../../ledger/reader.js';
import { openHost } from '../../manifest/gather.js';
import { locate, requiredBindings } from '../../manifest/required.js';
import type { StoredManifest } from '../../manifest/workspace.js';
import { ObjectStream } from '../object-stream.js';
import { AuditReader } from '../reader.js';

const MAX_SCHEMA_BYTES = 16 * 1024 * 1024;

/** One state of a ledger, whatever a run appends meanwhile. */
export interface LedgerSnapshot {
  readonly stored: StoredManifest;
  readonly folder: string;
  readonly context: PlanContext;
  readonly fold: LedgerFold;
  readonly head: LedgerHead;
  /** The report schemas that the manifest binds, in the order of its bindings. */
  readonly schemas: readonly LedgerObject[];
  readonly records: () => Iterable<LedgerRecord>;
  /** Any object; quick for those that come in the order of the entries. @throws {BoundbookError} OBJECT_MISSING, OBJECT_ALTERED. */
  readonly getObject: (digest: Digest) => Buffer;
  readonly close: () => void;
}

/**
 * Opens a ledger as it is now, verified and folded. What the rules do not allow is no hindrance: whoever reads it judges
 * that. What cannot be read is.
 *
 * @throws {BoundbookError} as `openLedger`; LEDGER_DAMAGED at the first break of the chain, or when the ledger is shorter
 * than it was.
 */
export async function openSnapshot(root: string, stored: StoredManifest): Promise<LedgerSnapshot> {
  const { reader: opener, folder, context } = await openLedger(root, stored);
  opener.close();
  const schemas = await readSchemas(root, stored);
  const reader = AuditReader.open(folder);
  try {
    const [damage] = reader.damage;
    if (damage !== undefined) throw damage;
    const fold = new LedgerFold(context);
    const range = new CompactRange();
    let last: LedgerRecord | null = null;
    for (const record of reader.entries()) {
      fold.apply(record.entry);
      range.append(record.leaf);
      last = record;
    }
    const stream = new ObjectStream(reader, reader);
    return {
      stored,
      folder,
      context,
      fold,
      head: {
        size: range.size,
        leaf: last?.leaf.toString('hex') ?? null,
        root: range.root().toString('hex'),
        time: last?.entry.time ?? null,
      },
      schemas,
      records: () => reader.entries(),
      getObject: (digest) => stream.findObject(digest) ?? reader.getObject(digest),
      close: () => reader.close(),
    };
  } catch (error) {
    reader.close();
    throw error;
  }
}

/** @throws {BoundbookError} FILE_NOT_FOUND and the like; FILE_CHANGED for a schema that is not the bound one. */
async function readSchemas(root: string, { manifest }: StoredManifest): Promise<readonly LedgerObject[]> {
  const bound = manifest.bindings.filter(({ name }) => name.startsWith('report-schema/'));
  if (bound.length === 0) return [];
  const required = requiredBindings(manifest.protocol);
  const host = await openHost(root, required);
  const schemas: LedgerObject[] = [];
  for (const { name, path, digest } of bound) {
    const { absolute } = locate({ name, path, shape: 'file', content: 'schema' }, host);
    const bytes = await readFileBounded(absolute, { maxBytes: MAX_SCHEMA_BYTES });
    if (digestOf(bytes) !== digest) {
      throw new BoundbookError('FILE_CHANGED', `${path} is not the report schema that the manifest binds`, {
        hint: 'Restore the bound file; `boundbook verify` lists everything that differs.',
        evidence: { binding: name, expected: digest, actual: digestOf(bytes) },
      });
    }
    schemas.push({ digest, bytes });
  }
  return schemas;
}
