import type { RestoreRequest } from '../ledger/restore.js';
import type { CommandDefinition, OptionValue } from './command.js';

const MAX_WORKERS = 10_000;
const DEFAULT_WORKERS = 8;
const MAX_REASON = 4000;

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
    {
      flags: '--key <file>',
      description: 'private key that signs the checkpoints (default: the file that BOUNDBOOK_KEY names)',
    },
    {
      flags: '--restored <file>',
      description:
        'go on with an older copy of the ledger: FILE is the last checkpoint or .head that is known',
    },
    { flags: '--reason <text>', description: 'why an older copy had to be put back, for the record' },
    {
      flags: '--recheck-stopped <fraction>',
      description:
        'when the plan is done: generate this share of the outputs that loop_stop ended again without it, exploratory',
    },
    {
      flags: '--limit <n>',
      description: 'take up so many slots, then stop; 0: only finish what was started',
    },
  ],
  examples: [
    'boundbook run --workers 32',
    'boundbook run obme-final --shard 0/4',
    'boundbook run --restored checkpoints/1200.note --reason "disk of node 3 died, copy of Monday put back"',
    'boundbook run --recheck-stopped 0.1',
    'boundbook run --only queue=holdout100x16,arm=M,B --limit 10',
  ],
  interruptible: true,
  next: 'boundbook status; boundbook unblind, when every confirmatory slot is closed.',
  run: async ([manifest], options, context) => {
    const { runSession } = await import('../runner/run.js');
    const { parseFilters } = await import('../slots/selector.js');
    const { integerOption, listOption, shardOption } = await import('./options.js');
    const { hashProgress } = await import('./manifest-output.js');
    const { ledgerKeyOption } = await import('./signing-key.js');
    const { root, terminal, progress, signal, force, now } = context;
    const key = await ledgerKeyOption(options.key, root);
    const summary = await runSession({
      root,
      key,
      manifest,
      workers: integerOption(options.workers, '--workers', { min: 1, max: MAX_WORKERS }) ?? DEFAULT_WORKERS,
      selection: {
        shard: shardOption(options.shard) ?? null,
        only: parseFilters(listOption(options.only, '--only')),
      },
      recheck: await recheckFraction(options),
      restore: await restoreRequest(root, options.restored, options.reason),
      limit: integerOption(options.limit, '--limit', { min: 0, max: Number.MAX_SAFE_INTEGER }) ?? null,
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

/** @throws {BoundbookError} USAGE for no fraction, and for one with a part of the plan. */
async function recheckFraction(options: Readonly<Record<string, OptionValue>>): Promise<string | undefined> {
  const { textOption, usageError } = await import('./options.js');
  const { FRACTION } = await import('../ledger/recheck-sample.js');
  const fraction = textOption(options.recheckStopped, '--recheck-stopped');
  if (fraction === undefined) return undefined;
  if (!FRACTION.test(fraction)) {
    throw usageError(
      `--recheck-stopped takes a decimal fraction above 0 and up to 1, not ${JSON.stringify(fraction)}`,
      'Write 0.1 or 1: plain digits, at most nine behind the point, the last of them not 0.',
    );
  }
  const part = ['shard', 'only', 'limit'].find((name) => options[name] !== undefined);
  if (part === undefined) return fraction;
  throw usageError(
    `--recheck-stopped does not go with --${part}`,
    'Its sample is drawn from all stopped outputs of the plan, so that nobody chooses.',
  );
}

/** @throws {BoundbookError} USAGE when one of the two flags is missing; as `readOutsideState`. */
async function restoreRequest(
  root: string,
  restored: OptionValue,
  reasonGiven: OptionValue,
): Promise<RestoreRequest | undefined> {
  const { textOption } = await import('./options.js');
  const file = textOption(restored, '--restored');
  const reason = textOption(reasonGiven, '--reason');
  if (file === undefined && reason === undefined) return undefined;
  const { BoundbookError } = await import('../core/errors.js');
  if (file === undefined || reason === undefined || reason.length > MAX_REASON || !reason.isWellFormed()) {
    throw new BoundbookError('USAGE', '--restored FILE and --reason TEXT belong together', {
      hint: `FILE is the latest checkpoint or .head of the ledger that is known; TEXT has at most ${MAX_REASON} characters.`,
    });
  }
  const { resolve } = await import('node:path');
  const { readOutsideState } = await import('../ledger/outside-state.js');
  return { file, outside: await readOutsideState(resolve(root, file)), reason };
}
