import { isAbsolute, join } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { taskFiles } from '../protocol/tasks.js';
import type { BindingRequest } from './observe.js';
import type { Product } from './product.js';
import { compareUtf8 } from './tree.js';

/** The binding of this program's own running code. */
export const PRODUCT_BINDING = 'runner/boundbook';

/** A binding that a protocol asks for (P10). */
export type RequiredBinding = Omit<BindingRequest, 'absolute'>;

/**
 * Everything that must be bound before a protocol may be executed, ascending by name: weights and tokenizer of each
 * model and training seed, task files, report schemas, the runner's sources and the running program itself.
 *
 * @throws {BoundbookError} BINDING_REFUSED when two of them would have one name (a model `M@42` beside a model `M`
 * with seed 42, a source `boundbook`).
 */
export function requiredBindings(protocol: Protocol): readonly RequiredBinding[] {
  const tasks = taskFiles(protocol).map(
    ({ binding, path }): RequiredBinding => ({ name: binding, path, shape: 'file', content: 'tasks' }),
  );
  const product: RequiredBinding = {
    name: PRODUCT_BINDING,
    path: '',
    shape: 'folder',
    content: 'product',
  };
  const all = [
    ...modelBindings(protocol),
    ...tasks,
    ...schemaBindings(protocol),
    ...sourceBindings(protocol),
    product,
  ].sort((a, b) => compareUtf8(a.name, b.name));
  const twice = all.filter(({ name }, i) => all[i - 1]?.name === name).map(({ name }) => name);
  if (twice.length > 0) {
    throw new BoundbookError('BINDING_REFUSED', 'two bindings of the protocol have one name', {
      hint: 'Rename the model or source in the protocol.',
      faults: twice.map((name) => ({ where: name, message: 'is the name of more than one binding' })),
    });
  }
  return all;
}

function modelBindings(protocol: Protocol): RequiredBinding[] {
  return Object.entries(protocol.models).flatMap(([model, { training_seeds, weights, tokenizer }]) =>
    (training_seeds ?? [null]).flatMap((seed): RequiredBinding[] => {
      const name = seed === null ? model : `${model}@${seed}`;
      const expand = (path: string): string =>
        seed === null ? path : path.replaceAll('{seed}', String(seed));
      const bound: RequiredBinding[] = [
        { name: `weights/${name}`, path: expand(weights), shape: 'folder', content: 'weights' },
      ];
      if (tokenizer !== undefined) {
        bound.push({
          name: `tokenizer/${name}`,
          path: expand(tokenizer),
          shape: 'file',
          content: 'tokenizer',
        });
      }
      return bound;
    }),
  );
}

function schemaBindings(protocol: Protocol): RequiredBinding[] {
  return Object.entries(protocol.conditions).flatMap(([condition, { grader }]): RequiredBinding[] => {
    if (grader.kind !== 'report' || grader.report_schema === undefined) return [];
    const path = grader.report_schema;
    return [{ name: `report-schema/${condition}`, path, shape: 'file', content: 'schema' }];
  });
}

function sourceBindings(protocol: Protocol): RequiredBinding[] {
  return Object.entries(protocol.runner.sources).map(
    ([source, path]): RequiredBinding => ({
      name: `runner/${source}`,
      path,
      shape: 'either',
      content: 'source',
    }),
  );
}

/** Where bindings lie on this host. */
export interface Host {
  /** The workspace; relative paths start here. */
  readonly root: string;
  /** Local paths by binding name; see `host-map.ts`. */
  readonly map: ReadonlyMap<string, string>;
  readonly product: Product;
}

/** Where to look for a binding: its mapped place, else the protocol's path below the workspace. */
export function locate(required: RequiredBinding, host: Host): BindingRequest {
  if (required.name === PRODUCT_BINDING) {
    return { ...required, path: required.path || host.product.shown, absolute: host.product.folder };
  }
  const local = host.map.get(required.name) ?? required.path;
  return { ...required, absolute: isAbsolute(local) ? local : join(host.root, local) };
}
