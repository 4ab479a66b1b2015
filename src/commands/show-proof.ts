import { resolve } from 'node:path';
import { readFileBounded, writeFileDurable } from '../core/files.js';
import { openBook } from '../ledger/book.js';
import { asJson } from '../ledger/mask.js';
import { proveSlot, verifyProof } from '../ledger/slot-proof.js';
import type { CommandContext, CommandResult, OptionValue } from './command.js';
import { labelled } from './manifest-output.js';
import { textOption, usageError } from './options.js';
import { printable } from './render-error.js';
import { trustOption } from './trust.js';

type Options = Readonly<Record<string, OptionValue>>;

const MAX_PROOF_BYTES = 2_000_000;
const MAX_ENTRY_BYTES = 65_536;

/** Writes a proof file for what became of a slot. */
export async function showProof(
  what: string,
  options: Options,
  { root }: CommandContext,
): Promise<CommandResult> {
  if (!/^[0-9a-f]{32}$/.test(what)) {
    throw usageError(
      '--proof needs the id of a slot',
      '32 hexadecimal digits, as `boundbook show` prints them.',
    );
  }
  const book = await openBook(root, textOption(options.manifest, '--manifest'), 'read');
  try {
    const proof = await proveSlot(book, what);
    const out = textOption(options.out, '--out');
    if (out !== undefined) await writeFileDurable(resolve(root, out), proof.bytes);
    const { bytes, ...rest } = proof;
    const json = { slot: what, ...rest, proof: bytes.toString('utf8'), file: out ?? null };
    if (out === undefined) return { text: bytes.toString('utf8').trimEnd(), json };
    const text = labelled([
      ['proof', out],
      ['of', `entry ${proof.index} (${proof.type}) in the checkpoint of ${proof.size} entries`],
      [
        'entry',
        proof.shown
          ? 'in the file'
          : 'not in the file: outcomes are blinded; the proof holds for it all the same',
      ],
      [
        'verify',
        `boundbook show --verify ${out} --key VKEY${proof.shown ? '' : ' --entry FILE, once it may be shown'}`,
      ],
    ]);
    return { text, json };
  } finally {
    book.close();
  }
}

/** Verifies a proof file offline; needs no workspace. */
export async function showVerified(options: Options, { root }: CommandContext): Promise<CommandResult> {
  const trust = await trustOption(options, root);
  if (trust === null) {
    throw usageError(
      '--verify needs --key VKEY or --policy FILE',
      'Take the keys from their owners, never from who sent the proof.',
    );
  }
  const file = resolve(root, textOption(options.verify, '--verify') ?? '');
  const given = textOption(options.entry, '--entry');
  const bytes = await readFileBounded(file, { maxBytes: MAX_PROOF_BYTES });
  const { entry, checkpoint } = verifyProof(
    bytes,
    given === undefined ? null : await readEntry(root, given),
    trust,
  );
  const { origin, size } = checkpoint;
  const json = {
    verified: true,
    origin,
    size: String(size),
    entry: asJson(entry),
    not_checked: NOT_CHECKED,
  };
  const text = [
    labelled([
      ['verified', `entry ${entry.seq} of ${origin}`],
      ['checkpoint', `${size} entries`],
      ...NOT_CHECKED.map((line, i): [string, string] => [i === 0 ? 'not checked' : '', line]),
    ]),
    printable(JSON.stringify(entry, null, 2)),
  ].join('\n');
  return { text, json };
}

/** An entry's bytes; a line break that an editor or `entries.jsonl` put behind them is none of them. */
async function readEntry(root: string, file: string): Promise<Buffer> {
  const bytes = await readFileBounded(resolve(root, file), { maxBytes: MAX_ENTRY_BYTES });
  return bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes;
}

const NOT_CHECKED: readonly string[] = [
  'whether the entry is lawful, and the slot planned: boundbook audit',
  'whether an entry after it says more of the slot (a verdict, an unblinding)',
];
