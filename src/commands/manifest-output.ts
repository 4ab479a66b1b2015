import type { JsonObject } from '../core/json.js';
import { labelled as labelledLines } from '../core/labelled.js';
import type { StoredManifest } from '../manifest/workspace.js';
import { MANIFEST_FOLDER } from '../manifest/workspace.js';
import { operatorsWord } from '../protocol/operators-word.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { printable } from './render-error.js';

const PROGRESS_FROM_BYTES = 256e6;
const PROGRESS_EVERY_MS = 2000;

/** Lines of a label and a value, see `core/labelled.ts`; what came from outside cannot steer the terminal. */
export function labelled(rows: readonly (readonly [label: string, value: string])[]): string {
  return labelledLines(rows.map(([label, value]) => [label, printable(value)]));
}

/** What `freeze`, `bind` and `amend` print of the manifest that they wrote. */
export function manifestText(verb: 'frozen' | 'bound' | 'amended', stored: StoredManifest): string {
  const { manifest, digest, file } = stored;
  const { bindings, plan, pending, execution_ready, task_use } = manifest;
  const word = operatorsWord(manifest.protocol);
  const used = task_use.filter(({ plans }) => plans > 0);
  const missing = pending.filter((item) => item.startsWith('binding ')).length;
  const files = bindings.reduce((sum, one) => sum + (one.kind === 'tree' ? one.files : 1), 0);
  const size = bindings.reduce((sum, one) => sum + one.size, 0);
  return labelled([
    [verb, `${MANIFEST_FOLDER}/${file}`],
    ['digest', digest],
    ['bindings', `${bindings.length} of ${bindings.length + missing}: ${files} files, ${byteText(size)}`],
    ['plan', plan === null ? 'not countable: a task file is missing' : `${plan.count} slots, ${plan.digest}`],
    ...(manifest.due === null ? [] : ([['due', manifest.due]] as const)),
    ...used.map(({ binding, plans }, i): [string, string] => [
      i === 0 ? 'task lists' : '',
      `${binding}: bound by ${plans === 1 ? 'an earlier plan' : `${plans} earlier plans`} of this workspace`,
    ]),
    ...(word === null ? [] : ([['weights', word]] as const)),
    ['ready', execution_ready ? 'yes: nothing is pending' : `no: ${pending.length} pending`],
    ...pending.map((item): [string, string] => ['', item]),
    ['next', nextStep(stored)],
  ]);
}

export function manifestJson(stored: StoredManifest): JsonObject {
  const { manifest, digest, file } = stored;
  return {
    manifest: `${MANIFEST_FOLDER}/${file}`,
    digest,
    name: manifest.name,
    revision: manifest.revision,
    sequence: manifest.sequence,
    parent: manifest.parent,
    execution_ready: manifest.execution_ready,
    pending: manifest.pending,
    plan: manifest.plan,
    due: manifest.due,
    bindings: manifest.bindings.map(({ name, kind, path, size, digest }) => ({
      name,
      kind,
      path,
      size,
      digest,
    })),
    task_use: manifest.task_use.map((use) => ({ ...use })),
    ...weightsJson(manifest.protocol),
    next: nextStep(stored),
  };
}

/** A member of JSON output for plans whose services the gate does not start. */
export function weightsJson(protocol: Protocol): JsonObject {
  const word = operatorsWord(protocol);
  return word === null ? {} : { weights: word };
}

function nextStep({ manifest, file }: StoredManifest): string {
  return manifest.execution_ready ? `boundbook verify ${file}` : `boundbook bind ${file}`;
}

/** Bytes for people, in powers of ten. */
export function byteText(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit] ?? ''}`;
}

/** Reports on hashing, a line every two seconds; small amounts are not worth a line. */
export function hashProgress(print: (line: string) => void): (done: number, total: number) => void {
  let last = performance.now();
  return (done, total) => {
    if (total < PROGRESS_FROM_BYTES || performance.now() - last < PROGRESS_EVERY_MS) return;
    last = performance.now();
    print(`hashed ${byteText(done)} of ${byteText(total)}`);
  };
}
