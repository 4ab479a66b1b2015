import type { Fault } from '../core/errors.js';
import { sameValue } from './same-value.js';
import type { Manifest } from './schema.js';

/**
 * What in a manifest does not follow from its parent: `bind` adds bindings and evidence and changes nothing else, so that
 * what is known of the parent's plan holds for the child (P1, P10).
 */
export function descentFaults(child: Manifest, parent: Manifest): readonly Fault[] {
  const faults = orderFaults(child, parent, 'its parent');
  const add = (where: string, message: string) => faults.push({ where, message });
  for (const part of ['protocol', 'protocol_source', 'supersedes', 'reason', 'exposure'] as const) {
    if (!sameValue(child[part], parent[part])) add(`/${part}`, 'is not what its parent has');
  }
  if (parent.plan !== null && !sameValue(child.plan, parent.plan))
    add('/plan', 'is not the plan of its parent');
  const bound = new Map(child.bindings.map((binding) => [binding.name, binding]));
  for (const binding of parent.bindings) {
    if (!sameValue(bound.get(binding.name) ?? null, binding))
      add('/bindings', `${binding.name} is bound otherwise in its parent`);
  }
  const closed = new Map(child.pending_items.map(({ item, evidence }) => [item, evidence]));
  for (const { item, evidence } of parent.pending_items) {
    if (evidence !== null && !sameValue(closed.get(item) ?? null, evidence))
      add('/pending_items', `${item} was closed by other evidence in its parent`);
  }
  return faults;
}

/** What in a manifest does not follow from the plan that it supersedes: exposure never becomes less (P22). */
export function successionFaults(successor: Manifest, superseded: Manifest): readonly Fault[] {
  const faults = orderFaults(successor, superseded, 'what it supersedes');
  const add = (where: string, message: string) => faults.push({ where, message });
  if (successor.name !== superseded.name) add('/name', `is not ${superseded.name}`);
  if (successor.revision <= superseded.revision) add('/revision', `does not follow ${superseded.revision}`);
  const [now, before] = [successor.exposure, superseded.exposure];
  if (now === null || before === null) return faults;
  for (const part of ['slots_run', 'settled'] as const) {
    if (now[part] < before[part]) add(`/exposure/${part}`, `was ${before[part]} before`);
  }
  if (before.unblinded && !now.unblinded) add('/exposure/unblinded', 'was true before');
  return faults;
}

function orderFaults(later: Manifest, earlier: Manifest, what: string): Fault[] {
  const faults: Fault[] = [];
  if (later.sequence <= earlier.sequence)
    faults.push({ where: '/sequence', message: `is not above ${earlier.sequence}, the number of ${what}` });
  if (later.created < earlier.created)
    faults.push({ where: '/created', message: `lies before ${earlier.created}, the time of ${what}` });
  return faults;
}
