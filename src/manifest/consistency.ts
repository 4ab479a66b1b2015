import { canonicalText } from '../core/canonical-json.js';
import type { Fault } from '../core/errors.js';
import { computationFaults } from '../protocol/computable.js';
import { pointerOf } from '../protocol/json-pointer.js';
import { referenceFaults } from '../protocol/references.js';
import { PRODUCT_BINDING, type RequiredBinding, requiredBindings } from './required.js';
import type { Binding, Exposure, Manifest } from './schema.js';
import { compareUtf8, treeOf } from './tree.js';

/**
 * What is still open: declared items without evidence, then bindings that are not there. Computed, so that a file can't
 * declare itself ready (P1, P20).
 */
export function pendingOf(manifest: Pick<Manifest, 'protocol' | 'bindings' | 'pending_items'>): string[] {
  const bound = new Set(manifest.bindings.map(({ name }) => name));
  return [
    ...manifest.pending_items.filter(({ evidence }) => evidence === null).map(({ item }) => item),
    ...requiredBindings(manifest.protocol)
      .filter(({ name }) => !bound.has(name))
      .map(({ name }) => `binding ${name}`),
  ];
}

/** Whether every task file is bound, so that the plan can be expanded. */
export function hasAllTasks(manifest: Pick<Manifest, 'protocol' | 'bindings'>): boolean {
  const bound = new Set(manifest.bindings.map(({ name }) => name));
  return requiredBindings(manifest.protocol).every(
    ({ name, content }) => content !== 'tasks' || bound.has(name),
  );
}

/**
 * What in a manifest contradicts itself: figures that follow from other parts must follow from them.
 *
 * @throws {BoundbookError} BINDING_REFUSED when its protocol asks for two bindings of one name.
 */
export function inconsistencies(manifest: Manifest): readonly Fault[] {
  const { protocol } = manifest;
  const faults: Fault[] = [...referenceFaults(protocol), ...computationFaults(protocol)].map((fault) => ({
    where: `/protocol${pointerOf(fault.path)}`,
    message: fault.message,
  }));
  const expect = (where: string, actual: unknown, expected: unknown): void => {
    if (canonicalText(actual) === canonicalText(expected)) return;
    const message = `is ${shorten(actual)}, but the rest of the manifest gives ${shorten(expected)}`;
    faults.push({ where, message });
  };
  expect('/name', manifest.name, protocol.name);
  expect('/revision', manifest.revision, protocol.revision);
  expect('/title', manifest.title, protocol.title);
  expect('/due', manifest.due, protocol.due ?? null);
  const items = manifest.pending_items.map(({ item }) => item);
  expect('/pending_items', items, protocol.pending);
  faults.push(...bindingFaults(manifest, expect));
  expect('/pending', manifest.pending, pendingOf(manifest));
  expect('/execution_ready', manifest.execution_ready, manifest.pending.length === 0);
  if ((manifest.plan !== null) !== hasAllTasks(manifest)) {
    faults.push({ where: '/plan', message: 'a plan is there exactly when every task file is bound' });
  }
  if ((manifest.previous === null) !== (manifest.sequence === 1)) {
    faults.push({ where: '/previous', message: 'is null exactly in the first manifest of a workspace' });
  }
  const tasks = manifest.bindings.filter(({ name }) => name.startsWith('tasks/'));
  expect(
    '/task_use',
    manifest.task_use.map(({ binding, digest }) => ({ binding, digest })),
    tasks.map(({ name, digest }) => ({ binding: name, digest })),
  );
  for (const part of ['reason', 'exposure'] as const) {
    const message = `is there exactly when the plan supersedes another`;
    if ((manifest[part] === null) !== (manifest.supersedes === null))
      faults.push({ where: `/${part}`, message });
  }
  if (manifest.exposure !== null) faults.push(...exposureFaults(manifest.exposure));
  return faults;
}

/** P22: bounds are visible only where outcomes are. */
function exposureFaults({ slots_run, settled, unblinded, bounds }: Exposure): Fault[] {
  const faults: Fault[] = [];
  const add = (where: string, message: string) => faults.push({ where: `/exposure/${where}`, message });
  if (settled > slots_run) add('settled', `${settled} slots can't be settled where ${slots_run} were run`);
  if (!unblinded && Object.keys(bounds).length > 0) add('bounds', 'are visible only after unblinding');
  for (const [name, { lower, upper }] of Object.entries(bounds))
    if (lower > upper) add('bounds', `${name} has its ends in the wrong order`);
  return faults;
}

function bindingFaults(
  manifest: Manifest,
  expect: (where: string, actual: unknown, expected: unknown) => void,
): Fault[] {
  const required = new Map(requiredBindings(manifest.protocol).map((one) => [one.name, one]));
  const faults: Fault[] = [];
  let last = '';
  for (const [i, binding] of manifest.bindings.entries()) {
    const where = `/bindings/${i}`;
    const one = required.get(binding.name);
    if (i > 0 && compareUtf8(last, binding.name) >= 0) {
      faults.push({ where, message: 'bindings do not ascend by name' });
    }
    last = binding.name;
    if (one === undefined) {
      faults.push({ where, message: `${binding.name} is no binding of the protocol` });
      continue;
    }
    if (binding.name !== PRODUCT_BINDING) expect(`${where}/path`, binding.path, one.path);
    if (!fits(binding, one)) faults.push({ where, message: `${binding.name} can't be a ${binding.kind}` });
    if (binding.kind === 'tree') {
      const { size, files, digest, oms_root, entries } = binding;
      expect(where, { size, files, digest, oms_root, entries }, { ...treeOf(entries) });
      if (new Set(entries.map(({ path }) => path)).size < entries.length)
        faults.push({ where, message: `${binding.name} has two files of one path` });
    }
  }
  return faults;
}

function fits(binding: Binding, required: RequiredBinding): boolean {
  return required.shape === 'either' || (required.shape === 'file') === (binding.kind === 'file');
}

function shorten(value: unknown): string {
  const text = canonicalText(value);
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
