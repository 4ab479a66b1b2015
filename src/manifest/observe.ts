import type { Digest } from '../core/digest.js';
import type { Fault } from '../core/errors.js';
import { digestFiles, type HashOptions, type HashResult } from './hash-pool.js';
import { currentStamp, type FileStamp, stampDifference } from './stamp.js';
import { type Found, type FoundFile, walk } from './walk.js';
import { pointerFaults, weightFaults } from './weights.js';

/** What a binding holds, which decides the rules for it. */
export type Content = 'weights' | 'tokenizer' | 'tasks' | 'schema' | 'source' | 'product';

/** A place to be hashed. */
export interface BindingRequest {
  /** The binding's name; `weights/M@42`. */
  readonly name: string;
  /** As the protocol writes it; what manifests and messages show. */
  readonly path: string;
  readonly absolute: string;
  readonly shape: 'file' | 'folder' | 'either';
  readonly content: Content;
}

export interface ObservedFile extends FoundFile {
  /** null when it could not be hashed; a fault says why. */
  readonly digest: Digest | null;
}

/** What lies on this host where a binding is expected. */
export interface Observed {
  readonly request: BindingRequest;
  readonly shape: Found['shape'];
  /** Absolute path, folders above resolved. */
  readonly root: string;
  readonly files: readonly ObservedFile[];
  readonly faults: readonly Fault[];
}

/** How faults and mismatches name a file of a binding. */
export function shownPath(request: Pick<BindingRequest, 'path'>, path: string): string {
  return path === '' ? request.path : `${request.path}/${path}`;
}

/** The walk of one request, without hashing. */
export function walkRequest(request: BindingRequest): Promise<Found> {
  const { path, absolute, shape, content } = request;
  return walk({ shown: path, absolute, shape, refuseEmptyFolders: content !== 'product' });
}

/**
 * Lists, hashes and judges all requested places, all files through one pool of threads; a file that several bindings
 * share is read once. Never throws on what the files are: see `faults`.
 *
 * @throws {BoundbookError} STOPPED when the signal aborts.
 */
export async function observe(
  requests: readonly BindingRequest[],
  options: HashOptions = {},
): Promise<readonly Observed[]> {
  const found: Found[] = [];
  for (const request of requests) found.push(await walkRequest(request));
  const digests = await hashOnce(
    found.flatMap((one) => one.files),
    options,
  );
  const observed: Observed[] = [];
  for (const [i, request] of requests.entries()) {
    const one = found[i];
    if (one !== undefined) observed.push(await judge(request, one, digests));
  }
  return observed;
}

async function hashOnce(
  files: readonly FoundFile[],
  options: HashOptions,
): Promise<ReadonlyMap<string, HashResult>> {
  const unique = [...new Map(files.map((file) => [file.absolute, file])).values()];
  const jobs = unique.map(({ absolute, stamp }) => ({ absolute, size: stamp.size }));
  const results = await digestFiles(jobs, options);
  return new Map(results.map((result, i) => [jobs[i]?.absolute ?? '', result]));
}

async function judge(
  request: BindingRequest,
  found: Found,
  digests: ReadonlyMap<string, HashResult>,
): Promise<Observed> {
  const where = (path: string): string => shownPath(request, path);
  const faults = [...found.faults];
  const files = found.files.map((file): ObservedFile => {
    const result = digests.get(file.absolute);
    const fault = hashFault(where(file.path), file, result);
    if (fault !== null) faults.push(fault);
    return {
      ...file,
      digest: fault === null && result !== undefined && 'digest' in result ? result.digest : null,
    };
  });
  faults.push(...(await contentFaults(request, found.shape, files, where)));
  // Judging took time, and so did the files after this one: what was hashed must still be what is there (F-33).
  for (const file of files) {
    if (file.digest === null) continue;
    const now = currentStamp(file.absolute);
    const difference = now === null ? ['existence'] : stampDifference(file.stamp, now);
    if (difference.length > 0) faults.push(changed(where(file.path), difference));
  }
  return { request, shape: found.shape, root: found.root, files, faults };
}

function hashFault(where: string, file: FoundFile, result: HashResult | undefined): Fault | null {
  if (result === undefined || 'error' in result) {
    const code = result?.error ?? 'not hashed';
    return {
      where,
      message: `cannot be read (${code})`,
      hint: 'Check the disk and the rights of this user.',
    };
  }
  const difference = new Set([
    ...stampDifference(file.stamp, result.before),
    ...stampDifference(result.before, result.after),
    ...(result.bytes === file.stamp.size ? [] : ['size']),
  ]);
  if (difference.size > 0) return changed(where, [...difference]);
  // In a hub cache the blob of a large file is named by its SHA-256 (F-41).
  if (file.blob !== null && /^[0-9a-f]{64}$/.test(file.blob) && result.digest !== `sha256:${file.blob}`) {
    return {
      where,
      message: `has the digest ${result.digest}, but its blob is named ${file.blob}`,
      hint: 'The download is damaged; remove the blob and fetch it again.',
    };
  }
  return null;
}

function changed(where: string, difference: readonly string[]): Fault {
  const message = `changed while it was read (${difference.join(', ')})`;
  return { where, message, hint: 'Let nothing write there, and run the command again.' };
}

async function contentFaults(
  request: BindingRequest,
  shape: Found['shape'],
  files: readonly ObservedFile[],
  where: (path: string) => string,
): Promise<readonly Fault[]> {
  const readable = files.filter((file) => file.digest !== null).map(treeFile);
  if (request.content === 'weights') return weightFaults(readable, where);
  const [file] = readable;
  if (shape !== 'file' || file === undefined || request.content === 'source') return [];
  if (file.size === 0) {
    return [
      { where: where(''), message: 'has zero bytes', hint: 'The copy was interrupted; copy it again.' },
    ];
  }
  return pointerFaults(file, where);
}

function treeFile(file: { path: string; absolute: string; stamp: FileStamp }): {
  path: string;
  absolute: string;
  size: number;
} {
  return { path: file.path, absolute: file.absolute, size: file.stamp.size };
}
