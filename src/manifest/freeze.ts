import { isAbsolute, join } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import { readFileBounded } from '../core/files.js';
import { MAX_PROTOCOL_BYTES, type ProtocolDocument, readProtocol } from '../protocol/read.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { bindingsOf, openHost, pathsOf, planOf } from './gather.js';
import type { HashOptions } from './hash-pool.js';
import { taskUse } from './lineage.js';
import { withWorkspaceLock } from './lock.js';
import { type SealedManifest, sealManifest } from './manifest.js';
import { observe } from './observe.js';
import { type Product, runningProduct } from './product.js';
import { locate, requiredBindings } from './required.js';
import { sameValue } from './same-value.js';
import { type Binding, MANIFEST_FORMAT, type Manifest } from './schema.js';
import {
  assertWhole,
  parentsOf,
  readWorkspace,
  type StoredManifest,
  storeManifest,
  type Workspace,
} from './workspace.js';

/** What freezing and binding need of the outside. */
export interface Surroundings extends HashOptions {
  /** The workspace. */
  readonly root: string;
  /** The time, RFC 3339, UTC. */
  readonly now: () => string;
  /** The running program; tests hand in another. */
  readonly product?: Product;
}

/** The parts of a manifest that follow from its place in the workspace, which is known only under the lock. */
type Placed = 'sequence' | 'previous' | 'task_use';
export type ManifestDraft = Omit<Manifest, Placed | 'pending' | 'execution_ready'>;

/**
 * Freezes a protocol: binds everything that exists by now, and writes the first manifest of the plan. What does not
 * exist yet is pending (P1).
 *
 * @param path of the protocol, absolute or below the workspace
 * @throws {BoundbookError} PROTOCOL_INVALID; BINDING_REFUSED with all faults of files that exist and can't be bound;
 * TASKS_INVALID; MANIFEST_EXISTS when the plan is frozen already; MANIFEST_INTERRUPTED, MANIFEST_ALTERED when the
 * workspace is not whole; FILE_… and HOST_MAP_INVALID. Nothing is written then.
 */
export async function freezeProtocol(path: string, surroundings: Surroundings): Promise<StoredManifest> {
  const { root, now, product = runningProduct() } = surroundings;
  const file = isAbsolute(path) ? path : join(root, path);
  const document = readProtocol(await readFileBounded(file, { maxBytes: MAX_PROTOCOL_BYTES }), path);
  const { protocol } = document;
  assertNew(protocol, await readWorkspace(root));

  const required = requiredBindings(protocol);
  const host = await openHost(root, required, product);
  const observed = await observe(
    required.map((one) => locate(one, host)),
    surroundings,
  );
  const bindings = bindingsOf(observed);
  const plan = await planOf(protocol, bindings, pathsOf(observed));
  const draft = firstDraft(document, product, bindings, plan, now());
  return appendManifest(root, draft, null, (workspace) => assertNew(protocol, workspace));
}

function firstDraft(
  document: ProtocolDocument,
  product: Product,
  bindings: readonly Binding[],
  plan: Manifest['plan'],
  created: string,
): ManifestDraft {
  const { protocol, rawDigest, parser } = document;
  return {
    format: MANIFEST_FORMAT,
    tool: product.tool,
    created,
    name: protocol.name,
    revision: protocol.revision,
    title: protocol.title,
    due: protocol.due ?? null,
    protocol,
    protocol_source: { raw_digest: rawDigest, parser },
    bindings: [...bindings],
    plan,
    pending_items: protocol.pending.map((item) => ({ item, evidence: null })),
    parent: null,
    supersedes: null,
    reason: null,
    exposure: null,
  };
}

/**
 * Gives a draft its place in the workspace and writes it, under the workspace's lock.
 *
 * @param parent the manifest that is bound further; null for a new plan
 * @param check throws when the workspace, as it is under the lock, forbids it
 * @throws {BoundbookError} what `check` throws; MANIFEST_ALTERED, FILE_EMPTY, MANIFEST_INTERRUPTED, WORKSPACE_BUSY,
 * FILE_UNWRITABLE, DISK_FULL.
 */
export function appendManifest(
  root: string,
  draft: ManifestDraft,
  parent: StoredManifest | null,
  check: (workspace: Workspace) => void,
): Promise<StoredManifest> {
  return withWorkspaceLock(root, async () => {
    const workspace = await readWorkspace(root);
    assertWhole(workspace);
    check(workspace);
    return storeManifest(root, sealNext(draft, parent, workspace));
  });
}

/** The manifest of a draft as the next of the workspace. */
export function sealNext(
  draft: ManifestDraft,
  parent: StoredManifest | null,
  { manifests }: Workspace,
): SealedManifest {
  const last = manifests.at(-1);
  return sealManifest({
    ...draft,
    sequence: (last?.manifest.sequence ?? 0) + 1,
    previous: last?.digest ?? null,
    task_use: taskUse(draft.bindings, manifests, parent),
  });
}

/** A plan is frozen once; what follows is `bind`, or `amend` with another revision. */
function assertNew(protocol: Protocol, workspace: Workspace): void {
  const damaged = workspace.damaged.find(({ name }) => name === protocol.name);
  if (damaged !== undefined) throw damaged.error;
  const own = workspace.manifests.filter(({ manifest }) => manifest.name === protocol.name);
  const parents = parentsOf(own);
  if (own.length === 0) return;
  const revision = Math.max(...own.map(({ manifest }) => manifest.revision));
  const newest = own.findLast(
    ({ manifest, digest }) => manifest.revision === revision && !parents.has(digest),
  );
  const file = newest?.file ?? '';
  const id = `${protocol.name} revision ${protocol.revision}`;
  if (revision !== protocol.revision) {
    throw exists(
      `${protocol.name} is frozen in revision ${revision} already`,
      file,
      revision < protocol.revision
        ? 'Another revision of a frozen plan is an amendment: boundbook amend PROTOCOL --reason TEXT.'
        : `Raise the revision above ${revision} and write it with boundbook amend.`,
    );
  }
  if (newest !== undefined && sameValue(newest.manifest.protocol, protocol)) {
    const hint = newest.manifest.execution_ready
      ? `It is complete: go on with \`boundbook verify ${file}\`.`
      : `Bind what became available with \`boundbook bind ${file}\`.`;
    throw exists(`${id} is frozen already`, file, hint);
  }
  throw exists(
    `${id} is frozen already, with another protocol`,
    file,
    'A frozen plan is not changed: raise the revision and write it with boundbook amend.',
  );
}

function exists(message: string, file: string, hint: string): BoundbookError {
  return new BoundbookError('MANIFEST_EXISTS', `${message}: ${file}`, { hint, evidence: { manifest: file } });
}
