import { createHash } from 'node:crypto';
import type { Digest } from '../core/digest.js';
import { BoundbookError } from '../core/errors.js';
import { spellingHint } from '../protocol/nearest.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import { trainingSeeds } from './blocks.js';
import { expandSlots, type TaskIds } from './plan.js';
import type { Slot } from './slot.js';

export const SELECTABLE = ['queue', 'arm', 'training_seed', 'evaluation_seed', 'task', 'slot'] as const;
export type SelectField = (typeof SELECTABLE)[number];

/** Accepted values by field; a field that is not there accepts all. */
export type Selector = ReadonlyMap<SelectField, ReadonlySet<string>>;

/**
 * Reads `field=value` filters: several values of one field are alternatives, several fields all hold. Commas separate
 * values and filters: `arm=O,M`, `queue=main,task=t-1`.
 *
 * @param flag for the message
 * @throws {BoundbookError} USAGE for a filter without a known field.
 */
export function parseFilters(texts: readonly string[], flag = '--only'): Selector {
  const only = new Map<SelectField, Set<string>>();
  for (const text of texts) {
    let field: SelectField | null = null;
    for (const part of text.split(',')) {
      const separator = part.indexOf('=');
      const name = separator < 0 ? null : part.slice(0, separator);
      const named = SELECTABLE.find((known) => known === name);
      if (named === undefined && (name !== null || field === null)) refuseFilter(name ?? part, flag);
      field = named ?? field;
      if (field === null) continue;
      const value = named === undefined ? part : part.slice(separator + 1);
      only.set(field, (only.get(field) ?? new Set()).add(value));
    }
  }
  return only;
}

/**
 * @throws {BoundbookError} SLOT_NOT_PLANNED for a value that no planned slot has, naming what exists, and for filters
 * that no slot passes together.
 */
export function assertPlanned(selector: Selector, protocol: Protocol, taskIds: TaskIds): void {
  if (selector.size === 0) return;
  for (const [field, values] of selector) {
    if (field === 'slot') {
      assertSlots(values, protocol, taskIds);
      continue;
    }
    const known = plannedValues(field, protocol, taskIds);
    for (const value of values) {
      if (known.includes(value)) continue;
      throw new BoundbookError('SLOT_NOT_PLANNED', `the plan has no ${field} ${JSON.stringify(value)}`, {
        hint: spellingHint(value, known),
        evidence: { field, value },
      });
    }
  }
  if (matchingSlots(selector, protocol, taskIds).next().done !== true) return;
  throw new BoundbookError('SLOT_NOT_PLANNED', 'no planned slot passes all of these filters together', {
    hint: 'Each value is planned, but not with the others. `boundbook plan` shows what goes with what.',
  });
}

/** The slots that pass, in the order of the expansion. */
export function* matchingSlots(selector: Selector, protocol: Protocol, taskIds: TaskIds): Generator<Slot> {
  for (const slot of expandSlots(protocol, taskIds)) if (passes(selector, slot)) yield slot;
}

export function passes(selector: Selector, slot: Slot): boolean {
  for (const [field, values] of selector) if (!values.has(fieldOf(slot, field))) return false;
  return true;
}

/** A selector in words, as filters are written. */
export function selectorText(selector: Readonly<Record<string, readonly string[]>>): string {
  const parts = Object.entries(selector).map(([field, values]) => `${field}=${values.join(',')}`);
  return parts.length === 0 ? 'all' : parts.join(' ');
}

/** A selector as an entry holds it; null when it names something that is no part of a slot. */
export function toSelector(record: Readonly<Record<string, readonly string[]>>): Selector | null {
  const selector = new Map<SelectField, ReadonlySet<string>>();
  for (const [name, values] of Object.entries(record)) {
    const field = SELECTABLE.find((one) => one === name);
    if (field === undefined) return null;
    selector.set(field, new Set(values));
  }
  return selector;
}

/** How many slots pass, and SHA-256 over their ids, ascending, one a line. */
export function selectionDigest(
  selector: Selector,
  protocol: Protocol,
  taskIds: TaskIds,
): { readonly count: number; readonly digest: Digest } {
  const ids: string[] = [];
  for (const { id } of matchingSlots(selector, protocol, taskIds)) ids.push(id);
  return slotsDigest(ids.sort());
}

/** Number of slots, and file digest of their ids, one a line. @param slots ids, ascending */
export function slotsDigest(slots: readonly string[]): { readonly count: number; readonly digest: Digest } {
  const hash = createHash('sha256');
  for (const slot of slots) hash.update(`${slot}\n`);
  return { count: slots.length, digest: `sha256:${hash.digest('hex')}` };
}

function assertSlots(ids: ReadonlySet<string>, protocol: Protocol, taskIds: TaskIds): void {
  const missing = new Set(ids);
  for (const { id } of expandSlots(protocol, taskIds)) {
    if (missing.delete(id) && missing.size === 0) return;
  }
  const [id = ''] = missing;
  throw new BoundbookError('SLOT_NOT_PLANNED', `the plan has no slot ${JSON.stringify(id)}`, {
    hint: 'A slot id is 32 hexadecimal digits; `boundbook show` and the slots file list them.',
    evidence: { field: 'slot', value: id },
  });
}

function fieldOf(slot: Slot, field: SelectField): string {
  switch (field) {
    case 'queue':
      return slot.queue;
    case 'arm':
      return slot.arm;
    case 'training_seed':
      return String(slot.trainingSeed);
    case 'evaluation_seed':
      return String(slot.evaluationSeed);
    case 'task':
      return slot.task;
    case 'slot':
      return slot.id;
  }
}

function plannedValues(
  field: Exclude<SelectField, 'slot'>,
  protocol: Protocol,
  taskIds: TaskIds,
): readonly string[] {
  const queues = Object.values(protocol.queues);
  const arms = [...new Set(queues.flatMap((queue) => queue.arms))];
  switch (field) {
    case 'queue':
      return Object.keys(protocol.queues);
    case 'arm':
      return arms;
    case 'training_seed':
      return [...new Set(arms.flatMap((arm) => trainingSeeds(protocol, arm)).map(String))];
    case 'evaluation_seed':
      return [...new Set(queues.flatMap((queue) => queue.evaluation_seeds ?? [0]).map(String))];
    case 'task':
      return [...new Set(queues.flatMap((queue) => taskIds.get(queue.tasks) ?? []))];
  }
}

function refuseFilter(name: string, flag: string): never {
  throw new BoundbookError('USAGE', `${flag} takes field=value, and ${JSON.stringify(name)} is no field`, {
    hint: spellingHint(name, SELECTABLE),
  });
}
