import { dirname, join, resolve } from 'node:path';
import { isFolder } from '../core/files.js';
import { LEDGER_FOLDER } from '../ledger/book.js';
import { assertLedgerKey } from '../ledger/origin.js';
import { MANIFEST_FOLDER } from '../manifest/workspace.js';
import { readSignerKey } from '../signing/key-file.js';
import type { SignerKey } from '../signing/keys.js';
import type { OptionValue } from './command.js';
import { textOption, usageError } from './options.js';

/** Names the file of the private key when no flag does. */
const VARIABLE = 'BOUNDBOOK_KEY';

/**
 * The key that signs a ledger's checkpoints: of the file that `--key` names, or the environment variable; null when
 * neither does.
 *
 * @throws {BoundbookError} USAGE, KEY_EXPOSED, KEY_INVALID, FILE_NOT_FOUND and the like.
 */
export async function ledgerKeyOption(value: OptionValue, root: string): Promise<SignerKey | null> {
  const file = textOption(value, '--key') ?? (process.env[VARIABLE] || undefined);
  if (file === undefined) return null;
  const key = await readKeyFile(file, root);
  assertLedgerKey(key);
  return key;
}

/**
 * A private key by its file. It must not lie in a workspace, wherever the command was started.
 *
 * @throws {BoundbookError} as {@link ledgerKeyOption}.
 */
export async function readKeyFile(file: string, root: string): Promise<SignerKey> {
  if (isVerifierKeyText(file)) {
    throw usageError(
      '--key needs the file of a private key here, not a public key (vkey)',
      'Name the file that `boundbook keygen --out FILE` wrote.',
    );
  }
  const path = resolve(root, file);
  return readSignerKey(path, await workspaceAround(path, root));
}

/** The workspace that a key must not lie in: the one that the command works in, or one around the file; null for none. */
export async function workspaceAround(path: string, root: string): Promise<string | null> {
  if (await isFolder(join(root, MANIFEST_FOLDER))) return root;
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const marks = [MANIFEST_FOLDER, 'protocol', LEDGER_FOLDER].map((name) => isFolder(join(folder, name)));
    if ((await Promise.all(marks)).filter((is) => is).length > 1) return folder;
    if (folder === dirname(folder)) return null;
  }
}

/** Whether a value has the form of a public key, which no path has in practice. */
function isVerifierKeyText(value: string): boolean {
  return /^[^+]+\+[0-9a-f]{8}\+/.test(value);
}
