import type { Book } from '../ledger/book.js';
import type { LedgerStore } from '../ledger/store.js';
import type { CommandContext, CommandDefinition, CommandResult, OptionValue } from './command.js';

export const command: CommandDefinition = {
  name: 'note',
  args: '[manifest]',
  summary: "record a deviation and the slots that it touches, or a scheduler's account of the devices",
  options: [
    { flags: '--text <text>', description: 'what was changed, and why' },
    {
      flags: '--slots <field=value...>',
      description:
        'the slots it touches: queue=…, arm=…, training_seed=…, evaluation_seed=…, task=…, slot=…; or all',
    },
    {
      flags: '--slurm-account <file>',
      description:
        'what Slurm says of the jobs that sessions ran in: sacct --parsable2 --format=JobIDRaw,ElapsedRaw,AllocTRES',
    },
  ],
  examples: [
    'boundbook note --slots arm=M,training_seed=42 --text "loop stopping was switched on at 14:00"',
    'boundbook note obme-final --slots all --text "the rack lost power for an hour"',
    'boundbook note --slurm-account sacct.txt',
  ],
  next: 'boundbook report and boundbook audit list every note; GPU hours come from the account then.',
  run: async ([manifest], options, context) => {
    const { openBook } = await import('../ledger/book.js');
    const { readWorkspace } = await import('../manifest/workspace.js');
    const { assertInForce } = await import('../manifest/succession.js');
    const { textOption } = await import('./options.js');
    const account = textOption(options.slurmAccount, '--slurm-account');
    await assertOneKind(account !== undefined, options);
    const book = await openBook(context.root, manifest, 'write', context.now);
    try {
      if (account !== undefined) return await noteAccount(book, account, context);
      // What a superseded ledger notes from now on reaches no report of the plan in force.
      assertInForce(book.stored, (await readWorkspace(context.root)).manifests);
      return await note(book, options);
    } finally {
      book.close();
    }
  },
};

/** @throws {BoundbookError} USAGE */
async function assertOneKind(
  isAccount: boolean,
  { text, slots }: Readonly<Record<string, OptionValue>>,
): Promise<void> {
  const parts = [text, slots].filter((option) => option !== undefined).length;
  if (isAccount ? parts === 0 : parts === 2) return;
  const { BoundbookError } = await import('../core/errors.js');
  throw new BoundbookError(
    'USAGE',
    isAccount ? '--slurm-account is a note of its own' : 'a deviation needs both --text and --slots',
    { hint: 'Give --text and --slots for a deviation, or --slurm-account alone.' },
  );
}

async function note(
  book: Book<LedgerStore>,
  options: Readonly<Record<string, OptionValue>>,
): Promise<CommandResult> {
  const { noteDeviation } = await import('../ledger/deviations.js');
  const { listOption, textOption } = await import('./options.js');
  const { labelled } = await import('./manifest-output.js');
  const { visible } = await import('../core/visible.js');
  const text = textOption(options.text, '--text') ?? '';
  const selector = await selectorOption(listOption(options.slots, '--slots'));
  const entry = noteDeviation(book, text, selector);
  const head = book.head();
  const { seq, time, slots } = entry;
  const afterUnblinding = book.fold.unblinded !== null;
  const rows: readonly (readonly [string, string])[] = [
    ['noted', `entry ${seq}, ${time}${afterUnblinding ? ', after outcomes were unblinded' : ''}`],
    ['text', visible(entry.text)],
    ['slots', `${slots.count} of ${book.context.plan.count}`],
    ['digest', slots.digest],
    ['leaf', head.leaf ?? ''],
    ['root', head.root],
  ];
  const json = {
    entry: { ...entry, slots: { ...slots } },
    after_unblinding: afterUnblinding,
    manifest: book.manifestDigest,
    head: { ...head },
  };
  return { text: labelled(rows), json };
}

async function noteAccount(
  book: Book<LedgerStore>,
  path: string,
  { root }: CommandContext,
): Promise<CommandResult> {
  const { resolve } = await import('node:path');
  const { readFileBounded } = await import('../core/files.js');
  const { recordAccount } = await import('../ledger/record-account.js');
  const { MAX_ACCOUNT_BYTES } = await import('../ledger/slurm.js');
  const { labelled } = await import('./manifest-output.js');
  const bytes = await readFileBounded(resolve(root, path), { maxBytes: MAX_ACCOUNT_BYTES });
  const entries = recordAccount(book, bytes, path);
  const head = book.head();
  const rows: (readonly [string, string])[] = entries.map(({ seq, job, seconds, gpus }) => [
    'noted',
    `entry ${seq}: Slurm job ${job}, ${seconds} s with ${gpus} GPUs`,
  ]);
  if (rows.length === 0) rows.push(['noted', 'nothing: the same figures were recorded before']);
  rows.push(['leaf', head.leaf ?? ''], ['root', head.root]);
  const json = {
    entries: entries.map((entry) => ({ ...entry })),
    manifest: book.manifestDigest,
    head: { ...head },
  };
  return { text: labelled(rows), json };
}

async function selectorOption(texts: readonly string[]) {
  const { parseFilters } = await import('../slots/selector.js');
  return texts.length === 1 && texts[0] === 'all' ? new Map() : parseFilters(texts, '--slots');
}
