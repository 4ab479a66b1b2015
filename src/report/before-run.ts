import { LedgerFold } from '../ledger/fold.js';
import { EMPTY_ROOT } from '../ledger/merkle.js';
import { openHost, readBoundFile } from '../manifest/gather.js';
import { bindingOf, type IdentifiedManifest, type Manifest } from '../manifest/manifest.js';
import { locate, requiredBindings } from '../manifest/required.js';
import type { StoredManifest } from '../manifest/workspace.js';
import { resolveTaskSets } from '../protocol/tasks.js';
import { reportInput } from './input.js';
import type { ReportInput } from './report-input.js';

/**
 * What a report is made from before the first run: the plan, and no entry. The task files are read from the workspace,
 * since there is no ledger that keeps them.
 *
 * @param plan of the manifest, which must have one
 * @param superseded the plans that it supersedes, the latest first
 * @throws {BoundbookError} FILE_CHANGED when a task file is not the bound one; FILE_NOT_FOUND and the like.
 */
export async function beforeRunInput(
  root: string,
  { manifest, digest }: StoredManifest,
  plan: NonNullable<Manifest['plan']>,
  superseded: readonly IdentifiedManifest[] = [],
): Promise<ReportInput> {
  const { protocol } = manifest;
  const required = requiredBindings(protocol);
  const host = await openHost(root, required);
  const files = new Map<string, Uint8Array>();
  for (const one of required) {
    const binding = one.content === 'tasks' ? bindingOf(manifest, one.name) : null;
    if (binding !== null) files.set(one.name, await readBoundFile(binding, locate(one, host).absolute));
  }
  const taskIds = resolveTaskSets(protocol, files).ids;
  return reportInput({
    manifest,
    manifestDigest: digest,
    superseded,
    fold: new LedgerFold({ manifest: digest, protocol, taskIds, plan }),
    head: { size: 0, leaf: null, root: EMPTY_ROOT.toString('hex') },
    entries: [],
  });
}
