import { canonicalText } from '../core/canonical-json.js';
import type { Manifest } from '../manifest/manifest.js';
import type { Task, TaskSets } from '../protocol/tasks.js';
import type { SlotKey } from '../slots/slot.js';

/** A plan with its tasks. */
export interface PlannedTasks {
  readonly manifest: Pick<Manifest, 'protocol' | 'bindings'>;
  readonly tasks: TaskSets;
}

/** What a slot rests on, by name, each as canonical text. */
type Conditions = ReadonlyMap<string, string>;

/**
 * Tells what differs between two plans for a slot that both hold. A slot's outcome may be carried from one to the other
 * when nothing does: model, condition, arm, task, sampling, runner, rules of attempts, and the digest of everything
 * that is bound for it. Which training seeds, reps, tasks and queues there are besides does not count.
 */
export class ConditionComparison {
  readonly #before: PlannedTasks;
  readonly #after: PlannedTasks;
  readonly #blocks = new Map<string, readonly string[]>();
  readonly #tasks = new Map<string, boolean>();
  readonly #queues = new Map<string, boolean>();

  constructor(before: PlannedTasks, after: PlannedTasks) {
    this.#before = before;
    this.#after = after;
  }

  /** Names of what differs; empty when the conditions are the same. */
  differences(key: SlotKey): readonly string[] {
    const block = this.#blockDifferences(key);
    return this.#hasSameTask(key) ? block : [...block, 'task'];
  }

  #blockDifferences({ arm, trainingSeed }: SlotKey): readonly string[] {
    const name = JSON.stringify([arm, trainingSeed]);
    const known = this.#blocks.get(name);
    if (known !== undefined) return known;
    const before = conditionsOf(this.#before.manifest, arm, trainingSeed);
    const after = conditionsOf(this.#after.manifest, arm, trainingSeed);
    const names = [...new Set([...before.keys(), ...after.keys()])];
    const different = names.filter((one) => before.get(one) !== after.get(one)).sort();
    this.#blocks.set(name, different);
    return different;
  }

  /** Whether a queue's tasks are read from the very same files: then each of them is the same, whether at hand or not. */
  #hasSameFiles(queue: string): boolean {
    const known = this.#queues.get(queue);
    if (known !== undefined) return known;
    const [before, after] = [this.#before, this.#after].map(({ manifest }) =>
      sourcesOf(manifest, manifest.protocol.queues[queue]?.tasks ?? ''),
    );
    const same = before === after && before !== 'null';
    this.#queues.set(queue, same);
    return same;
  }

  #hasSameTask({ queue, task }: SlotKey): boolean {
    if (this.#hasSameFiles(queue)) return true;
    const name = JSON.stringify([queue, task]);
    const known = this.#tasks.get(name);
    if (known !== undefined) return known;
    const [before, after] = [this.#before, this.#after].map((plan) => taskOf(plan, queue, task));
    const same =
      before !== undefined &&
      after !== undefined &&
      canonicalText(before.fields) === canonicalText(after.fields);
    this.#tasks.set(name, same);
    return same;
  }
}

/** A task set with the digests of all files that it is read from. */
function sourcesOf({ protocol, bindings }: PlannedTasks['manifest'], name: string): string {
  const set = protocol.task_sets[name];
  if (set === undefined) return 'null';
  const digest = bindings.find((one) => one.name === `tasks/${name}`)?.digest ?? null;
  const parts = 'subset_of' in set ? [set.subset_of] : 'union_of' in set ? set.union_of : [];
  return canonicalText({ set, digest, parts: parts.map((part) => sourcesOf({ protocol, bindings }, part)) });
}

function conditionsOf(
  { protocol, bindings }: PlannedTasks['manifest'],
  arm: string,
  trainingSeed: number | null,
): Conditions {
  const { model = '', condition = '' } = protocol.arms[arm] ?? {};
  const { training_seeds: _seeds, ...modelEntry } = protocol.models[model] ?? { weights: '' };
  const { replacements, regrades, rules } = protocol.attempts;
  const weights = trainingSeed === null ? model : `${model}@${trainingSeed}`;
  const bound = new Set([`weights/${weights}`, `tokenizer/${weights}`, `report-schema/${condition}`]);
  return new Map([
    ['arm', canonicalText({ model, condition })],
    ['model', canonicalText(modelEntry)],
    ['condition', canonicalText(protocol.conditions[condition] ?? null)],
    ['sampling', canonicalText(protocol.sampling)],
    ['runner', canonicalText(protocol.runner)],
    ['attempts', canonicalText({ replacements, regrades, rules })],
    ...bindings
      .filter(({ name }) => bound.has(name) || name.startsWith('runner/'))
      .map(({ name, digest }): [string, string] => [`binding ${name}`, digest]),
  ]);
}

function taskOf({ manifest, tasks }: PlannedTasks, queue: string, task: string): Task | undefined {
  return tasks.tasks.get(manifest.protocol.queues[queue]?.tasks ?? '')?.get(task);
}
