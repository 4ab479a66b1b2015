import { isAbsolute, relative, resolve } from 'node:path';
import { BoundbookError, type Fault } from '../core/errors.js';
import { spellingHint } from '../protocol/nearest.js';
import { compareBinding } from './compare.js';
import { hasAllTasks } from './consistency.js';
import { appendManifest, type Surroundings } from './freeze.js';
import { bindingsOf, openHost, pathsOf, planOf } from './gather.js';
import { bindingOf } from './manifest.js';
import { type Observed, observe } from './observe.js';
import { runningProduct } from './product.js';
import { locate, requiredBindings } from './required.js';
import type { Binding, Evidence, Manifest } from './schema.js';
import { loadManifest } from './select.js';
import { assertInForce } from './succession.js';
import { compareUtf8 } from './tree.js';
import type { StoredManifest, Workspace } from './workspace.js';

/** An item of the pending list and the file that shows it done. */
export interface Resolution {
  readonly item: string;
  /** Path of the evidence, absolute or below the workspace. */
  readonly evidence: string;
}

/**
 * Writes a further manifest of a plan with what became available since: bindings, and evidence that closes an item of
 * the pending list. Nothing that is bound is ever changed, and an amended plan stays the amendment that it is.
 *
 * @param selector see {@link loadManifest}
 * @throws {BoundbookError} BINDING_REFUSED when nothing is new, when something bound differs by now, or when new files
 * can't be bound; PENDING_UNKNOWN; MANIFEST_EXISTS when the manifest was bound further already; PLAN_SUPERSEDED; and as
 * {@link loadManifest} and {@link appendManifest}. Nothing is written then.
 */
export async function bindManifest(
  selector: string | undefined,
  surroundings: Surroundings,
  resolution: Resolution | null = null,
): Promise<StoredManifest> {
  const { root, now, product = runningProduct() } = surroundings;
  const parent = await loadManifest(root, selector);
  const { manifest } = parent;
  const pendingItems = await resolveItem(manifest, resolution, surroundings);

  const required = requiredBindings(manifest.protocol);
  const host = await openHost(root, required, product);
  const observed = await observe(
    required.map((one) => locate(one, host)),
    surroundings,
  );
  assertUnchanged(manifest, observed);
  const added = bindingsOf(observed.filter(({ request }) => bindingOf(manifest, request.name) === null));
  if (added.length === 0 && resolution === null) throw nothingNew(parent);
  const bindings = [...manifest.bindings, ...added].sort((a, b) => compareUtf8(a.name, b.name));
  const draft = {
    ...manifest,
    tool: product.tool,
    created: now(),
    bindings,
    plan: manifest.plan ?? (await newPlan(manifest, bindings, observed)),
    pending_items: pendingItems,
    parent: parent.digest,
  };
  return appendManifest(root, draft, parent, (workspace) => assertNotBoundFurther(parent, workspace));
}

async function newPlan(
  manifest: Manifest,
  bindings: readonly Binding[],
  observed: readonly Observed[],
): Promise<Manifest['plan']> {
  const plan = await planOf(manifest.protocol, bindings, pathsOf(observed));
  if (plan === null && hasAllTasks({ protocol: manifest.protocol, bindings: [...bindings] })) {
    throw new BoundbookError(
      'BINDING_REFUSED',
      'the last task file is here, but one that was bound before is not',
      {
        hint: 'Put all task files of the plan on this host, so that its slots can be counted, and bind again.',
      },
    );
  }
  return plan;
}

/** A bound file that is here must be the bound one; one that lies on another host is taken as it was bound. */
function assertUnchanged(manifest: Manifest, observed: readonly Observed[]): void {
  const faults = observed.flatMap((one): Fault[] => {
    const binding = bindingOf(manifest, one.request.name);
    if (binding === null || one.shape === 'missing') return [];
    return compareBinding(binding, one).map(({ path, expected, actual, reason }) => ({
      where: `${binding.name}: ${path}`,
      message: `${reason} (bound ${expected ?? 'nothing'}, found ${actual ?? 'nothing'})`,
    }));
  });
  if (faults.length === 0) return;
  throw new BoundbookError('BINDING_REFUSED', 'what is bound already differs on this host', {
    hint: 'Restore the bound files. A plan that needs other files is another revision.',
    faults,
  });
}

function nothingNew(parent: StoredManifest): BoundbookError {
  const { pending, execution_ready } = parent.manifest;
  const hint = execution_ready
    ? `It is complete: go on with \`boundbook verify ${parent.file}\`.`
    : 'Put the missing files in place (boundbook.host.yaml can map them), or close an item with --resolve and --evidence.';
  return new BoundbookError('BINDING_REFUSED', `there is nothing new to bind for ${parent.file}`, {
    hint,
    faults: pending.map((item) => ({ where: item, message: 'is still pending' })),
  });
}

async function resolveItem(
  manifest: Manifest,
  resolution: Resolution | null,
  surroundings: Surroundings,
): Promise<Manifest['pending_items']> {
  const items = manifest.pending_items;
  if (resolution === null) return items;
  const { item } = resolution;
  const open = items.filter(({ evidence }) => evidence === null).map((one) => one.item);
  if (!open.includes(item)) {
    const closed = items.some((one) => one.item === item);
    const message = closed ? 'is closed already' : 'is not on the pending list';
    throw new BoundbookError('PENDING_UNKNOWN', `the item ${JSON.stringify(item)} ${message}`, {
      hint: item.startsWith('binding ')
        ? 'A binding is closed by its files being there, not by evidence.'
        : open.length === 0
          ? noneOpen(items.length)
          : spellingHint(item, open),
      evidence: { open },
    });
  }
  const evidence = await bindEvidence(resolution.evidence, surroundings);
  return items.map((one) => (one.item === item ? { item, evidence } : one));
}

function noneOpen(declared: number): string {
  return declared === 0
    ? 'The protocol declares no pending item, so nothing needs evidence. Next: boundbook bind, or boundbook verify.'
    : 'Every declared item is closed. Next: boundbook bind for files that were missing, or boundbook verify.';
}

async function bindEvidence(path: string, surroundings: Surroundings): Promise<Evidence> {
  const absolute = resolve(surroundings.root, path);
  const [observed] = await observe(
    [{ name: 'evidence', path, absolute, shape: 'file', content: 'schema' }],
    surroundings,
  );
  if (observed === undefined || observed.shape === 'missing') {
    throw new BoundbookError('FILE_NOT_FOUND', `${path} does not exist`, {
      hint: 'Name the file that shows the item done.',
    });
  }
  const [binding] = bindingsOf([observed]);
  if (binding === undefined) throw new BoundbookError('INTERNAL', `${path} was observed without a binding`);
  return { path: shownEvidence(absolute, surroundings.root), size: binding.size, digest: binding.digest };
}

/** Relative to the workspace where it lies inside, else its bare name: where a host keeps it is no part of the plan. */
function shownEvidence(absolute: string, root: string): string {
  const below = relative(resolve(root), absolute);
  const outside = below.startsWith('..') || isAbsolute(below);
  return outside
    ? absolute.slice(Math.max(absolute.lastIndexOf('/'), absolute.lastIndexOf('\\')) + 1)
    : below;
}

function assertNotBoundFurther(parent: StoredManifest, workspace: Workspace): void {
  assertInForce(parent, workspace.manifests);
  const child = workspace.manifests.find(({ manifest }) => manifest.parent === parent.digest);
  if (child === undefined) return;
  throw new BoundbookError('MANIFEST_EXISTS', `${parent.file} was bound further already: ${child.file}`, {
    hint: `Go on from there: boundbook bind ${child.file}`,
    evidence: { manifest: child.file },
  });
}
