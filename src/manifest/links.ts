import type { BigIntStats } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';

/** Where a link of a model-hub cache leads, or why it is refused. */
export type LinkVerdict =
  | { readonly ok: true; readonly absolute: string; readonly stat: BigIntStats; readonly blob: string }
  | { readonly ok: false; readonly reason: string };

/**
 * Follows the one kind of link that is bound: `<cache>/snapshots/<revision>/…/file` to `<cache>/blobs/<name>`, written
 * exactly so, ending at a regular file. One step is taken and no more, so that loops end at once.
 *
 * @param link absolute path whose folders are real ones.
 */
export async function resolveHubLink(link: string): Promise<LinkVerdict> {
  const cache = cacheOf(link);
  if (cache === null) return refused('it lies in no model-hub cache (snapshots/<revision>/…)');
  const text = await readlink(link);
  const absolute = resolve(dirname(link), text);
  const blobs = join(cache, 'blobs');
  // Any other spelling could pass through a second link on its way.
  if (dirname(absolute) !== blobs || relative(dirname(link), absolute) !== text) {
    return refused(`it leads to ${JSON.stringify(text)}, not into the blobs of its own cache`);
  }
  const folder = await lstat(blobs).catch(() => null);
  if (folder?.isDirectory() !== true) return refused('the blobs folder of its cache is missing or a link');
  const stat = await lstat(absolute, { bigint: true }).catch(() => null);
  if (stat === null) return refused(`its blob ${basename(absolute)} is missing`);
  if (!stat.isFile()) return refused(`its blob ${basename(absolute)} is not a regular file`);
  return { ok: true, absolute, stat, blob: basename(absolute) };
}

/** The cache folder that a path inside `snapshots/<revision>/` belongs to. */
function cacheOf(path: string): string | null {
  const parts = path.split(sep);
  const at = parts.lastIndexOf('snapshots', parts.length - 3);
  return at < 1 ? null : parts.slice(0, at).join(sep) || sep;
}

function refused(reason: string): LinkVerdict {
  return { ok: false, reason };
}
