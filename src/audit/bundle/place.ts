import { realpathSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { BoundbookError } from '../../core/errors.js';
import { LEDGER_FOLDER } from '../../ledger/book.js';
import { MANIFEST_FOLDER } from '../../manifest/workspace.js';

/**
 * Plans and ledgers lie in folders of their own; what is exported goes elsewhere.
 *
 * @throws {BoundbookError} USAGE for a path at any depth of one of them, links followed
 */
export function assertOutsideRecord(root: string, path: string): void {
  const [folder = ''] = relative(realpathOf(root), realpathOf(path)).split(sep);
  if (folder !== MANIFEST_FOLDER && folder !== LEDGER_FOLDER) return;
  throw new BoundbookError('USAGE', `${path} lies in ${folder}/, which is not for what is exported`, {
    hint: 'Name a place outside of the manifests and ledgers of the workspace.',
  });
}

/** Links followed as far as the path exists. */
function realpathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return dirname(path) === path ? path : join(realpathOf(dirname(path)), basename(path));
  }
}
