import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { inForce, successorOf, supersededBy } from '../manifest/succession.js';
import type { StoredManifest } from '../manifest/workspace.js';
import { ledgerFolder } from './book.js';
import { decodeEntry } from './codec.js';
import type { Entry, EntryOf, EntryType } from './entries/entry.js';
import { LedgerReader } from './reader.js';

/** Whether a superseded plan's ledger says so: a crash can come between the new manifest and the entry (P22). */
export type Seal =
  | { readonly kind: 'no ledger' | 'unrecorded' | 'unreadable' }
  | { readonly kind: 'recorded'; readonly entry: number };

/** A revision in a chain of amendments. */
export interface RevisionStatus {
  readonly file: string;
  readonly digest: Digest;
  readonly revision: number;
}

export interface SuccessionStatus {
  /** The plans that it supersedes, the latest first. */
  readonly supersedes: readonly (RevisionStatus & { readonly seal: Seal })[];
  /** The manifest that follows in that chain and is not in the workspace. */
  readonly missing: Digest | null;
  /** The plan that is in force instead, and whether this one's ledger says so; null for a plan that is in force. */
  readonly superseded_by: (RevisionStatus & { readonly seal: Seal }) | null;
}

/** Where a plan stands among its revisions. @param all manifests of the workspace, by sequence */
export function successionStatus(
  root: string,
  stored: StoredManifest,
  all: readonly StoredManifest[],
): SuccessionStatus {
  const { plans, missing } = supersededBy(stored.manifest, all);
  const isSuperseded = successorOf(stored, all) !== null;
  return {
    supersedes: plans.map((plan) => ({ ...revisionOf(plan), seal: sealOf(root, plan) })),
    missing,
    superseded_by: isSuperseded ? { ...revisionOf(inForce(stored, all)), seal: sealOf(root, stored) } : null,
  };
}

function revisionOf({ file, digest, manifest }: StoredManifest): RevisionStatus {
  return { file, digest, revision: manifest.revision };
}

function sealOf(root: string, stored: StoredManifest): Seal {
  const found = findEntry(root, stored, 'amended');
  if (typeof found === 'string') return { kind: found };
  return found === null ? { kind: 'unrecorded' } : { kind: 'recorded', entry: found.seq };
}

/**
 * The first entry of a type in a manifest's ledger, without judging what comes before it; null when it has none.
 *
 * @returns `unreadable` for a ledger that cannot be read; its own status says what is wrong with it.
 */
export function findEntry<T extends EntryType>(
  root: string,
  { file }: Pick<StoredManifest, 'file'>,
  type: T,
): EntryOf<T> | null | 'no ledger' | 'unreadable' {
  const mark = Buffer.from(`"type":"${type}"`);
  const isSought = (entry: Entry): entry is EntryOf<T> => entry.type === type;
  let reader: LedgerReader | undefined;
  try {
    reader = LedgerReader.open(ledgerFolder(root, file));
    for (const { body } of reader.rows()) {
      const decoded = body.includes(mark) ? decodeEntry(body) : null;
      if (decoded?.ok === true && isSought(decoded.entry)) return decoded.entry;
    }
    return null;
  } catch (error) {
    if (!(error instanceof BoundbookError)) throw error;
    return error.code === 'LEDGER_NOT_FOUND' ? 'no ledger' : 'unreadable';
  } finally {
    reader?.close();
  }
}
