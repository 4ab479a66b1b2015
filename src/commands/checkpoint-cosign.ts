import { isAbsolute, resolve } from 'node:path';
import { BoundbookError } from '../core/errors.js';
import { writeFileDurable } from '../core/files.js';
import { ledgerFolder } from '../ledger/book.js';
import { type Checkpoint, checkpointOf } from '../ledger/checkpoint.js';
import { cosign } from '../ledger/cosign.js';
import { CosignerRecord } from '../ledger/cosigner-record.js';
import { isExtension, parseExtension } from '../ledger/extension.js';
import { ledgerTree } from '../ledger/ledger-tree.js';
import { consistencyProof, rootAt } from '../ledger/proofs.js';
import { LedgerReader } from '../ledger/reader.js';
import { loadManifest } from '../manifest/select.js';
import { formatVerifierKey } from '../signing/keys.js';
import { onlyOne } from './checkpoint-write.js';
import type { CommandContext, CommandResult, OptionValue } from './command.js';
import { labelled } from './manifest-output.js';
import { readNote } from './note-file.js';
import { textOption, usageError } from './options.js';
import { readKeyFile } from './signing-key.js';
import { keyList, policyOption } from './trust.js';

type Options = Readonly<Record<string, OptionValue>>;

/** Cosigns a note as a second party, who needs the note, the proof or a copy of the ledger, and nothing else. */
export async function cosignNote(
  manifest: string | undefined,
  options: Options,
  { root, now }: CommandContext,
): Promise<CommandResult> {
  const keyFile = textOption(onlyOne(options.key), '--key');
  if (keyFile === undefined) throw usageError('--cosign needs --key FILE', 'The cosigner’s private key.');
  const policy = await policyOption(options.policy, root);
  const logs = [...keyList(options.log, '--log'), ...(policy?.logs ?? []).map(({ key }) => key)];
  if (logs.length === 0) {
    throw usageError(
      '--cosign needs --log VKEY or a --policy with a log line',
      'Whose ledger may be cosigned.',
    );
  }
  const key = await readKeyFile(keyFile, root);
  const file = textOption(options.cosign, '--cosign') ?? '';
  const bytes = await readNote(file, root);
  const extension = isExtension(bytes) ? parseExtension(bytes) : null;
  const note = extension?.note ?? bytes;
  const since = textOption(options.since, '--since');
  const cosigned = await cosign({
    note,
    key,
    logs,
    record: new CosignerRecord(resolve(root, keyFile)),
    since: since === undefined ? null : await readNote(since, root),
    first: options.first === true,
    proof: async (oldSize) => {
      if (extension === null)
        return proofFromLedger(await folderOf(root, manifest, options), oldSize, checkpointOf(note));
      if (extension.oldSize === oldSize) return extension.hashes;
      throw new BoundbookError(
        'PROOF_UNAVAILABLE',
        `the proof begins at ${extension.oldSize} entries; this key cosigned ${oldSize}`,
        {
          hint: `Ask for: boundbook checkpoint --extends ${oldSize}`,
        },
      );
    },
    time: BigInt(Math.floor(Date.parse(now()) / 1000)),
  });
  const out = textOption(options.out, '--out') ?? (extension === null ? file : undefined);
  if (out !== undefined && !cosigned.before) await writeFileDurable(resolve(root, out), cosigned.note);
  const { origin, size } = cosigned.signed.checkpoint;
  const json = {
    origin,
    size: String(size),
    after: cosigned.after === null ? null : String(cosigned.after),
    cosigned_before: cosigned.before,
    by: formatVerifierKey(key.verifier),
    note: cosigned.note.toString('utf8'),
    file: out ?? null,
  };
  const text = [
    labelled([
      [
        'cosigned',
        `${size} entries of ${origin}${cosigned.before ? ' (this key had cosigned it before)' : ''}`,
      ],
      [
        'extends',
        cosigned.after === null
          ? 'nothing: the first one of this key'
          : `the ${cosigned.after} entries that it cosigned before`,
      ],
      ['by', json.by],
      ...(out === undefined ? [] : ([['note', out]] as const)),
    ]),
    ...(out === undefined ? ['', json.note.trimEnd()] : []),
  ].join('\n');
  return { text, json };
}

async function folderOf(root: string, manifest: string | undefined, options: Options): Promise<string> {
  const folder = textOption(options.ledger, '--ledger');
  if (folder !== undefined) return isAbsolute(folder) ? folder : resolve(root, folder);
  try {
    return ledgerFolder(root, (await loadManifest(root, manifest)).file);
  } catch (error) {
    throw new BoundbookError('PROOF_UNAVAILABLE', 'there is no proof and no ledger at hand to prove from', {
      hint: 'Ask the keeper for `boundbook checkpoint --extends NOTE`, or name a copy of the ledger with --ledger.',
      cause: error,
    });
  }
}

/** The leaves of a ledger that may be anybody's copy: the proof that comes of them is verified like any other. */
function proofFromLedger(folder: string, oldSize: bigint, { size, root }: Checkpoint): readonly Buffer[] {
  const reader = LedgerReader.open(folder);
  try {
    const tree = ledgerTree(reader, Number(size));
    if (tree.size < Number(size) || !rootAt(tree, Number(size)).equals(root)) {
      throw new BoundbookError(
        'PROOF_UNAVAILABLE',
        `${reader.file} is not the ledger that the note speaks of`,
        {
          hint: 'It is shorter, or holds other entries. Get a copy that goes as far as the note.',
        },
      );
    }
    return consistencyProof(tree, Number(oldSize), Number(size));
  } finally {
    reader.close();
  }
}
