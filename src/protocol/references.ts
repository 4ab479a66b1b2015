import type { ProtocolFault } from './fault-list.js';
import type { Path } from './json-pointer.js';
import { spellingHint } from './nearest.js';
import type { Contrast } from './schema/analysis.js';
import type { Protocol } from './schema/protocol.js';
import type { TaskSet } from './schema/task-sets.js';

/** Collects faults by path. */
export class FaultCollector {
  readonly faults: ProtocolFault[] = [];
  readonly #isUnreadable: (kind: string, name: string) => boolean;

  /** @param isUnreadable whether a name was declared, but not in a form that can be read: a fault of its own */
  constructor(isUnreadable: (kind: string, name: string) => boolean = () => false) {
    this.#isUnreadable = isUnreadable;
  }

  add(path: Path, message: string, hint: string): void {
    this.faults.push({ path, message, hint });
  }

  /** Faults when `name` is not declared among the keys of `declared`. */
  refer(path: Path, kind: string, name: string, declared: object): boolean {
    if (Object.hasOwn(declared, name)) return true;
    if (this.#isUnreadable(kind, name)) return false;
    this.add(
      path,
      `${JSON.stringify(name)} is no declared ${kind}`,
      spellingHint(name, Object.keys(declared)),
    );
    return false;
  }

  /** Faults for every value that occurs a second time. */
  once(path: Path, kind: string, values: readonly (string | number)[]): void {
    const seen = new Set<string | number>();
    values.forEach((value, i) => {
      if (seen.has(value)) {
        this.add([...path, i], `${kind} ${JSON.stringify(value)} is listed twice`, 'List it once.');
      }
      seen.add(value);
    });
  }
}

/** Checks that everything a protocol names is declared, and fits where it is named. */
export function referenceFaults(
  protocol: Protocol,
  isUnreadable?: (kind: string, name: string) => boolean,
): readonly ProtocolFault[] {
  const collector = new FaultCollector(isUnreadable);
  checkTaskSets(protocol, collector);
  checkArms(protocol, collector);
  checkQueues(protocol, collector);
  checkAnalysis(protocol, collector);
  checkContrasts(protocol, collector);
  collector.once(['order', 'group_by'], 'the field', protocol.order.group_by);
  return collector.faults;
}

/** The sets that a set is made of. */
export function partsOf(set: TaskSet): readonly string[] {
  if ('subset_of' in set) return [set.subset_of];
  return 'union_of' in set ? set.union_of : [];
}

function checkTaskSets(protocol: Protocol, collector: FaultCollector): void {
  const sets = protocol.task_sets;
  for (const [name, set] of Object.entries(sets)) {
    const path: Path = ['task_sets', name];
    if ('subset_of' in set) collector.refer([...path, 'subset_of'], 'task set', set.subset_of, sets);
    if ('union_of' in set) {
      set.union_of.forEach((part, i) => {
        collector.refer([...path, 'union_of', i], 'task set', part, sets);
      });
      collector.once([...path, 'union_of'], 'the task set', set.union_of);
    }
    checkCount(protocol, name, set, collector);
  }
  for (const name of unresolvable(protocol)) {
    collector.add(
      ['task_sets', name],
      `the task set ${JSON.stringify(name)} is made of itself, or of sets that are`,
      `Break the circle; sets of sets may be nested ${MAX_NESTING} deep.`,
    );
  }
}

const MAX_NESTING = 50;

/** The sets that are not made of files in the end: those of a circle, those that rest on one, and endless chains. */
function unresolvable(protocol: Protocol): readonly string[] {
  let open = Object.keys(protocol.task_sets);
  const resolved = new Set<string>();
  for (let round = 0; round < MAX_NESTING && open.length > 0; round++) {
    const ready = open.filter((name) => {
      const set = own(protocol.task_sets, name);
      // A part that is not declared is a fault of its own.
      return (
        set === undefined ||
        partsOf(set).every((part) => resolved.has(part) || !Object.hasOwn(protocol.task_sets, part))
      );
    });
    if (ready.length === 0) break;
    for (const name of ready) resolved.add(name);
    open = open.filter((name) => !resolved.has(name));
  }
  return open;
}

function checkCount(protocol: Protocol, name: string, set: TaskSet, collector: FaultCollector): void {
  const counts = partsOf(set).map((part) => own(protocol.task_sets, part)?.count);
  if (counts.some((count) => count === undefined)) return;
  const total = counts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
  const path: Path = ['task_sets', name, 'count'];
  if ('subset_of' in set && set.count > total) {
    collector.add(path, `a subset of ${total} tasks cannot have ${set.count}`, 'Correct one of the counts.');
  }
  if ('union_of' in set && set.count !== total) {
    collector.add(
      path,
      `the union's parts have ${total} tasks together, not ${set.count}`,
      'Parts of a union share no task; correct the count.',
    );
  }
}

function checkArms(protocol: Protocol, collector: FaultCollector): void {
  const seen = new Map<string, string>();
  for (const [name, arm] of Object.entries(protocol.arms)) {
    collector.refer(['arms', name, 'model'], 'model', arm.model, protocol.models);
    collector.refer(['arms', name, 'condition'], 'condition', arm.condition, protocol.conditions);
    const pair = JSON.stringify([arm.model, arm.condition]);
    const twin = seen.get(pair);
    if (twin !== undefined) {
      collector.add(
        ['arms', name],
        `the arms ${JSON.stringify(twin)} and ${JSON.stringify(name)} are the same model and condition`,
        'Keep one; two names for one thing would count it twice.',
      );
    }
    seen.set(pair, name);
  }
}

function checkQueues(protocol: Protocol, collector: FaultCollector): void {
  if (Object.keys(protocol.queues).length === 0) {
    collector.add(['queues'], 'there is no queue, so nothing is planned', 'Declare at least one queue.');
  }
  for (const [name, queue] of Object.entries(protocol.queues)) {
    const path: Path = ['queues', name];
    collector.refer([...path, 'tasks'], 'task set', queue.tasks, protocol.task_sets);
    queue.arms.forEach((arm, i) => {
      collector.refer([...path, 'arms', i], 'arm', arm, protocol.arms);
    });
    collector.once([...path, 'arms'], 'the arm', queue.arms);
    collector.once([...path, 'evaluation_seeds'], 'the evaluation seed', queue.evaluation_seeds ?? []);
  }
  for (const [name, model] of Object.entries(protocol.models)) {
    collector.once(['models', name, 'training_seeds'], 'the training seed', model.training_seeds ?? []);
  }
}

function checkAnalysis(protocol: Protocol, collector: FaultCollector): void {
  const { analysis, queues, task_sets } = protocol;
  analysis.scores.forEach((score, i) => {
    collector.refer(['analysis', 'scores', i, 'queue'], 'queue', score.queue, queues);
  });
  (analysis.tables ?? []).forEach((table, i) => {
    const path: Path = ['analysis', 'tables', i];
    collector.refer([...path, 'queue'], 'queue', table.queue, queues);
    table.partitions.forEach((partition, j) => {
      collector.refer([...path, 'partitions', j], 'task set', partition, task_sets);
    });
    collector.once([...path, 'partitions'], 'the partition', table.partitions);
  });
  const contrasts = Object.fromEntries(analysis.contrasts.map((contrast) => [contrast.id, contrast]));
  (analysis.decisions ?? []).forEach((decision, i) => {
    const path: Path = ['analysis', 'decisions', i];
    collector.refer([...path, 'contrast'], 'contrast', decision.contrast, contrasts);
    if (decision.when_met === decision.otherwise) {
      collector.add(
        [...path, 'otherwise'],
        'both outcomes of the decision are the same',
        'Say what differs.',
      );
    }
  });
  const precise = (protocol.precision ?? []).map((precision) => precision.queue);
  precise.forEach((queue, i) => {
    collector.refer(['precision', i, 'queue'], 'queue', queue, queues);
  });
}

function checkContrasts(protocol: Protocol, collector: FaultCollector): void {
  const seen = new Map<string, string>();
  protocol.analysis.contrasts.forEach((contrast, i) => {
    const path: Path = ['analysis', 'contrasts', i];
    checkContrast(protocol, contrast, path, collector);
    const pair = [contrast.minuend, contrast.subtrahend].sort();
    const key = JSON.stringify([contrast.queue, ...pair]);
    const twin = seen.get(key);
    if (twin !== undefined) {
      collector.add(
        path,
        `the contrast ${JSON.stringify(twin)} compares the same two arms in the same queue`,
        'Keep one: a contrast has one direction, which is fixed before outcomes are seen (P9).',
      );
    }
    seen.set(key, contrast.id);
  });
}

function checkContrast(protocol: Protocol, contrast: Contrast, path: Path, collector: FaultCollector): void {
  const { minuend, subtrahend } = contrast;
  const queue = own(protocol.queues, contrast.queue);
  collector.refer([...path, 'queue'], 'queue', contrast.queue, protocol.queues);
  for (const side of ['minuend', 'subtrahend'] as const) {
    const arm = contrast[side];
    if (!collector.refer([...path, side], 'arm', arm, protocol.arms) || queue === undefined) continue;
    if (!queue.arms.includes(arm)) {
      collector.add(
        [...path, side],
        `the arm ${JSON.stringify(arm)} does not run in the queue ${JSON.stringify(contrast.queue)}`,
        'Add the arm to the queue, or name a queue that has both arms.',
      );
    }
  }
  if (minuend === subtrahend) {
    collector.add(path, 'a contrast needs two different arms', 'Correct one side.');
  }
  if (contrast.role === 'primary' && queue !== undefined && queue.role !== 'confirmatory') {
    collector.add(
      [...path, 'role'],
      `a primary contrast needs a confirmatory queue; ${JSON.stringify(contrast.queue)} is ${queue.role}`,
      'Make the contrast exploratory, or name a confirmatory queue.',
    );
  }
  checkSeeds(protocol, contrast, path, collector);
}

/** A contrast pairs the training seeds that both arms have. */
function checkSeeds(protocol: Protocol, contrast: Contrast, path: Path, collector: FaultCollector): void {
  const seeds = [contrast.minuend, contrast.subtrahend].map((name) => {
    const arm = own(protocol.arms, name);
    return arm === undefined ? undefined : own(protocol.models, arm.model)?.training_seeds;
  });
  const [left, right] = seeds;
  if (left === undefined || right === undefined || left.some((seed) => right.includes(seed))) return;
  collector.add(
    path,
    `${JSON.stringify(contrast.minuend)} and ${JSON.stringify(contrast.subtrahend)} have no training seed in common`,
    'A contrast pairs equal training seeds; declare at least one for both.',
  );
}

function own<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
