import type { Fault } from '../core/errors.js';
import { type Observed, type ObservedFile, shownPath } from './observe.js';
import type { Binding } from './schema.js';

/** One thing on this host that is not as it is bound (law 1). */
export interface Mismatch {
  /** The binding's name, or the pending item. */
  readonly binding: string;
  /** As the protocol writes it, down to the file; empty for a pending item. */
  readonly path: string;
  /** A digest, or what else was expected; null when nothing was. */
  readonly expected: string | null;
  /** null when nothing is there, or it could not be hashed. */
  readonly actual: string | null;
  readonly reason: string;
}

/** Every difference between a binding and what lies in its place, down to single files. Empty: they agree. */
export function compareBinding(binding: Binding, observed: Observed): readonly Mismatch[] {
  const { name, path } = binding;
  if (observed.shape === 'missing') {
    return [{ binding: name, path, expected: binding.digest, actual: null, reason: 'does not exist' }];
  }
  if (observed.shape !== binding.kind) {
    const reason = binding.kind === 'file' ? 'is a folder; a file is bound' : 'is no folder; a tree is bound';
    return [{ binding: name, path, expected: binding.digest, actual: null, reason }];
  }
  const expected = binding.kind === 'file' ? [{ path: '', digest: binding.digest }] : binding.entries;
  const faults = new Map<string, Fault[]>();
  for (const fault of observed.faults) faults.set(fault.where, [...(faults.get(fault.where) ?? []), fault]);
  const takeFaults = (where: string): string | null => {
    const found = faults.get(where);
    faults.delete(where);
    return found === undefined ? null : found.map(({ message }) => message).join('; ');
  };
  const actual = new Map(observed.files.map((file) => [file.path, file]));
  const mismatches: Mismatch[] = [];
  for (const entry of expected) {
    const file = actual.get(entry.path);
    actual.delete(entry.path);
    const where = shownPath(binding, entry.path);
    const fault = takeFaults(where);
    const reason = difference(file, entry.digest, fault);
    if (reason === null) continue;
    mismatches.push({
      binding: name,
      path: where,
      expected: entry.digest,
      actual: file?.digest ?? null,
      reason,
    });
  }
  for (const file of actual.values()) {
    const where = shownPath(binding, file.path);
    takeFaults(where);
    const reason = surplus(file.path);
    mismatches.push({ binding: name, path: where, expected: null, actual: file.digest, reason });
  }
  for (const where of [...faults.keys()]) {
    const reason = takeFaults(where) ?? '';
    mismatches.push({ binding: name, path: where, expected: null, actual: null, reason });
  }
  return mismatches;
}

function difference(file: ObservedFile | undefined, expected: string, fault: string | null): string | null {
  if (file === undefined) return fault ?? 'is missing';
  if (file.digest === null) return fault ?? 'could not be hashed';
  if (file.digest === expected) return fault;
  return fault === null ? 'the content differs' : `the content differs: ${fault}`;
}

function surplus(path: string): string {
  return /(^|\/)__pycache__\//.test(path)
    ? 'is not bound: remove it, and set PYTHONDONTWRITEBYTECODE=1 so that none is written'
    : 'is not bound';
}
