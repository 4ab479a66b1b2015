import { resolve } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import { writeFileDurable } from '../core/files.js';
import { openBook } from '../ledger/book.js';
import { checkpointOf } from '../ledger/checkpoint.js';
import { writeCheckpoint } from '../ledger/checkpoints.js';
import { addSignatures, newestNote } from '../ledger/cosignatures.js';
import { formatExtension } from '../ledger/extension.js';
import { ledgerConsistency } from '../ledger/ledger-tree.js';
import { parseOrigin } from '../ledger/origin.js';
import { judgeNote } from '../ledger/trust.js';
import { loadAttestations, unnamedTokens } from '../manifest/attestations.js';
import { withWorkspaceLock } from '../manifest/lock.js';
import { formatVerifierKey } from '../signing/keys.js';
import type { CommandContext, CommandResult, OptionValue } from './command.js';
import { labelled } from './manifest-output.js';
import { readNote } from './note-file.js';
import { textOption, usageError } from './options.js';
import { ledgerKeyOption } from './signing-key.js';
import { trustOption } from './trust.js';

/** What the keeper of a ledger does with checkpoints. */

type Options = Readonly<Record<string, OptionValue>>;

/** Writes a checkpoint over everything that the ledger holds now. */
export async function writeNow(
  manifest: string | undefined,
  options: Options,
  { root, now }: CommandContext,
): Promise<CommandResult> {
  const key = await ledgerKeyOption(onlyOne(options.key), root);
  const book = await openBook(root, manifest, 'write', now);
  try {
    const tokens = unnamedTokens(await loadAttestations(root), book.fold.checkpoints.told);
    const { entry, file } = await writeCheckpoint(book, { key, tokens });
    const { size, leaf, root: present } = book.head();
    const json = {
      manifest: book.manifestDigest,
      checkpoint: { size: entry.size, root: entry.root, note: entry.note, file },
      timestamps: [...entry.timestamps],
      head: { size, leaf, root: present },
    };
    const vkey = key === null ? null : formatVerifierKey(key.verifier);
    const text = [
      labelled([
        ['checkpoint', `${entry.size} entries`],
        ['root', entry.root],
        ['signed by', vkey ?? 'nobody: --key FILE signs it'],
        ...(file === null ? [] : ([['note', file]] as const)),
        ...(entry.timestamps.length === 0
          ? []
          : ([['time stamps', `${entry.timestamps.length} named for the first time`]] as const)),
        ['head', `${size}:${leaf ?? 'none'}`],
      ]),
      ...(entry.note === null ? [] : ['', entry.note.trimEnd()]),
    ].join('\n');
    return { text, json };
  } finally {
    book.close();
  }
}

/** Prints the newest signed checkpoint with the proof that it extends an older one, for a cosigner. */
export async function proveExtension(
  manifest: string | undefined,
  options: Options,
  { root }: CommandContext,
): Promise<CommandResult> {
  const older = await sizeOf(textOption(options.extends, '--extends') ?? '', root);
  const book = await openBook(root, manifest, 'read');
  try {
    if (older.ledger !== null && older.ledger !== book.opened.ledger) {
      throw new BoundbookError('PROOF_UNAVAILABLE', `the older note is of another ledger, ${older.ledger}`, {
        hint: 'Name the manifest whose ledger it is.',
      });
    }
    const newest = await newestNote(book, older.size);
    const hashes = ledgerConsistency(book.store, older.size, newest.size);
    const bytes = formatExtension({ oldSize: BigInt(older.size), hashes, note: newest.note });
    const out = textOption(options.out, '--out');
    if (out !== undefined) await writeFileDurable(resolve(root, out), bytes);
    const json = {
      older: older.size,
      newer: newest.size,
      hashes: hashes.map((hash) => hash.toString('base64')),
      note: newest.note.toString('utf8'),
      file: out ?? null,
    };
    const text =
      out === undefined
        ? bytes.toString('utf8').trimEnd()
        : labelled([
            ['written', out],
            ['proves', `${newest.size} entries extend ${older.size}`],
            ['next', `the cosigner runs: boundbook checkpoint --cosign ${out}`],
          ]);
    return { text, json };
  } finally {
    book.close();
  }
}

/** Takes the cosignatures of a note over into the ledger's folder. */
export async function addNote(
  manifest: string | undefined,
  options: Options,
  { root }: CommandContext,
): Promise<CommandResult> {
  const bytes = await readNote(textOption(options.add, '--add') ?? '', root);
  const trust = await trustOption(options, root);
  const judgement = trust === null ? null : judgeNote(bytes, trust);
  if (judgement?.kind === 'failed') throw judgement.error;
  const book = await openBook(root, manifest, 'read');
  try {
    const { file, added, names } = await withWorkspaceLock(root, () => addSignatures(book, bytes));
    const text = labelled([
      ['note', file],
      ['added', added.length === 0 ? 'nothing: it had these signatures before' : added.join(', ')],
      ['signed by', names.join(', ')],
      ...(trust === null
        ? ([
            ['not checked', 'whether the cosignatures are genuine: no key was given (--key, --policy)'],
          ] as const)
        : []),
    ]);
    return { text, json: { file, added: [...added], signed_by: [...names], verified: trust !== null } };
  } finally {
    book.close();
  }
}

/** The size that an older note, or a bare number, speaks of. */
async function sizeOf(value: string, root: string): Promise<{ size: number; ledger: string | null }> {
  if (/^[0-9]{1,15}$/.test(value)) return { size: Number(value), ledger: null };
  const { origin, size } = checkpointOf(await readNote(value, root));
  return { size: Number(size), ledger: parseOrigin(origin)?.ledger ?? null };
}

/** A repeatable flag where one value is meant. */
export function onlyOne(value: OptionValue): OptionValue {
  if (!Array.isArray(value)) return value;
  const [first, second] = value as readonly string[];
  if (second !== undefined) throw usageError('--key is given twice', 'One key signs a checkpoint.');
  return first;
}
