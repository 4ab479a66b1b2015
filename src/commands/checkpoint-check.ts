import { isExtension, parseExtension } from '../ledger/extension.js';
import { verifyTrusted } from '../ledger/trust.js';
import { formatVerifierKey } from '../signing/keys.js';
import type { CommandContext, CommandResult, OptionValue } from './command.js';
import { labelled } from './manifest-output.js';
import { readNote } from './note-file.js';
import { textOption, usageError } from './options.js';
import { trustOption } from './trust.js';

/** Verifies a note by keys that come from the reader; needs no workspace. */
export async function checkNote(
  manifest: string | undefined,
  options: Readonly<Record<string, OptionValue>>,
  { root }: CommandContext,
): Promise<CommandResult> {
  if (manifest !== undefined) {
    throw usageError(
      '--check takes no manifest',
      'To hold a ledger against a note: boundbook audit --since NOTE.',
    );
  }
  const trust = await trustOption(options, root);
  if (trust === null) {
    throw usageError(
      '--check needs --key VKEY or --policy FILE',
      'Take the keys from their owners, never from who sent the note.',
    );
  }
  const bytes = await readNote(textOption(options.check, '--check') ?? '', root);
  const { checkpoint, log, cosignatures, verdict } = verifyTrusted(
    isExtension(bytes) ? parseExtension(bytes).note : bytes,
    trust,
  );
  const seconds = (time: bigint | null) =>
    time === null ? null : new Date(Number(time) * 1000).toISOString().replace('.000Z', 'Z');
  const signers = cosignatures.map(({ key, time }) => ({
    vkey: formatVerifierKey(key),
    time: seconds(time),
  }));
  const json = {
    origin: checkpoint.origin,
    size: String(checkpoint.size),
    root: checkpoint.root.toString('hex'),
    signed_by: formatVerifierKey(log.key),
    cosigned_by: signers.map((signer) => ({ ...signer })),
    quorum: verdict === null ? null : { name: verdict.quorum, satisfied: verdict.satisfied },
    not_checked: NOT_CHECKED,
  };
  const text = labelled([
    ['verified', checkpoint.origin],
    ['size', `${checkpoint.size} entries`],
    ['root', json.root],
    ['signed by', json.signed_by],
    ...signers.map(({ vkey, time }, i): [string, string] => [
      i === 0 ? 'cosigned by' : '',
      `${vkey}, ${time ?? ''}`,
    ]),
    ['quorum', verdict === null ? 'no policy was given' : `${verdict.quorum}: met`],
    ...NOT_CHECKED.map((line, i): [string, string] => [i === 0 ? 'not checked' : '', line]),
  ]);
  return { text, json };
}

const NOT_CHECKED: readonly string[] = [
  'whether a ledger has these entries, and what they say: boundbook audit --since NOTE',
  'whether the clocks of the cosigners were right',
];
