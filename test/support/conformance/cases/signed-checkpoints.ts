import { type SignerKey, signerKey } from '../../../../src/signing/keys.js';
import { cosignText, formatNote, type Note, parseNote } from '../../../../src/signing/note.js';
import type { LooseBundle } from '../../loose-bundle.js';
import type { Case } from '../case.js';
import { IMPOSTOR, LAB, noteFile, OUTSIDER, STRANGER, signCheckpoints, vkey, WITNESSES } from '../keys.js';

const [ONE, TWO, THREE] = WITNESSES as [SignerKey, SignerKey, SignerKey];
const TIME = 1_796_000_000n;

/** Position of the first of its two checkpoints. */
const FIRST = 2;

const witnessLines = WITNESSES.map((key, i) => `witness w${i + 1} ${vkey(key)}`);
const ANY = [`log ${vkey(LAB)}`, ...witnessLines, 'group any any w1 w2 w3', 'quorum any'];
const TWO_OF_THREE = [
  `log ${vkey(LAB)}`,
  '# two of them',
  ...witnessLines,
  'group two 2 w1 w2 w3',
  'quorum two',
];

/** C2SP checkpoints, judged by keys and a policy that the reader has. */
export const SIGNED_CHECKPOINTS: readonly Case[] = [
  {
    name: 'checkpoints-signed',
    why: 'every checkpoint is signed under its ledger by the key that the reader trusts',
    keys: [vkey(LAB)],
    edit: (bundle) => signCheckpoints(bundle, LAB),
  },
  {
    name: 'checkpoints-signed-no-key-given',
    why: 'the same without a key: nothing is proved by the signatures, and nothing is wrong',
    edit: (bundle) => signCheckpoints(bundle, LAB),
  },
  {
    name: 'checkpoints-signed-by-an-unknown-key',
    why: 'signed by a key of the same name and another id than the reader trusts: not checked, no finding',
    keys: [vkey(LAB)],
    edit: (bundle) => signCheckpoints(bundle, IMPOSTOR),
  },
  {
    name: 'checkpoints-signed-key-of-one-origin',
    why: 'a key whose name is the origin of this ledger speaks for it',
    keys: [vkey(underOrigin(`${LAB.verifier.name}/${'a'.repeat(32)}/1`))],
    edit: (bundle) => {
      signCheckpoints(bundle, LAB);
      bundle.files.delete(noteFile(FIRST));
    },
  },
  {
    name: 'checkpoint-signature-forged_fail',
    why: 'a signature under name and id of the key that the reader trusts, which did not make it',
    keys: [vkey(LAB)],
    edit: (bundle) => {
      signCheckpoints(bundle, LAB);
      onLastNote(bundle, (note) => spoil(note, 0));
    },
  },
  {
    name: 'checkpoint-signature-forged-no-key-given',
    why: 'nobody can tell without the key',
    edit: (bundle) => {
      signCheckpoints(bundle, LAB);
      onLastNote(bundle, (note) => spoil(note, 0));
    },
  },
  {
    name: 'checkpoint-signature-forged-in-the-file_fail',
    why: 'the entry holds a good signature, the file of the same checkpoint a forged one',
    keys: [vkey(LAB)],
    edit: (bundle) => {
      signCheckpoints(bundle, LAB);
      const file = noteFile(FIRST);
      bundle.files.set(file, spoil(bundle.files.get(file) ?? Buffer.of(), 0));
    },
  },
  {
    name: 'checkpoint-signature-of-another-root_fail',
    why: 'an entry before the second checkpoint was changed, and its note says the new root under the old signature',
    keys: [vkey(LAB)],
    edit: (bundle) => {
      signCheckpoints(bundle, LAB);
      const old = parseNote(notes(bundle).at(-1)?.[1] ?? Buffer.of());
      Object.assign(bundle.find('gate.passed'), { host: { node: 'v21', platform: 'linux', arch: 'x64' } });
      signCheckpoints(bundle, LAB);
      onLastNote(bundle, (fresh) => formatNote({ text: parseNote(fresh).text, signatures: old.signatures }));
    },
  },
  {
    name: 'checkpoint-note-of-another-ledger_fail',
    why: 'the note of an entry is a genuine checkpoint of another ledger',
    keys: [vkey(LAB)],
    edit: (bundle) => signCheckpoints(bundle, LAB, { ledger: 'c'.repeat(32) }),
  },
  {
    name: 'checkpoint-file-of-another-root_fail',
    why: 'the key signed two trees of one size: the file says another root than the entry',
    keys: [vkey(LAB)],
    edit: (bundle) => {
      const opened = bundle.find('ledger.opened');
      const time = opened.time;
      opened.time = '2026-11-30T00:00:19.000Z';
      signCheckpoints(bundle, LAB);
      const other = bundle.files.get(noteFile(FIRST)) ?? Buffer.of();
      opened.time = time;
      signCheckpoints(bundle, LAB);
      bundle.files.set(noteFile(FIRST), other);
    },
  },
  {
    name: 'checkpoint-file-named-for-another-size_fail',
    why: 'a note lies under the size of another',
    edit: (bundle) => {
      signCheckpoints(bundle, LAB);
      bundle.files.set(noteFile(3), bundle.files.get(noteFile(FIRST)) ?? Buffer.of());
    },
  },
  {
    name: 'checkpoint-file-of-more-entries_fail',
    why: 'the key signed a longer ledger than this one: entries were cut off',
    edit: (bundle) => {
      signCheckpoints(bundle, LAB);
      const cut = Math.max(...notes(bundle).map(([size]) => size));
      bundle.ledger.entries = bundle.entries.slice(0, cut);
    },
  },
  cosigned('cosigned-by-the-quorum', 'two of three witnesses, as the policy asks', TWO_OF_THREE, (bundle) =>
    cosign(bundle, FIRST, ONE, THREE),
  ),
  cosigned(
    'cosigned-long-ago',
    'the quorum cosigned the first checkpoint only; what came later is named as not checked',
    ANY,
    (bundle) => cosign(bundle, FIRST, TWO),
  ),
  cosigned(
    'cosignature-missing_fail',
    'the policy asks for a cosignature, and there is none',
    ANY,
    () => undefined,
  ),
  cosigned(
    'cosigned-by-too-few_fail',
    'one witness of the two that the policy asks for',
    TWO_OF_THREE,
    (bundle) => cosign(bundle, FIRST, ONE),
  ),
  cosigned(
    'cosigned-by-two-in-turn_fail',
    'two witnesses, but on two checkpoints: no one has its quorum',
    TWO_OF_THREE,
    (bundle) => {
      const [first = 0, second = 0] = notes(bundle).map(([size]) => size);
      cosign(bundle, first, ONE);
      cosign(bundle, second, TWO);
    },
  ),
  cosigned('cosigned-by-one-twice_fail', 'one witness twice is one witness', TWO_OF_THREE, (bundle) =>
    cosign(bundle, FIRST, ONE, ONE),
  ),
  cosigned('cosigned-by-a-stranger_fail', 'a cosigner that the policy does not know', ANY, (bundle) =>
    cosign(bundle, FIRST, OUTSIDER),
  ),
  cosigned(
    'cosignature-forged_fail',
    'a cosignature under a witness’s name and id that it did not make',
    ANY,
    (bundle) => {
      cosign(bundle, FIRST, ONE, TWO);
      const file = noteFile(FIRST);
      bundle.files.set(file, spoil(bundle.files.get(file) ?? Buffer.of(), 1));
    },
  ),
  cosigned(
    'cosigned-but-of-another-log_fail',
    'cosigned, but the policy knows another log than the one that signed',
    [`log ${vkey(STRANGER)}`, ...witnessLines, 'quorum w1'],
    (bundle) => cosign(bundle, FIRST, ONE),
  ),
  cosigned(
    'policy-that-asks-nobody',
    'quorum none: signed by its log is enough',
    [`log ${vkey(LAB)}`, 'quorum none'],
    () => undefined,
  ),
  {
    name: 'policy-without-a-signed-checkpoint_fail',
    why: 'a policy asks for a checkpoint that its log signed, and none is signed',
    policy: [`log ${vkey(LAB)}`, 'quorum none'],
  },
  {
    name: 'policy-with-the-log-key-given-apart',
    why: 'the policy leaves the log open; --key names it',
    keys: [vkey(LAB)],
    policy: [...witnessLines, 'group outer all w1 w2', 'quorum outer'],
    edit: (bundle) => {
      signCheckpoints(bundle, LAB);
      cosign(bundle, FIRST, ONE, TWO);
    },
  },
];

function cosigned(
  name: string,
  why: string,
  policy: readonly string[],
  edit: (bundle: LooseBundle) => void,
): Case {
  return {
    name,
    why,
    policy,
    edit: (bundle) => {
      signCheckpoints(bundle, LAB);
      edit(bundle);
    },
  };
}

/** The lab's key under the origin of one ledger. */
function underOrigin(name: string): SignerKey {
  return signerKey(name, 'ed25519', LAB.privateKey);
}

/** Size and note of each checkpoint entry. */
function notes(bundle: LooseBundle): [number, Buffer][] {
  return bundle.entries.flatMap(({ type, size, note }): [number, Buffer][] =>
    type === 'checkpoint' ? [[Number(size), Buffer.from(String(note))]] : [],
  );
}

/** Changes the note of the last checkpoint entry and its file alike: no later root depends on it. */
function onLastNote(bundle: LooseBundle, change: (note: Buffer) => Buffer): void {
  const size = notes(bundle).at(-1)?.[0] ?? 0;
  const entry = bundle.find('checkpoint', (one) => one.size === size);
  const note = change(Buffer.from(String(entry.note)));
  entry.note = note.toString('utf8');
  bundle.files.set(noteFile(size), note);
}

/** Adds cosignatures to the file of a checkpoint; the entry stays as the run wrote it. */
function cosign(bundle: LooseBundle, size: number, ...keys: readonly SignerKey[]): void {
  const file = noteFile(size);
  const { text, signatures }: Note = parseNote(bundle.files.get(file) ?? Buffer.of());
  const added = keys.map((key, i) => cosignText(text, key, TIME + BigInt(i)));
  bundle.files.set(file, formatNote({ text, signatures: [...signatures, ...added] }));
}

/** Another last byte in the n-th signature. */
function spoil(note: Buffer, n: number): Buffer {
  const { text, signatures } = parseNote(note);
  const spoiled = signatures.map((one, i) => {
    if (i !== n) return one;
    const bytes = Buffer.from(one.bytes);
    bytes[40] = (bytes[40] ?? 0) ^ 1;
    return { ...one, bytes };
  });
  return formatNote({ text, signatures: spoiled });
}
