import { isAbsolute, join } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import { readFileBounded } from '../core/files.js';
import { MAX_PROTOCOL_BYTES, type ProtocolDocument, readProtocol } from '../protocol/read.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { TaskSets } from '../protocol/tasks.js';
import { planDigest } from '../slots/plan.js';
import { type ManifestDraft, type Surroundings, sealNext } from './freeze.js';
import { bindingsOf, openHost, pathsOf, tasksOf } from './gather.js';
import { withWorkspaceLock } from './lock.js';
import { bindingOf, type SealedManifest } from './manifest.js';
import { type Observed, observe } from './observe.js';
import { runningProduct } from './product.js';
import { locate, requiredBindings } from './required.js';
import { sameValue } from './same-value.js';
import { type Binding, type Exposure, MANIFEST_FORMAT } from './schema.js';
import { loadManifest } from './select.js';
import { successorOf } from './succession.js';
import { compareUtf8 } from './tree.js';
import { assertWhole, parentsOf, readWorkspace, type StoredManifest, type Workspace } from './workspace.js';

/** As long as a ledger entry keeps it. */
const MAX_REASON = 4000;

/** A new revision of a plan, bound as far as can be, before it is known what of the old one was seen. */
export interface PreparedAmendment {
  readonly superseded: StoredManifest;
  readonly draft: Omit<ManifestDraft, 'exposure'>;
  /** The tasks of the new revision; null while a task file is missing. */
  readonly tasks: TaskSets | null;
}

/**
 * Binds the next revision of a frozen plan (P22): as `freeze` does, and what is not on this host stays bound as it was.
 * Evidence of pending items that the new revision still lists is kept.
 *
 * @param path of the protocol, absolute or below the workspace
 * @param selector the plan that is superseded, see {@link loadManifest}; by default the one of the protocol's name
 * @throws {BoundbookError} AMEND_REFUSED; MANIFEST_NOT_FOUND; and as `freezeProtocol`. Nothing is written.
 */
export async function prepareAmendment(
  path: string,
  reason: string,
  selector: string | undefined,
  surroundings: Surroundings,
): Promise<PreparedAmendment> {
  const { root, now, product = runningProduct() } = surroundings;
  const document = await readDocument(path, root);
  const { protocol } = document;
  const checkedReason = checkReason(reason);
  const superseded = await loadManifest(root, selector ?? protocol.name);
  assertAmendable(superseded, protocol, await readWorkspace(root));

  const required = requiredBindings(protocol);
  const host = await openHost(root, required, product);
  const observed = await observe(
    required.map((one) => locate(one, host)),
    surroundings,
  );
  const bindings = [...bindingsOf(observed), ...keptBindings(superseded, observed)].sort((a, b) =>
    compareUtf8(a.name, b.name),
  );
  assertChanged(superseded, protocol, bindings);
  const tasks = await tasksOf(protocol, bindings, pathsOf(observed));
  const draft = {
    format: MANIFEST_FORMAT,
    tool: product.tool,
    created: now(),
    name: protocol.name,
    revision: protocol.revision,
    title: protocol.title,
    due: protocol.due ?? null,
    protocol,
    protocol_source: { raw_digest: document.rawDigest, parser: document.parser },
    bindings,
    plan: tasks === null ? null : planDigest(protocol, tasks.ids),
    pending_items: protocol.pending.map((item) => ({ item, evidence: evidenceOf(superseded, item) })),
    parent: null,
    supersedes: superseded.digest,
    reason: checkedReason,
  } as const;
  return { superseded, draft, tasks };
}

/**
 * Gives the new revision its place in the workspace, under the workspace's lock.
 *
 * @param write makes the manifest durable, and with it whatever must be written in the same step
 * @throws {BoundbookError} AMEND_REFUSED when another revision was faster; what `write` throws; and as
 * `appendManifest`.
 */
export function placeAmendment(
  root: string,
  { superseded, draft }: PreparedAmendment,
  exposure: Exposure,
  write: (sealed: SealedManifest) => StoredManifest,
): Promise<StoredManifest> {
  return withWorkspaceLock(root, async () => {
    const workspace = await readWorkspace(root);
    assertWhole(workspace);
    assertAmendable(superseded, draft.protocol, workspace);
    return write(sealNext({ ...draft, exposure }, null, workspace));
  });
}

/** @throws {BoundbookError} PROTOCOL_INVALID; FILE_… */
export async function readDocument(path: string, root: string): Promise<ProtocolDocument> {
  const file = isAbsolute(path) ? path : join(root, path);
  return readProtocol(await readFileBounded(file, { maxBytes: MAX_PROTOCOL_BYTES }), path);
}

function checkReason(reason: string): string {
  const trimmed = reason.trim();
  if (trimmed !== '' && trimmed.length <= MAX_REASON) return trimmed.toWellFormed();
  const message =
    trimmed === ''
      ? 'an amendment needs a reason'
      : `a reason has at most ${MAX_REASON} characters, not ${trimmed.length}`;
  throw refused(
    message,
    'Say why the plan is changed: --reason TEXT. Every report of the new revision shows it.',
  );
}

/** What is superseded is the newest revision, and the new one follows it under the same name. */
function assertAmendable(superseded: StoredManifest, protocol: Protocol, workspace: Workspace): void {
  const { manifest, file } = superseded;
  if (manifest.name !== protocol.name) {
    throw refused(
      `${file} is a plan named ${manifest.name}; the protocol is named ${protocol.name}`,
      'A plan of another name is another plan: `boundbook freeze` writes it.',
    );
  }
  const own = workspace.manifests.filter((one) => one.manifest.name === protocol.name);
  const newest = own.findLast(
    (one) => one.digest !== superseded.digest && one.manifest.revision >= manifest.revision,
  );
  const isNewest =
    !parentsOf(own).has(superseded.digest) &&
    successorOf(superseded, own) === null &&
    own.every((one) => one.manifest.revision <= manifest.revision);
  if (!isNewest) {
    throw refused(
      `${file} is not the newest manifest of ${manifest.name}`,
      `Amend the newest: ${newest?.file ?? 'see boundbook status'}.`,
    );
  }
  if (protocol.revision > manifest.revision) return;
  const unchanged = sameValue(protocol, manifest.protocol);
  throw refused(
    unchanged
      ? `${file} holds this very protocol: nothing would change`
      : `revision ${protocol.revision} does not follow revision ${manifest.revision} of ${file}`,
    unchanged
      ? 'Change the protocol and raise its revision.'
      : `Set revision: ${manifest.revision + 1} in the protocol.`,
  );
}

/** A revision that differs in its number alone changes nothing; other files under the same protocol do. */
function assertChanged(
  { manifest, file }: StoredManifest,
  protocol: Protocol,
  bindings: readonly Binding[],
): void {
  const same =
    sameValue({ ...protocol, revision: 0 }, { ...manifest.protocol, revision: 0 }) &&
    bindings.every(({ name, digest }) => (bindingOf(manifest, name)?.digest ?? digest) === digest);
  if (!same) return;
  throw refused(
    `the protocol differs from ${file} in its revision alone, and so do no files: nothing would change`,
    'Change what is to be changed. Files that came into being are added with `boundbook bind`.',
  );
}

/** Bindings of what is not on this host, as they were. Task files must be here: the plan is made of them. */
function keptBindings({ manifest }: StoredManifest, observed: readonly Observed[]): readonly Binding[] {
  return observed.flatMap(({ request, shape }) => {
    const bound =
      shape === 'missing' && request.content !== 'tasks' ? bindingOf(manifest, request.name) : null;
    return bound !== null && bound.path === request.path ? [bound] : [];
  });
}

function evidenceOf({ manifest }: StoredManifest, item: string) {
  return manifest.pending_items.find((one) => one.item === item)?.evidence ?? null;
}

function refused(message: string, hint: string): BoundbookError {
  return new BoundbookError('AMEND_REFUSED', message, { hint });
}
