import { resolve } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import { assertLedgerKey } from '../ledger/origin.js';
import { readSignerKey } from '../signing/key-file.js';
import type { SignerKey } from '../signing/keys.js';
import type { OptionValue } from './command.js';
import { textOption } from './options.js';

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

/** A private key by its file. @throws {BoundbookError} as {@link ledgerKeyOption}. */
export async function readKeyFile(file: string, root: string): Promise<SignerKey> {
  if (/^[^+]+\+[0-9a-f]{8}\+/.test(file)) {
    throw new BoundbookError('USAGE', '--key needs the file of a private key here, not a public key (vkey)', {
      hint: 'Name the file that `boundbook keygen --out FILE` wrote.',
    });
  }
  return readSignerKey(resolve(root, file), root);
}
