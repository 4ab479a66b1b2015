import { basename, isAbsolute, join, sep } from 'node:path';
import { hexOf } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { exists, readFileBounded } from '../core/files.js';
import { spellingHint } from '../protocol/nearest.js';
import { readManifestFileName, saysManifest } from './manifest.js';
import {
  MANIFEST_FOLDER,
  MAX_MANIFEST_BYTES,
  parentsOf,
  readManifest,
  readWorkspace,
  type StoredManifest,
  type Workspace,
} from './workspace.js';

/**
 * Finds the manifest that a person means: a path, a file name in `manifests/`, a protocol's name (its latest revision,
 * most bound), `<name>.r<revision>`, or the beginning of a digest (8 digits or more). Without a selector: the one
 * protocol of the workspace.
 *
 * @throws {BoundbookError} MANIFEST_NOT_FOUND when there is none or no single one, listing the candidates;
 * or when the file named is no manifest at all; MANIFEST_ALTERED or FILE_EMPTY when what is meant, or may be meant, is damaged.
 */
export async function loadManifest(root: string, selector?: string): Promise<StoredManifest> {
  if (selector !== undefined) {
    const path = await pathOf(root, selector);
    if (path !== null) {
      await assertLikeManifest(path, selector);
      return readManifest(path);
    }
  }
  const workspace = await readWorkspace(root);
  const names = namesOf(workspace);
  if (selector === undefined) {
    const [name] = names;
    if (name === undefined) throw notFound('this workspace has no manifest', emptyHint(workspace));
    if (names.length > 1) throw ambiguous('several protocols have manifests here', workspace.manifests);
    return latest(workspace, name, null);
  }
  const [, name, revision] = /^(.*)\.r(\d{1,4})$/.exec(selector) ?? [];
  if (names.includes(selector)) return latest(workspace, selector, null);
  if (name !== undefined && names.includes(name)) return latest(workspace, name, Number(revision));
  return byDigest(workspace, selector, names);
}

/** A file that was never a manifest is a slip of the pen, not a manifest that differs. */
async function assertLikeManifest(path: string, selector: string): Promise<void> {
  if (readManifestFileName(basename(path)) !== null || !(await exists(path))) return;
  if (/\.ya?ml$/i.test(path)) {
    throw notFound(
      `${selector} is not a manifest`,
      `It looks like a protocol: \`boundbook freeze ${selector}\` writes its manifest.`,
    );
  }
  const bytes = await readFileBounded(path, { maxBytes: MAX_MANIFEST_BYTES, allowEmpty: true });
  if (bytes.length === 0 || saysManifest(bytes)) return;
  throw notFound(
    `${selector} is not a manifest`,
    'Its name is none of a manifest (NAME.rN.DIGEST.json) and its content does not say that it is one. Name a plan, a digest, or a file in manifests/.',
  );
}

async function pathOf(root: string, selector: string): Promise<string | null> {
  const named = readManifestFileName(basename(selector)) !== null;
  if (selector.includes('/') || selector.includes(sep) || (selector.endsWith('.json') && !named)) {
    return isAbsolute(selector) ? selector : join(root, selector);
  }
  if (!named) return null;
  const inFolder = join(root, MANIFEST_FOLDER, selector);
  return (await exists(inFolder)) || !(await exists(join(root, selector))) ? inFolder : join(root, selector);
}

/** The one manifest of a protocol's latest (or that) revision which no other builds on. */
function latest(workspace: Workspace, name: string, revision: number | null): StoredManifest {
  const damaged = workspace.damaged.find((one) => one.name === name);
  if (damaged !== undefined) throw damaged.error;
  const own = workspace.manifests.filter(({ manifest }) => manifest.name === name);
  const last = revision ?? Math.max(...own.map(({ manifest }) => manifest.revision));
  const parents = parentsOf(own);
  const leaves = own.filter(({ manifest, digest }) => manifest.revision === last && !parents.has(digest));
  const [leaf] = leaves;
  if (leaf === undefined) throw notFound(`${name} has no manifest of revision ${last}`, candidates(own));
  if (leaves.length > 1) throw ambiguous(`${name} revision ${last} has several ends`, leaves);
  return leaf;
}

function byDigest(workspace: Workspace, selector: string, names: readonly string[]): StoredManifest {
  const hex = selector.replace(/^sha256:/, '').toLowerCase();
  if (!/^[0-9a-f]{8,64}$/.test(hex)) {
    throw notFound(`there is no manifest ${JSON.stringify(selector)}`, spellingHint(selector, names));
  }
  const matching = workspace.manifests.filter(({ digest }) => hexOf(digest).startsWith(hex));
  const [match] = matching;
  if (match !== undefined && matching.length === 1) return match;
  if (match !== undefined) throw ambiguous(`several digests begin with ${hex}`, matching);
  const damaged = workspace.damaged.find(({ file }) =>
    readManifestFileName(file)?.prefix.startsWith(hex.slice(0, 12)),
  );
  if (damaged !== undefined) throw damaged.error;
  throw notFound(`no manifest here has a digest that begins with ${hex}`, candidates(workspace.manifests));
}

function namesOf(workspace: Workspace): readonly string[] {
  const all = [...workspace.manifests.map(({ manifest }) => manifest), ...workspace.damaged];
  return [...new Set(all.map(({ name }) => name))].sort();
}

function emptyHint(workspace: Workspace): string {
  const [file] = workspace.unfinished;
  return file === undefined
    ? 'Freeze a protocol first: boundbook freeze <protocol>.'
    : `${MANIFEST_FOLDER}/${file} is left of an interrupted freeze; \`boundbook freeze\` says what to do with it.`;
}

function notFound(message: string, hint: string): BoundbookError {
  return new BoundbookError('MANIFEST_NOT_FOUND', message, { hint });
}

function ambiguous(message: string, among: readonly StoredManifest[]): BoundbookError {
  return new BoundbookError('MANIFEST_NOT_FOUND', message, {
    hint: 'Name one of them by its file or digest.',
    faults: among.map(({ file, manifest, digest }) => ({
      where: file,
      message: `${digest}, sequence ${manifest.sequence}, ${manifest.bindings.length} bindings`,
    })),
    evidence: { candidates: among.map(({ file }) => file) },
  });
}

function candidates(among: readonly StoredManifest[]): string {
  return among.length === 0 ? 'There is none.' : `There are: ${among.map(({ file }) => file).join(', ')}.`;
}
