import type { CommandContext, CommandDefinition, CommandResult, OptionValue } from './command.js';

type Options = Readonly<Record<string, OptionValue>>;
type Mode = (
  manifest: string | undefined,
  options: Options,
  context: CommandContext,
) => Promise<CommandResult>;

/** What can be asked for instead of writing one, and the flags that go with each. */
const MODES: Readonly<Record<string, readonly string[]>> = {
  plain: ['key'],
  extends: ['out'],
  cosign: ['key', 'log', 'policy', 'since', 'first', 'ledger', 'out'],
  add: ['key', 'policy'],
  check: ['key', 'policy'],
};

export const command: CommandDefinition = {
  name: 'checkpoint',
  args: '[manifest]',
  summary: 'sign the present state of a ledger, so that nobody can take it back; cosign and check such notes',
  options: [
    {
      flags: '--key <key>',
      description:
        'the file of your private key (default: the one that BOUNDBOOK_KEY names); with --check and --add a public key (vkey) that is trusted, may be repeated',
      repeatable: true,
    },
    {
      flags: '--extends <note>',
      description: 'write none; print the newest note with the proof that it extends this older one',
    },
    { flags: '--cosign <file>', description: 'cosign a note, or what --extends printed, as a second party' },
    {
      flags: '--log <vkey>',
      description: 'with --cosign: public key of the ledger’s signer; may be repeated',
      repeatable: true,
    },
    {
      flags: '--since <note>',
      description: 'with --cosign: the last note that this key cosigned, when its own record is lost',
    },
    { flags: '--first', description: 'with --cosign: this key has never cosigned this ledger' },
    {
      flags: '--ledger <folder>',
      description: 'with --cosign: a copy of the ledger to prove from, instead of the workspace’s',
    },
    { flags: '--add <note>', description: 'take the cosignatures of a note over into checkpoints/' },
    { flags: '--check <note>', description: 'verify a note: its signer, cosigners and quorum' },
    {
      flags: '--policy <file>',
      description: 'whose signatures are trusted and required (c2sp.org/tlog-policy)',
    },
    { flags: '--out <file>', description: 'where the result goes (default: printed, or back into the note)' },
  ],
  examples: [
    'boundbook checkpoint --key ~/.config/boundbook/keys/eval.key',
    'boundbook checkpoint --extends 1200.note --out for-witness.txt',
    'boundbook checkpoint --cosign for-witness.txt --key ~/keys/witness.key --log example.org/eval+1c2d3e4f+AbC… --out 5400.note',
    'boundbook checkpoint --add 5400.note --policy witnesses.txt',
    'boundbook checkpoint --check 5400.note --policy witnesses.txt',
  ],
  next: 'send the note to somebody who keeps it; they hold you to it with boundbook audit --since NOTE.',
  run: async ([manifest], options, context) => {
    const { modeOf } = await import('./options.js');
    return (await act(modeOf(options, MODES)))(manifest, options, context);
  },
};

async function act(mode: string | null): Promise<Mode> {
  switch (mode) {
    case null:
      return (await import('./checkpoint-write.js')).writeNow;
    case 'extends':
      return (await import('./checkpoint-write.js')).proveExtension;
    case 'add':
      return (await import('./checkpoint-write.js')).addNote;
    case 'cosign':
      return (await import('./checkpoint-cosign.js')).cosignNote;
    default:
      return (await import('./checkpoint-check.js')).checkNote;
  }
}
