import { partsOf } from './references.js';
import type { Protocol } from './schema/protocol.js';
import { TaskFaults } from './task-faults.js';
import { checkPartitions, readTaskSets, type TaskSets } from './tasks.js';

/** Task sets of which some are known by their ids alone. */
export interface PartialTaskSets extends TaskSets {
  /** Sets whose tasks have no fields but the id. */
  readonly bare: ReadonlySet<string>;
}

/**
 * {@link resolveTaskSets} where the contents of some files are withheld and their ids are stated instead. What a field
 * must be cannot be checked then.
 *
 * @param ids the ids of each withheld file in its order, by task set
 * @throws {BoundbookError} TASKS_INVALID as `resolveTaskSets`
 */
export function resolvePartialTaskSets(
  protocol: Protocol,
  files: ReadonlyMap<string, Uint8Array>,
  ids: ReadonlyMap<string, readonly string[]>,
): PartialTaskSets {
  const faults = new TaskFaults();
  const stated = new Map(files);
  for (const [name, list] of ids) {
    const set = protocol.task_sets[name];
    if (set === undefined || 'union_of' in set) continue;
    const lines = list.map((id) => ('file' in set ? JSON.stringify({ [set.id]: id }) : id));
    stated.set(`tasks/${name}`, Buffer.from(lines.map((line) => `${line}\n`).join('')));
  }
  const tasks = readTaskSets(protocol, stated, faults);
  if (faults.total === 0) checkPartitions(protocol, tasks, faults);
  faults.throwIfAny();
  return {
    ids: new Map([...tasks].map(([name, set]) => [name, Object.freeze([...set.keys()])])),
    tasks,
    bare: bareSets(protocol, new Set(ids.keys())),
  };
}

/** A subset or union has the fields of what it is a part of. */
function bareSets(protocol: Protocol, withheld: ReadonlySet<string>): ReadonlySet<string> {
  const isBare = (name: string): boolean => {
    const set = protocol.task_sets[name];
    if (set === undefined) return false;
    return 'file' in set ? withheld.has(name) : partsOf(set).some(isBare);
  };
  return new Set(Object.keys(protocol.task_sets).filter(isBare));
}
