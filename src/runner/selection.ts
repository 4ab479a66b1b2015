import { BoundbookError } from '../core/errors.js';
import { spellingHint } from '../protocol/nearest.js';
import type { Protocol } from '../protocol/schema.js';
import { expandSlots, orderedSlots, type TaskIds, trainingSeeds } from '../slots/plan.js';
import { type Slot, shardOf } from '../slots/slot.js';

export const SELECTABLE = ['queue', 'arm', 'training_seed', 'evaluation_seed', 'task', 'slot'] as const;
export type SelectField = (typeof SELECTABLE)[number];

/** The part of the plan that a session works on. */
export interface RunSelection {
  readonly shard: { readonly index: number; readonly count: number } | null;
  /** Accepted values by field; a field that is not there accepts all. */
  readonly only: ReadonlyMap<SelectField, ReadonlySet<string>>;
}

/**
 * Reads `field=value` filters: several values of one field are alternatives, several fields all hold. Commas separate
 * values and filters: `arm=O,M`, `queue=main,task=t-1`.
 *
 * @throws {BoundbookError} USAGE for a filter without a known field.
 */
export function parseFilters(texts: readonly string[]): ReadonlyMap<SelectField, ReadonlySet<string>> {
  const only = new Map<SelectField, Set<string>>();
  for (const text of texts) {
    let field: SelectField | null = null;
    for (const part of text.split(',')) {
      const separator = part.indexOf('=');
      const name = separator < 0 ? null : part.slice(0, separator);
      const named = SELECTABLE.find((known) => known === name);
      if (named === undefined && (name !== null || field === null)) refuseFilter(name ?? part);
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
export function assertPlanned(selection: RunSelection, protocol: Protocol, taskIds: TaskIds): void {
  if (selection.only.size === 0) return;
  for (const [field, values] of selection.only) {
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
  const { only } = selection;
  if (anyOrderSlots({ shard: null, only }, protocol, taskIds).next().done !== true) return;
  throw new BoundbookError('SLOT_NOT_PLANNED', 'no planned slot passes all of these filters together', {
    hint: 'Each value is planned, but not with the others. `boundbook plan` shows what goes with what.',
  });
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

/** Selected slots in plan order (P19). */
export function* selectedSlots(
  selection: RunSelection,
  protocol: Protocol,
  taskIds: TaskIds,
): Generator<Slot> {
  const { shard } = selection;
  const only: Partial<Record<SelectField, string>> = {};
  for (const [field, values] of selection.only) {
    const [value] = values;
    if (values.size === 1 && value !== undefined) only[field] = value;
  }
  for (const slot of orderedSlots(protocol, taskIds, { ...(shard === null ? {} : { shard }), only })) {
    if (selects(selection, slot)) yield slot;
  }
}

/** Visits every selected slot in no particular order, without sorting; for counting. */
export function* anyOrderSlots(
  selection: RunSelection,
  protocol: Protocol,
  taskIds: TaskIds,
): Generator<Slot> {
  for (const slot of expandSlots(protocol, taskIds)) if (selects(selection, slot)) yield slot;
}

export function isWholePlan(selection: RunSelection): boolean {
  return selection.shard === null && selection.only.size === 0;
}

/** The selection as a ledger entry shows it. */
export function describeSelection(
  selection: RunSelection,
  limit: number | null,
): Readonly<Record<string, string | number>> {
  const { shard, only } = selection;
  return {
    ...(shard === null ? {} : { shard: `${shard.index}/${shard.count}` }),
    ...Object.fromEntries([...only].map(([field, values]) => [field, [...values].join(',').slice(0, 1000)])),
    ...(limit === null ? {} : { limit }),
  };
}

function selects({ shard, only }: RunSelection, slot: Slot): boolean {
  if (shard !== null && shardOf(slot.id, shard.count) !== shard.index) return false;
  for (const [field, values] of only) if (!values.has(fieldOf(slot, field))) return false;
  return true;
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

function refuseFilter(name: string): never {
  throw new BoundbookError('USAGE', `--only takes field=value, and ${JSON.stringify(name)} is no field`, {
    hint: spellingHint(name, SELECTABLE),
  });
}
