import type { CommandDefinition } from './command.js';

const MAX_WORKERS = 10_000;
const DEFAULT_WORKERS = 8;

export const command: CommandDefinition = {
  name: 'run',
  args: '[manifest]',
  summary: 'check everything that is bound, then execute what is left of the plan and keep the book of it',
  options: [
    {
      flags: '--workers <n>',
      description: `attempts at the same time (default ${DEFAULT_WORKERS})`,
    },
    { flags: '--shard <i/n>', description: 'only the slots of one shard, counted from 0' },
    {
      flags: '--only <field=value...>',
      description: 'only some slots: queue=…, arm=…, training_seed=…, evaluation_seed=…, task=…, slot=…',
    },
    { flags: '--limit <n>', description: 'take up so many slots, then stop' },
  ],
  examples: [
    'boundbook run --workers 32',
    'boundbook run obme-final --shard 0/4',
    'boundbook run --only queue=holdout100x16,arm=M,B --limit 10',
  ],
  interruptible: true,
  next: 'boundbook status; boundbook unblind, when every confirmatory slot is closed.',
  run: async ([manifest], options, context) => {
    const { runSession } = await import('../runner/session.js');
    const { parseFilters } = await import('../slots/selector.js');
    const { integerOption, listOption, shardOption } = await import('./options.js');
    const { hashProgress } = await import('./manifest-output.js');
    const { root, terminal, progress, signal, force, now } = context;
    const summary = await runSession({
      root,
      manifest,
      workers: integerOption(options.workers, '--workers', { min: 1, max: MAX_WORKERS }) ?? DEFAULT_WORKERS,
      selection: {
        shard: shardOption(options.shard) ?? null,
        only: parseFilters(listOption(options.only, '--only')),
      },
      limit: integerOption(options.limit, '--limit', { min: 1, max: Number.MAX_SAFE_INTEGER }) ?? null,
      terminal,
      progress,
      signal,
      force,
      now,
      onHash: hashProgress(progress),
    });
    return { text: summary.text, json: summary.json };
  },
};
