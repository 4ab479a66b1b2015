import { basename } from 'node:path';
import { canonicalBytes } from '../core/canonical-json.js';
import { type Digest, digestOf, hexOf } from '../core/digest.js';
import { BoundbookError, type Fault } from '../core/errors.js';
import type { JsonValue } from '../core/json.js';
import { parseStrictJson } from '../core/strict-json.js';
import { inconsistencies, pendingOf } from './consistency.js';
import { frozenCopy } from './frozen-copy.js';
import { type Binding, type Manifest, manifestSchema } from './schema.js';

export type { Binding, Manifest } from './schema.js';

/** A manifest with its identity: SHA-256 of its bytes. */
export interface IdentifiedManifest {
  /** Deeply frozen; its objects have no prototype. */
  readonly manifest: Manifest;
  readonly digest: Digest;
}

const FILE_NAME = /^([a-z0-9][a-z0-9._-]{0,63})\.r(\d{1,4})\.([0-9a-f]{12})\.json$/;

/** `<name>.r<revision>.<first 12 hex>.json` */
export function manifestFileName({ manifest, digest }: IdentifiedManifest): string {
  return `${manifest.name}.r${manifest.revision}.${hexOf(digest).slice(0, 12)}.json`;
}

/** The parts of a file name of the form of {@link manifestFileName}; null for any other name. */
export function readManifestFileName(
  file: string,
): { readonly name: string; readonly revision: number; readonly prefix: string } | null {
  const [, name, revision, prefix] = FILE_NAME.exec(file) ?? [];
  if (name === undefined || revision === undefined || prefix === undefined) return null;
  return { name, revision: Number(revision), prefix };
}

export interface SealedManifest extends IdentifiedManifest {
  readonly bytes: Buffer;
}

/** Fills in what is computed, and gives the manifest its bytes. */
export function sealManifest(draft: Omit<Manifest, 'pending' | 'execution_ready'>): SealedManifest {
  const pending = pendingOf(draft);
  const bytes = canonicalBytes({ ...draft, pending, execution_ready: pending.length === 0 });
  // Reading it back holds writer and reader to one form before anything is written.
  return { ...parseManifest(bytes, 'the new manifest'), bytes };
}

/** Whether a file says of itself that it is a manifest, altered or not. */
export function saysManifest(bytes: Uint8Array): boolean {
  return /"format"\s*:\s*"boundbook\/manifest\//.test(Buffer.from(bytes).toString('latin1'));
}

/**
 * Reads a manifest from its bytes, which must be its canonical form and nothing else. A name of the form of
 * {@link manifestFileName} must belong to these very bytes.
 *
 * @param name file name or path, for messages and for that check
 * @throws {BoundbookError} FILE_EMPTY for zero bytes; MANIFEST_ALTERED for everything else that is wrong.
 */
export function parseManifest(bytes: Uint8Array, name: string): IdentifiedManifest {
  if (bytes.length === 0) {
    throw new BoundbookError('FILE_EMPTY', `${name} is empty: it was frozen, and its content is lost`, {
      hint: 'Restore it from a copy. Do not freeze again: this plan exists, and its digest may be known.',
    });
  }
  const value = strictValue(bytes, name);
  const parsed = manifestSchema.safeParse(value);
  if (!parsed.success) {
    const faults = parsed.error.issues.map(
      (issue): Fault => ({ where: `/${issue.path.map(String).join('/')}`, message: issue.message }),
    );
    throw altered(name, 'it does not have the form of a manifest', { faults });
  }
  if (!canonicalBytes(value).equals(bytes))
    throw altered(name, 'its bytes are not the canonical form of its content');
  const faults = inconsistenciesOf(parsed.data, name);
  if (faults.length > 0) throw altered(name, 'its parts contradict each other', { faults });
  const identified = { manifest: frozenCopy(parsed.data), digest: digestOf(bytes) };
  const expected = manifestFileName(identified);
  if (readManifestFileName(basename(name)) !== null && basename(name) !== expected) {
    const evidence = { name: basename(name), digest: identified.digest };
    throw altered(name, `its bytes have the digest ${identified.digest}, not the one that its name carries`, {
      evidence,
    });
  }
  return identified;
}

/** The binding of that name, or null. */
export function bindingOf(manifest: Manifest, name: string): Binding | null {
  return manifest.bindings.find((binding) => binding.name === name) ?? null;
}

function strictValue(bytes: Uint8Array, name: string): JsonValue {
  try {
    return parseStrictJson(bytes, name);
  } catch (error) {
    if (error instanceof BoundbookError) throw altered(name, error.message, { cause: error });
    throw error;
  }
}

function inconsistenciesOf(manifest: Manifest, name: string): readonly Fault[] {
  try {
    return inconsistencies(manifest);
  } catch (error) {
    if (error instanceof BoundbookError) throw altered(name, error.message, { cause: error });
    throw error;
  }
}

function altered(
  name: string,
  reason: string,
  details: { faults?: readonly Fault[]; evidence?: JsonValue; cause?: unknown } = {},
): BoundbookError {
  return new BoundbookError('MANIFEST_ALTERED', `${name} is not a manifest as it was frozen: ${reason}`, {
    hint: 'Restore it from a copy whose digest is known; a manifest is never edited.',
    ...details,
  });
}
