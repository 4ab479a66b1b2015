import type { SignerKey } from '../signing/keys.js';
import type { CommandDefinition, CommandResult, OptionValue } from './command.js';

type Options = Readonly<Record<string, OptionValue>>;

export const command: CommandDefinition = {
  name: 'keygen',
  args: '',
  summary: 'make a key that signs checkpoints, manifests and reports; show the public key of a key file',
  options: [
    {
      flags: '--out <file>',
      description: 'where the private key goes: a new file outside the workspace and every repository',
    },
    {
      flags: '--name <name>',
      description: 'name of the key, best one that you own (default: the file name without its ending)',
    },
    { flags: '--cosigner', description: 'a key for cosigning the checkpoints of others' },
    { flags: '--show <file>', description: 'print the public key (vkey) of this private key' },
    {
      flags: '--origin [manifest]',
      description: 'with --show: under the full name that it has in the notes of a manifest’s ledger',
    },
    { flags: '--pem', description: 'print the public key as PEM too, for openssl' },
  ],
  examples: [
    'boundbook keygen --name example.org/eval --out ~/.config/boundbook/keys/eval.key',
    'boundbook keygen --name witness.example --cosigner --out ~/.config/boundbook/keys/witness.key',
    'boundbook keygen --show ~/.config/boundbook/keys/eval.key --origin obme-final',
  ],
  next: 'publish the vkey where others find it without you, and run with --key FILE.',
  run: async (_args, options, { root }) => {
    const { usageError } = await import('./options.js');
    const { out, show } = options;
    if ((out === undefined) === (show === undefined)) {
      throw usageError(
        'keygen takes either --out FILE or --show FILE',
        'keygen --out makes a key, --show prints one.',
      );
    }
    return out === undefined ? showKey(root, options) : makeKey(root, options);
  },
};

async function makeKey(root: string, options: Options): Promise<CommandResult> {
  const { basename, extname, resolve } = await import('node:path');
  const { assertShortName } = await import('../ledger/origin.js');
  const { writeSignerKey } = await import('../signing/key-file.js');
  const { generateKey } = await import('../signing/keys.js');
  const { workspaceAround } = await import('./signing-key.js');
  const { textOption, usageError } = await import('./options.js');
  if (options.origin !== undefined) {
    throw usageError('--origin goes with --show', 'Make the key first; a ledger comes later.');
  }
  const file = resolve(root, textOption(options.out, '--out') ?? '');
  const name = textOption(options.name, '--name') ?? basename(file, extname(file));
  assertShortName(name);
  const key = generateKey(name, options.cosigner === true ? 'cosignature' : 'ed25519');
  await writeSignerKey(file, key, await workspaceAround(file, root));
  return keyResult(key, options, [['private key', `${file} (mode 0600; keep a copy, show it to nobody)`]], {
    file,
  });
}

async function showKey(root: string, options: Options): Promise<CommandResult> {
  const { readKeyFile } = await import('./signing-key.js');
  const { textOption, usageError } = await import('./options.js');
  if (options.name !== undefined || options.cosigner !== undefined) {
    throw usageError(
      '--name and --cosigner go with --out',
      'The name and the kind of a key are fixed when it is made.',
    );
  }
  const file = textOption(options.show, '--show') ?? '';
  const key = await readKeyFile(file, root);
  if (options.origin === undefined) return keyResult(key, options, [], { file });
  const { openBook } = await import('../ledger/book.js');
  const { keyOfLedger } = await import('../ledger/origin.js');
  const book = await openBook(root, options.origin === true ? undefined : String(options.origin), 'read');
  try {
    const { opened, fold, stored } = book;
    const named = keyOfLedger(key, fold.identity ?? opened);
    return await keyResult(named, options, [['ledger of', `manifests/${stored.file}`]], { file });
  } finally {
    book.close();
  }
}

async function keyResult(
  key: SignerKey,
  options: Options,
  rows: readonly (readonly [string, string])[],
  more: { readonly file: string },
): Promise<CommandResult> {
  const { formatVerifierKey, keyIdText, publicPem } = await import('../signing/keys.js');
  const { labelled } = await import('./manifest-output.js');
  const { verifier } = key;
  const vkey = formatVerifierKey(verifier);
  const pem = options.pem === true ? publicPem(verifier) : null;
  const kind = verifier.type === 'cosignature' ? 'cosigner' : 'signer';
  const json = { ...more, name: verifier.name, kind, key_id: keyIdText(verifier.id), vkey, pem };
  const text = labelled([['vkey', vkey], ['kind', kind], ...rows]);
  return { text: pem === null ? text : `${text}\n${pem.trimEnd()}`, json };
}
