import { compareBinding, type Mismatch } from '../manifest/compare.js';
import { openHost, pathsOf } from '../manifest/gather.js';
import type { HashOptions } from '../manifest/hash-pool.js';
import type { Binding, Manifest } from '../manifest/manifest.js';
import { bindingOf } from '../manifest/manifest.js';
import { type BindingRequest, type Observed, observe } from '../manifest/observe.js';
import { type Product, runningProduct } from '../manifest/product.js';
import { type Host, locate, PRODUCT_BINDING, requiredBindings } from '../manifest/required.js';
import { sameValue } from '../manifest/same-value.js';
import { type WatchedBinding, watchedOf } from './watch.js';

export type { Mismatch } from '../manifest/compare.js';

export interface Inspection {
  /** Files that were hashed. */
  readonly files: number;
  /** Bytes of these files. */
  readonly bytes: number;
  /** Everything that is not as it is bound; empty: the manifest may be executed here. */
  readonly mismatches: readonly Mismatch[];
  /** Where each binding lies: absolute, links above it resolved. */
  readonly paths: ReadonlyMap<string, string>;
  /** For {@link changedSince}, while the run goes on. */
  readonly watched: readonly WatchedBinding[];
}

export interface InspectOptions extends HashOptions {
  /** The workspace. */
  readonly root: string;
  /** The running program; tests hand in another. */
  readonly product?: Product;
}

/**
 * Hashes everything that a manifest binds on this host and compares (law 1, P10). All bytes are read: size and time
 * never stand for a digest (F-49). A manifest with something pending has a mismatch for each such item.
 *
 * @throws {BoundbookError} HOST_MAP_INVALID; STOPPED when the signal aborts. Never for what the bound files are.
 */
export async function inspectHost(manifest: Manifest, options: InspectOptions): Promise<Inspection> {
  const product = options.product ?? runningProduct();
  const host = await openHost(options.root, requiredBindings(manifest.protocol), product);
  const observed = await observe(requestsFor(manifest, host), options);
  const mismatches = [...pendingMismatches(manifest), ...productMismatches(manifest, product)];
  for (const one of observed) {
    const binding = bindingOf(manifest, one.request.name);
    if (binding !== null) mismatches.push(...describe(compareBinding(binding, one), one, host));
  }
  const files = observed.flatMap((one) => one.files.filter(({ digest }) => digest !== null));
  return {
    files: files.length,
    bytes: files.reduce((sum, { stamp }) => sum + stamp.size, 0),
    mismatches,
    paths: pathsOf(observed),
    watched: watchedOf(observed),
  };
}

/** What is bound, at its place on this host, under the path that the manifest shows. */
function requestsFor(manifest: Manifest, host: Host): BindingRequest[] {
  const required = new Map(requiredBindings(manifest.protocol).map((one) => [one.name, one]));
  return manifest.bindings.flatMap((binding: Binding) => {
    const one = required.get(binding.name);
    return one === undefined ? [] : [locate({ ...one, path: binding.path, shape: 'either' }, host)];
  });
}

function pendingMismatches(manifest: Manifest): Mismatch[] {
  return manifest.pending.map((item) => ({
    binding: item,
    path: '',
    expected: null,
    actual: null,
    reason: item.startsWith('binding ')
      ? 'is pending: it was never bound'
      : 'is pending: it was never closed by evidence',
  }));
}

/** The running program's code is a binding like others; its version and the packages that it pins are compared here. */
function productMismatches(manifest: Manifest, product: Product): Mismatch[] {
  const { version, dependencies } = manifest.tool;
  const mismatches: Mismatch[] = [];
  const add = (what: string, expected: string | null, actual: string | null): void => {
    if (expected === actual) return;
    const reason = `another version of ${what} than the plan was bound with`;
    mismatches.push({ binding: PRODUCT_BINDING, path: 'package.json', expected, actual, reason });
  };
  add('boundbook', version, product.tool.version);
  if (sameValue(dependencies, product.tool.dependencies)) return mismatches;
  for (const name of new Set([...Object.keys(dependencies), ...Object.keys(product.tool.dependencies)])) {
    add(name, dependencies[name] ?? null, product.tool.dependencies[name] ?? null);
  }
  return mismatches;
}

/** Says where a mapped binding was looked for; the protocol's path alone would mislead. */
function describe(mismatches: readonly Mismatch[], observed: Observed, host: Host): readonly Mismatch[] {
  const { name } = observed.request;
  if (observed.shape !== 'missing' || !host.map.has(name)) return mismatches;
  return mismatches.map((one) => ({ ...one, reason: `${one.reason} where boundbook.host.yaml puts it` }));
}
