import { partsOf } from './references.js';
import type { Protocol } from './schema/protocol.js';
import type { TaskSet } from './schema/task-sets.js';
import { TaskFaults } from './task-faults.js';
import { checkTaskFields } from './task-fields.js';
import { readIdList, readTaskLines, type Task } from './task-lines.js';

export type { Task } from './task-lines.js';

/** Task ids of every task set, in file order. */
export type TaskIds = ReadonlyMap<string, readonly string[]>;

export interface TaskSets {
  readonly ids: TaskIds;
  /** The tasks of every set by id, in the same order. */
  readonly tasks: ReadonlyMap<string, ReadonlyMap<string, Task>>;
}

export interface TaskFile {
  /** `tasks/<set>`: the name under which the file is bound. */
  readonly binding: string;
  readonly path: string;
}

/** The files that task sets are read from, in the order of the sets' names. A union has none of its own. */
export function taskFiles(protocol: Protocol): readonly TaskFile[] {
  return Object.keys(protocol.task_sets)
    .sort()
    .flatMap((name) => {
      const set = protocol.task_sets[name];
      const path = set === undefined ? null : pathOf(set);
      return path === null ? [] : [{ binding: `tasks/${name}`, path }];
    });
}

function pathOf(set: TaskSet): string | null {
  if ('file' in set) return set.file;
  return 'subset_of' in set ? set.ids : null;
}

/**
 * Reads all task sets and checks them against the protocol: counts, ids, subsets and unions, partitions inside their
 * queue's tasks, and the fields that prompts and graders use.
 *
 * @param files the bytes of every file of {@link taskFiles}, by binding name
 * @throws {BoundbookError} TASKS_INVALID with all faults, the first 50 listed.
 */
export function resolveTaskSets(protocol: Protocol, files: ReadonlyMap<string, Uint8Array>): TaskSets {
  const faults = new TaskFaults();
  const tasks = readTaskSets(protocol, files, faults);
  // What follows from a broken set would only repeat its faults.
  if (faults.total === 0) {
    checkPartitions(protocol, tasks, faults);
    checkTaskFields(protocol, tasks, faults);
  }
  faults.throwIfAny();
  const ids = new Map([...tasks].map(([name, set]) => [name, Object.freeze([...set.keys()])]));
  return { ids, tasks };
}

/**
 * Reads the task sets that have their files and checks each by itself: form, ids, counts, subsets and unions. Works for
 * a protocol with faults too; sets whose parts are not declared, or go round in a circle, are not judged.
 *
 * @param files as for {@link resolveTaskSets}; a file that is missing is a fault, unless it is one of `unreadable`
 * @param unreadable binding names of files whose fault is known already
 */
export function readTaskSets(
  protocol: Protocol,
  files: ReadonlyMap<string, Uint8Array>,
  faults: TaskFaults,
  unreadable: ReadonlySet<string> = new Set(),
): ReadonlyMap<string, ReadonlyMap<string, Task>> {
  const resolver = new Resolver(protocol, files, faults, unreadable);
  const tasks = new Map<string, ReadonlyMap<string, Task>>();
  for (const name of Object.keys(protocol.task_sets).sort()) tasks.set(name, resolver.resolve(name));
  return tasks;
}

class Resolver {
  readonly #protocol: Protocol;
  readonly #files: ReadonlyMap<string, Uint8Array>;
  readonly #faults: TaskFaults;
  readonly #unreadable: ReadonlySet<string>;
  readonly #done = new Map<string, ReadonlyMap<string, Task>>();
  /** Sets without a fault of their own or of their parts: only these are held against others. */
  readonly #sound = new Set<string>();

  constructor(
    protocol: Protocol,
    files: ReadonlyMap<string, Uint8Array>,
    faults: TaskFaults,
    unreadable: ReadonlySet<string>,
  ) {
    this.#unreadable = unreadable;
    this.#protocol = protocol;
    this.#files = files;
    this.#faults = faults;
  }

  /** The tasks of a set. */
  resolve(name: string): ReadonlyMap<string, Task> {
    const done = this.#done.get(name);
    if (done !== undefined) return done;
    const set = this.#protocol.task_sets[name];
    if (set === undefined) return new Map();
    // Ends a circle of sets, which is a fault of the protocol.
    this.#done.set(name, new Map());
    if (this.#unreadable.has(`tasks/${name}`)) return new Map();
    for (const part of partsOf(set)) this.resolve(part);
    const before = this.#faults.total;
    const tasks = this.#read(name, set);
    this.#done.set(name, tasks);
    if (this.#faults.total > before || !partsOf(set).every((part) => this.#sound.has(part))) return tasks;
    this.#checkCount(name, set, tasks.size);
    if (tasks.size === set.count) this.#sound.add(name);
    return tasks;
  }

  #checkCount(name: string, set: TaskSet, size: number): void {
    if (size === set.count) return;
    this.#faults.add(
      pathOf(set) ?? `task set ${name}`,
      null,
      `the task set ${JSON.stringify(name)} has ${size} tasks, not the declared ${set.count}`,
      'Restore the file (it may be cut short or appended to), or correct the count.',
    );
  }

  #read(name: string, set: TaskSet): ReadonlyMap<string, Task> {
    if ('union_of' in set) return this.#union(name, set.union_of);
    const bytes = this.#files.get(`tasks/${name}`);
    if (bytes === undefined) {
      this.#faults.add(
        pathOf(set) ?? name,
        null,
        'the task file is missing',
        'Put it there, or correct its path.',
      );
      return new Map();
    }
    if ('file' in set) return readTaskLines(bytes, set.file, set.id, this.#faults);
    return this.#subset(set, bytes);
  }

  #subset(set: Extract<TaskSet, { subset_of: string }>, bytes: Uint8Array): ReadonlyMap<string, Task> {
    const all = this.resolve(set.subset_of);
    const tasks = new Map<string, Task>();
    for (const id of readIdList(bytes, set.ids, this.#faults)) {
      const task = all.get(id);
      if (task !== undefined) tasks.set(id, task);
      else if (this.#sound.has(set.subset_of)) {
        this.#faults.add(
          set.ids,
          null,
          `the task ${JSON.stringify(id)} is not in the task set ${JSON.stringify(set.subset_of)}`,
          'Correct the id, or the set that this one is a subset of.',
        );
      }
    }
    return tasks;
  }

  #union(name: string, parts: readonly string[]): ReadonlyMap<string, Task> {
    const tasks = new Map<string, Task>();
    for (const part of parts) {
      for (const [id, task] of this.resolve(part)) {
        if (tasks.has(id)) {
          this.#faults.add(
            `task set ${name}`,
            null,
            `the task ${JSON.stringify(id)} is in more than one part`,
            'Parts of a union share no task.',
          );
        }
        tasks.set(id, task);
      }
    }
    return tasks;
  }
}

/** A partition reports on tasks of its table's queue, so all of them must run there. */
export function checkPartitions(
  protocol: Protocol,
  tasks: ReadonlyMap<string, ReadonlyMap<string, Task>>,
  faults: TaskFaults,
): void {
  for (const table of protocol.analysis.tables ?? []) {
    const planned = tasks.get(protocol.queues[table.queue]?.tasks ?? '');
    for (const partition of table.partitions) {
      const outside = [...(tasks.get(partition)?.keys() ?? [])].filter((id) => planned?.has(id) !== true);
      if (outside.length === 0) continue;
      faults.add(
        `table ${table.id}`,
        null,
        `${outside.length} tasks of the partition ${JSON.stringify(partition)} do not run in the queue ` +
          `${JSON.stringify(table.queue)}, ${JSON.stringify(outside[0])} among them`,
        'Name a partition of the tasks of that queue.',
      );
    }
  }
}
