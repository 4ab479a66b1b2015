import type { Mismatch } from '../manifest/compare.js';
import { type BindingRequest, type Observed, shownPath, walkRequest } from '../manifest/observe.js';
import { type FileStamp, stampDifference } from '../manifest/stamp.js';

/** A binding as the gate left it. */
export interface WatchedBinding {
  readonly request: BindingRequest;
  readonly files: ReadonlyMap<string, { readonly absolute: string; readonly stamp: FileStamp }>;
}

export function watchedOf(observed: readonly Observed[]): readonly WatchedBinding[] {
  return observed.map(({ request, files }) => ({
    request,
    files: new Map(files.map(({ path, absolute, stamp }) => [path, { absolute, stamp }])),
  }));
}

/**
 * What was touched since the gate: files whose size, times or inode differ, that are gone, new, or reached by another
 * link. Reads no content, so it is cheap enough to repeat during a run (F-33); it can prove a change, never its absence.
 *
 * @returns mismatches whose `expected` and `actual` are sizes, since no digest was taken; empty: nothing was touched.
 */
export async function changedSince(watched: readonly WatchedBinding[]): Promise<readonly Mismatch[]> {
  const changes: Mismatch[] = [];
  for (const { request, files } of watched) {
    const { name } = request;
    const found = await walkRequest(request);
    const now = new Map(found.files.map((file) => [file.path, file]));
    const add = (path: string, before: FileStamp | null, after: FileStamp | null, reason: string): void => {
      const size = (stamp: FileStamp | null): string | null =>
        stamp === null ? null : `${stamp.size} bytes`;
      const shown = shownPath(request, path);
      changes.push({ binding: name, path: shown, expected: size(before), actual: size(after), reason });
    };
    for (const [path, before] of files) {
      const after = now.get(path);
      now.delete(path);
      if (after === undefined) {
        add(path, before.stamp, null, 'is gone since the gate');
        continue;
      }
      const difference = [
        ...stampDifference(before.stamp, after.stamp),
        ...(before.absolute === after.absolute ? [] : ['link']),
      ];
      if (difference.length > 0) {
        add(path, before.stamp, after.stamp, `was touched since the gate (${difference.join(', ')})`);
      }
    }
    for (const [path, after] of now) add(path, null, after.stamp, 'is new since the gate');
    for (const { where, message } of found.faults) {
      changes.push({ binding: name, path: where, expected: null, actual: null, reason: message });
    }
  }
  return changes;
}
