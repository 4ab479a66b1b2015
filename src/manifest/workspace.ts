import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Digest } from '../core/digest.js';
import { createFileDurableSync } from '../core/durable-sync.js';
import { BoundbookError, systemCode } from '../core/errors.js';
import { createFileDurable, readError, readFileBounded } from '../core/files.js';
import {
  type IdentifiedManifest,
  type Manifest,
  manifestFileName,
  parseManifest,
  readManifestFileName,
  type SealedManifest,
} from './manifest.js';

export const MANIFEST_FOLDER = 'manifests';
/** Some hundred thousand bound files; a hostile one must not fill the memory. */
export const MAX_MANIFEST_BYTES = 64 * 1024 * 1024;

export interface StoredManifest extends IdentifiedManifest {
  /** Its name in the folder. */
  readonly file: string;
  /** Absolute, or as it was given. */
  readonly path: string;
}

/** A file that has a manifest's name and is none. */
export interface DamagedManifest {
  readonly file: string;
  readonly name: string;
  readonly error: BoundbookError;
}

/** All that lies in the manifests folder of a workspace. */
export interface Workspace {
  /** By sequence, then digest. */
  readonly manifests: readonly StoredManifest[];
  readonly damaged: readonly DamagedManifest[];
  /** Temporary files of freezes that were interrupted, or are going on right now. */
  readonly unfinished: readonly string[];
}

/**
 * Reads all manifests of a workspace. Damaged ones are listed, not thrown, and never passed over as if they did not
 * exist. A folder that is not there holds none.
 *
 * @throws {BoundbookError} FILE_UNREADABLE, FILE_NOT_REGULAR when the folder can't be read.
 */
export async function readWorkspace(root: string): Promise<Workspace> {
  const folder = join(root, MANIFEST_FOLDER);
  const files = await readdir(folder).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    if (systemCode(error) === 'ENOTDIR') {
      throw new BoundbookError('FILE_NOT_REGULAR', `${folder} is not a folder`, {
        hint: 'Manifests are kept in a folder of that name; move away what is there.',
        cause: error,
      });
    }
    throw readError(folder, error);
  });
  const manifests: StoredManifest[] = [];
  const damaged: DamagedManifest[] = [];
  for (const file of files.sort()) {
    const parts = readManifestFileName(file);
    if (parts === null) continue;
    try {
      manifests.push(await readManifest(join(folder, file)));
    } catch (error) {
      if (!(error instanceof BoundbookError)) throw error;
      damaged.push({ file, name: parts.name, error });
    }
  }
  manifests.sort((a, b) => a.manifest.sequence - b.manifest.sequence || (a.digest < b.digest ? -1 : 1));
  return {
    manifests,
    damaged,
    unfinished: files.filter((file) => /^\..*\.json\.[0-9a-f]+\.tmp$/.test(file)),
  };
}

/**
 * Reads one manifest file.
 *
 * @throws {BoundbookError} MANIFEST_ALTERED, FILE_EMPTY, FILE_NOT_FOUND and the like.
 */
export async function readManifest(path: string): Promise<StoredManifest> {
  const bytes = await readFileBounded(path, { maxBytes: MAX_MANIFEST_BYTES, allowEmpty: true });
  const identified = parseManifest(bytes, path);
  return { ...identified, file: manifestFileName(identified), path };
}

/**
 * Writes a manifest under its name: exclusively, read-only, durable before this returns.
 *
 * @throws {BoundbookError} FILE_EXISTS, FILE_UNWRITABLE, DISK_FULL.
 */
export async function storeManifest(
  root: string,
  sealed: IdentifiedManifest & { readonly bytes: Uint8Array },
): Promise<StoredManifest> {
  const file = manifestFileName(sealed);
  const path = join(root, MANIFEST_FOLDER, file);
  await createFileDurable(path, sealed.bytes, 0o444);
  const { manifest, digest } = sealed;
  return { manifest, digest, file, path };
}

/** {@link storeManifest}, durable when it returns. */
export function storeManifestSync(root: string, sealed: SealedManifest): StoredManifest {
  const file = manifestFileName(sealed);
  const path = join(root, MANIFEST_FOLDER, file);
  createFileDurableSync(path, sealed.bytes, 0o444);
  const { manifest, digest } = sealed;
  return { manifest, digest, file, path };
}

/**
 * Throws when the folder is in a state in which nothing may be added: what can't be read may be the very plan that is
 * frozen again (F-95).
 *
 * @throws {BoundbookError} the error of the first damaged manifest; MANIFEST_INTERRUPTED.
 */
export function assertWhole(workspace: Workspace): void {
  const [damaged] = workspace.damaged;
  if (damaged !== undefined) throw damaged.error;
  const [file] = workspace.unfinished;
  if (file === undefined) return;
  throw new BoundbookError(
    'MANIFEST_INTERRUPTED',
    `${MANIFEST_FOLDER}/${file} is left of an interrupted freeze`,
    {
      hint: `If it is whole and its digest may be known to somebody, rename it to ${finalName(file)}; else remove it.`,
      evidence: { files: [...workspace.unfinished] },
    },
  );
}

function finalName(temporary: string): string {
  return temporary.replace(/^\./, '').replace(/\.[0-9a-f]+\.tmp$/, '');
}

/** The manifests that others of the workspace name as their parent. */
export function parentsOf(manifests: readonly { readonly manifest: Manifest }[]): ReadonlySet<Digest> {
  return new Set(manifests.flatMap(({ manifest }) => (manifest.parent === null ? [] : [manifest.parent])));
}
