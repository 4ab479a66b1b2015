import type { JsonValue } from '../core/json.js';
import type { LoadedPlan } from '../planning/load.js';
import type { PlanView } from '../planning/plan-text.js';
import type { CommandContext, CommandDefinition, OptionValue } from './command.js';

type Options = Readonly<Record<string, OptionValue>>;

export const command: CommandDefinition = {
  name: 'plan',
  args: '<protocol>',
  summary: 'show what a protocol plans: slots, standard errors, sampling seeds, order, shards',
  options: [
    { flags: '--slots <file>', description: 'write the slots file; the name must be new' },
    { flags: '--shards <n>', description: 'show how many slots each of n shards has' },
    { flags: '--first <n>', description: 'show the first n slots in plan order (default 5)' },
    { flags: '--assume <accuracy>', description: 'the standard errors for this accuracy only, 0 to 1' },
  ],
  examples: [
    'boundbook plan protocol/demo.yaml',
    'boundbook plan protocol/demo.yaml --shards 4 --first 20',
    'boundbook plan protocol/demo.yaml --slots slots.jsonl && sha256sum slots.jsonl',
  ],
  next: 'boundbook freeze fixes the plan in a manifest',
  run: async ([path = ''], options, context) => {
    const { loadPlan } = await import('../planning/load.js');
    const { planText } = await import('../planning/plan-text.js');
    const settings = await readOptions(options);
    const loaded = await loadPlan(context.root, path);
    const view = await planView(loaded, settings, context);
    return { text: planText(view, path), json: planJson(view, path, loaded) };
  },
};

interface Settings {
  readonly slotsFile: string | null;
  readonly shards: number | null;
  readonly first: number;
  readonly accuracies: readonly number[] | undefined;
}

async function readOptions(options: Options): Promise<Settings> {
  const { integerOption, textOption } = await import('./options.js');
  const { BoundbookError } = await import('../core/errors.js');
  const assume = textOption(options.assume, '--assume');
  if (assume !== undefined && !/^(?:0(?:\.[0-9]+)?|1(?:\.0+)?)$/.test(assume)) {
    throw new BoundbookError(
      'USAGE',
      `--assume takes an accuracy from 0 to 1, not ${JSON.stringify(assume)}`,
      {
        hint: 'Write --assume 0.85, for example.',
      },
    );
  }
  return {
    slotsFile: textOption(options.slots, '--slots') ?? null,
    shards: integerOption(options.shards, '--shards', { min: 1, max: 10_000 }) ?? null,
    first: integerOption(options.first, '--first', { min: 0, max: 100_000 }) ?? 5,
    accuracies: assume === undefined ? undefined : [Number(assume)],
  };
}

/** Splits nobody asked for are shown up to this number of slots: each takes a pass over the plan. */
const MAX_SPLIT_SLOTS = 200_000;

async function planView(loaded: LoadedPlan, settings: Settings, context: CommandContext): Promise<PlanView> {
  const { protocol } = loaded.document;
  const { ids } = loaded.sets;
  const [{ countSlots }, { queuePrecision }, { firstSlots, shardSizes }, { planDigest }, { weightLoads }] =
    await Promise.all([
      import('../planning/counts.js'),
      import('../planning/precision.js'),
      import('../planning/preview.js'),
      import('../slots/plan.js'),
      import('../planning/weight-loads.js'),
    ]);
  const plan = planDigest(protocol, ids);
  const splits = settings.shards === null && plan.count <= MAX_SPLIT_SLOTS ? [2, 4] : [];
  if (settings.slotsFile !== null) await writeSlots(loaded, settings.slotsFile, context);
  return {
    counts: countSlots(protocol, ids),
    plan,
    order: protocol.order,
    precision: queuePrecision(protocol, ids, settings.accuracies),
    first: firstSlots(protocol, ids, settings.first, settings.shards),
    shards: settings.shards === null ? null : shardSizes(protocol, ids, settings.shards),
    splits: splits.map((shards) => shardSizes(protocol, ids, shards)),
    loads: plan.count <= MAX_SPLIT_SLOTS ? weightLoads(protocol, ids) : null,
    slotsFile: settings.slotsFile,
  };
}

async function writeSlots(loaded: LoadedPlan, file: string, context: CommandContext): Promise<void> {
  const { resolve } = await import('node:path');
  const { createFileDurable } = await import('../core/files.js');
  const { slotsText } = await import('../planning/preview.js');
  context.progress(`writing ${file}`);
  await createFileDurable(resolve(context.root, file), slotsText(loaded.document.protocol, loaded.sets.ids));
}

function planJson(view: PlanView, path: string, { document }: LoadedPlan): JsonValue {
  const { protocol } = document;
  return {
    protocol: { path, name: protocol.name, revision: protocol.revision, digest: document.rawDigest },
    plan: { count: view.plan.count, digest: view.plan.digest },
    weight_loads: view.loads === null ? null : { ...view.loads },
    queues: view.counts.queues,
    rows: view.counts.rows.map((row) => ({
      queue: row.queue,
      arm: row.arm,
      training_seed: row.trainingSeed,
      tasks: row.tasks,
      reps: row.reps,
      evaluations: row.evaluations,
      slots: row.slots,
    })),
    standard_errors: view.precision.map((queue) => ({
      queue: queue.queue,
      tasks: queue.tasks,
      reps: queue.reps,
      errors: queue.errors.map((error) => ({
        accuracy: error.accuracy,
        standard_error: error.standardError,
      })),
    })),
    sampling: { namespace: protocol.sampling.namespace, bits: protocol.sampling.bits },
    order: { group_by: protocol.order.group_by, within: protocol.order.within },
    first: view.first.map((slot) => ({
      position: slot.position,
      slot: slot.id,
      queue: slot.queue,
      arm: slot.arm,
      training_seed: slot.trainingSeed,
      evaluation_seed: slot.evaluationSeed,
      task: slot.task,
      rep: slot.rep,
      sampling_seed: slot.samplingSeed,
      shard: slot.shard,
    })),
    shards: view.shards,
    slots_file: view.slotsFile,
  };
}
