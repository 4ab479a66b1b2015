import { resolve } from 'node:path';
import { readFileBounded } from '../core/files.js';
import type { Trust } from '../ledger/trust.js';
import { parsePolicy, type WitnessPolicy } from '../ledger/witness-policy.js';
import { parseVerifierKey, type VerifierKey } from '../signing/keys.js';
import type { OptionValue } from './command.js';
import { listOption, textOption } from './options.js';

const MAX_POLICY_BYTES = 1_000_000;

/**
 * Whose signatures are trusted, as the flags `--key VKEY` and `--policy FILE` say; null when neither was given.
 *
 * @throws {BoundbookError} USAGE, KEY_INVALID, POLICY_INVALID, FILE_NOT_FOUND and the like.
 */
export async function trustOption(
  options: { readonly key?: OptionValue; readonly policy?: OptionValue },
  root: string,
): Promise<Trust | null> {
  const keys = keyList(options.key, '--key');
  const policy = await policyOption(options.policy, root);
  return keys.length === 0 && policy === null ? null : { keys, policy };
}

/** The policy that a flag names; null without one. @throws {BoundbookError} as {@link trustOption}. */
export async function policyOption(value: OptionValue, root: string): Promise<WitnessPolicy | null> {
  const file = textOption(value, '--policy');
  if (file === undefined) return null;
  return parsePolicy(await readFileBounded(resolve(root, file), { maxBytes: MAX_POLICY_BYTES }), file);
}

/** Public keys of a flag. @throws {BoundbookError} USAGE, KEY_INVALID. */
export function keyList(value: OptionValue, flag: string): readonly VerifierKey[] {
  return listOption(value, flag).map(parseVerifierKey);
}
