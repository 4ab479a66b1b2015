import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { command as checkpoint } from '../../src/commands/checkpoint.js';
import type { OptionValue } from '../../src/commands/command.js';
import { command as keygen } from '../../src/commands/keygen.js';
import type { Book } from '../../src/ledger/book.js';
import { openBook } from '../../src/ledger/book.js';
import { verifyCheckpoint } from '../../src/ledger/checkpoint.js';
import { parseExtension } from '../../src/ledger/extension.js';
import type { LedgerStore } from '../../src/ledger/store.js';
import { publicKeyObject } from '../../src/signing/ed25519.js';
import { parseVerifierKey } from '../../src/signing/keys.js';
import { gateDraft, newBook, newWorkspace, SlotScript, slotAt, tempFolder } from '../ledger/support.js';
import { commandContext } from './context.js';

type Options = Readonly<Record<string, OptionValue>>;
type Json = Record<string, unknown>;

async function ok(verb: typeof keygen, root: string, options: Options, args: string[] = []): Promise<Json> {
  const { json } = await verb.run(args, options, commandContext(root));
  return json as Json;
}

async function refused(
  verb: typeof keygen,
  root: string,
  options: Options,
  args: string[] = [],
): Promise<unknown> {
  return verb.run(args, options, commandContext(root)).then(
    () => 'nothing was refused',
    (error: unknown) => error,
  );
}

/** A key in a file of its own folder; its vkey. */
async function key(name: string, options: Options = {}): Promise<{ file: string; vkey: string }> {
  const file = join(tempFolder(), `${name.replaceAll('/', '-')}.key`);
  const { vkey } = await ok(keygen, tempFolder(), { out: file, name, ...options });
  return { file, vkey: String(vkey) };
}

/** A ledger whose writer is closed, so that verbs open it. */
async function ledger(): Promise<{ root: string; folder: string; id: string }> {
  const { root, book } = await newBook([new SlotScript(slotAt(0)).whole(1)]);
  book.close();
  return { root, folder: book.folder, id: book.opened.ledger };
}

async function grow(root: string, slot: number): Promise<void> {
  const book: Book<LedgerStore> = await openBook(root, undefined, 'write', () => '2026-12-02T00:00:00.000Z');
  const { drafts, objects } = new SlotScript(slotAt(slot)).whole(0);
  book.store.append(drafts, objects);
  book.close();
}

afterEach(() => {
  process.env.BOUNDBOOK_KEY = '';
});

describe('boundbook keygen', () => {
  it('writes a private key for its owner alone, and prints the public one', async () => {
    const file = join(tempFolder(), 'eval.key');
    const made = await ok(keygen, tempFolder(), { out: file, pem: true });
    expect(made).toMatchObject({ file, name: 'eval', kind: 'signer' });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const vkey = parseVerifierKey(String(made.vkey));
    expect(vkey).toMatchObject({ name: 'eval', type: 'ed25519' });
    expect(made.pem).toBe(publicKeyObject(vkey.publicKey).export({ format: 'pem', type: 'spki' }));
    const { text } = await keygen.run([], { show: file }, commandContext(tempFolder()));
    expect(text).toContain(String(made.vkey));
    expect(text).not.toContain('PRIVATE');
    const cosigner = await key('w.example', { cosigner: true });
    expect(parseVerifierKey(cosigner.vkey).type).toBe('cosignature');
  });

  it('never overwrites, and keeps keys out of workspaces and repositories, wherever it is started', async () => {
    const { file } = await key('a');
    expect(await refused(keygen, tempFolder(), { out: file })).toMatchObject({ code: 'FILE_EXISTS' });
    const { root } = await newWorkspace();
    mkdirSync(join(root, 'ledger'));
    for (const from of [root, tempFolder()]) {
      expect(await refused(keygen, from, { out: join(root, 'k') })).toMatchObject({ code: 'KEY_EXPOSED' });
      expect(await refused(keygen, from, { out: join(root, 'ledger', 'k') })).toMatchObject({
        code: 'KEY_EXPOSED',
      });
    }
    const repository = tempFolder();
    mkdirSync(join(repository, '.git'));
    expect(await refused(keygen, root, { out: join(repository, 'k') })).toMatchObject({
      code: 'KEY_EXPOSED',
    });
    // A folder that is no workspace may hold keys, also the one that the command is started in.
    const home = tempFolder();
    await ok(keygen, home, { out: 'k.key' });
    expect(existsSync(join(home, 'k.key'))).toBe(true);
  });

  it.each<[string, Options, string]>([
    ['neither --out nor --show', {}, 'USAGE'],
    ['both', { out: 'a', show: 'b' }, 'USAGE'],
    ['a name with --show', { show: 'a', name: 'b' }, 'USAGE'],
    ['an origin with --out', { out: 'a', origin: 'b' }, 'USAGE'],
    ['a name with a space', { out: 'a', name: 'my key' }, 'KEY_INVALID'],
    ['a name with a plus', { out: 'a', name: 'a+b' }, 'KEY_INVALID'],
    ['a name that is an origin', { out: 'a', name: `a/${'0'.repeat(32)}/1` }, 'KEY_INVALID'],
    ['a name of 201 bytes', { out: 'a', name: 'a'.repeat(201) }, 'KEY_INVALID'],
    ['a folder that is not there', { out: 'no/such/folder/a' }, 'FILE_NOT_FOUND'],
    ['a key that is not there', { show: 'no.key' }, 'FILE_NOT_FOUND'],
  ])('refuses %s', async (_, options, code) => {
    const root = tempFolder();
    expect(await refused(keygen, root, options)).toMatchObject({ code });
    expect(existsSync(join(root, 'a'))).toBe(false);
  });

  it('--origin prints the key under its name in a ledger’s notes', async () => {
    const { root, id } = await ledger();
    const { file, vkey } = await key('lab.example/eval');
    const { name, vkey: full } = await ok(keygen, root, { show: file, origin: true });
    expect(name).toBe(`lab.example/eval/${id}/1`);
    expect(full).not.toBe(vkey);
    const { checkpoint: written } = await ok(checkpoint, root, { key: [file] });
    const { note } = written as { note: string };
    const { log } = verifyCheckpoint(Buffer.from(note), { logs: [parseVerifierKey(String(full))] });
    expect(log.key.name).toBe(name);
    const cosigner = await key('w', { cosigner: true });
    expect(await refused(keygen, root, { show: cosigner.file, origin: 'tiny' })).toMatchObject({
      code: 'KEY_INVALID',
    });
  });
});

describe('boundbook checkpoint', () => {
  it('writes one now, with the key of the flag or of BOUNDBOOK_KEY, or without', async () => {
    const { root, folder } = await ledger();
    const { file, vkey } = await key('lab');
    const first = await checkpoint.run([], { key: [file] }, commandContext(root));
    const note = readFileSync(join(folder, 'checkpoints', '7.note'), 'utf8');
    expect(first.text).toContain(note.trimEnd());
    expect(first.text).toContain(vkey);
    expect(first.json).toMatchObject({
      checkpoint: { size: 7, note, file: join(folder, 'checkpoints', '7.note') },
      head: { size: 8 },
    });
    process.env.BOUNDBOOK_KEY = file;
    expect(await ok(checkpoint, root, {})).toMatchObject({ checkpoint: { size: 8 } });
    expect(existsSync(join(folder, 'checkpoints', '8.note'))).toBe(true);
    process.env.BOUNDBOOK_KEY = '';
    const unsigned = await checkpoint.run(['tiny'], {}, commandContext(root));
    expect(unsigned.json).toMatchObject({ checkpoint: { size: 9, note: null, file: null } });
    expect(unsigned.text).toContain('nobody');
  });

  it.each<[string, Options]>([
    ['two things at once', { check: 'a', add: 'b' }],
    ['--out when writing', { out: 'a' }],
    ['--log with --check', { check: 'a', log: ['b'] }],
    ['--first without --cosign', { first: true }],
    ['--cosign without a key', { cosign: 'a' }],
    ['--cosign without a ledger’s key', { cosign: 'a', key: ['b'] }],
    ['two keys to sign with', { key: ['a', 'b'] }],
    ['--check without keys', { check: 'a' }],
    ['a public key to sign with', { key: ['lab+00000000+AAAA'] }],
  ])('refuses %s', async (_, options) => {
    const { root } = await newWorkspace();
    expect(await refused(checkpoint, root, options)).toMatchObject({ code: 'USAGE' });
  });

  it('a manifest without a run has nothing to sign', async () => {
    const { root } = await newWorkspace();
    expect(await refused(checkpoint, root, {})).toMatchObject({ code: 'LEDGER_NOT_FOUND' });
  });
});

describe('a cosigner on another machine', () => {
  it('needs the note, the proof and the ledger’s public key; the keeper takes its line over', async () => {
    const { root, folder } = await ledger();
    const elsewhere = tempFolder();
    const lab = await key('lab');
    const witness = await key('w.example', { cosigner: true });
    await ok(checkpoint, root, { key: [lab.file] });
    cpSync(join(folder, 'checkpoints', '7.note'), join(elsewhere, '7.note'));
    const asks = { key: [witness.file], log: [lab.vkey] };
    expect(await refused(checkpoint, elsewhere, { cosign: '7.note', ...asks })).toMatchObject({
      code: 'PROOF_UNAVAILABLE',
      hint: expect.stringContaining('--first'),
    });
    const first = await ok(checkpoint, elsewhere, { cosign: '7.note', first: true, ...asks });
    expect(first).toMatchObject({ size: '7', after: null, cosigned_before: false, file: '7.note' });

    await grow(root, 1);
    await ok(checkpoint, root, { key: [lab.file] });
    await ok(checkpoint, root, { extends: join(elsewhere, '7.note'), out: join(elsewhere, 'ask.txt') });
    const extension = parseExtension(readFileSync(join(elsewhere, 'ask.txt')));
    expect(extension).toMatchObject({ oldSize: 7n });
    const second = await checkpoint.run([], { cosign: 'ask.txt', ...asks }, commandContext(elsewhere));
    expect(second.json).toMatchObject({ size: '13', after: '7', file: null, by: witness.vkey });
    const { note } = second.json as { note: string };
    expect(second.text).toContain(note.trimEnd());
    writeFileSync(join(elsewhere, '13.note'), note);

    const policy = `witness w ${witness.vkey}\ngroup all all w\nquorum all\nlog ${lab.vkey}\n`;
    writeFileSync(join(root, 'policy.txt'), policy);
    const ours = { check: join(folder, 'checkpoints', '13.note'), policy: 'policy.txt' };
    expect(await refused(checkpoint, root, ours)).toMatchObject({ code: 'QUORUM_UNMET', exitCode: 4 });
    const added = { file: join(folder, 'checkpoints', '13.note'), added: ['w.example'], verified: true };
    const give = { add: join(elsewhere, '13.note'), policy: 'policy.txt' };
    expect(await ok(checkpoint, root, give)).toMatchObject(added);
    expect(await ok(checkpoint, root, give)).toMatchObject({ ...added, added: [] });
    expect(await ok(checkpoint, root, ours)).toMatchObject({
      size: '13',
      quorum: { name: 'all', satisfied: true },
      cosigned_by: [{ vkey: witness.vkey, time: '2026-12-01T00:00:00Z' }],
    });
    // Cosigning it again adds nothing.
    const again = await ok(checkpoint, elsewhere, { cosign: '13.note', ...asks });
    expect(again).toMatchObject({ cosigned_before: true, after: '13' });
  });

  it('can prove from a copy of the ledger, and signs nothing that is not proven', async () => {
    const { root, folder } = await ledger();
    const lab = await key('lab');
    const witness = await key('w', { cosigner: true });
    const asks = { key: [witness.file], log: [lab.vkey] };
    await ok(checkpoint, root, { key: [lab.file] });
    const elsewhere = tempFolder();
    cpSync(join(folder, 'checkpoints', '7.note'), join(elsewhere, '7.note'));
    await ok(checkpoint, elsewhere, { cosign: '7.note', first: true, ...asks });
    await grow(root, 1);
    await ok(checkpoint, root, { key: [lab.file] });
    const newer = join(elsewhere, '13.note');
    cpSync(join(folder, 'checkpoints', '13.note'), newer);
    // No proof and no ledger.
    expect(await refused(checkpoint, elsewhere, { cosign: newer, ...asks })).toMatchObject({
      code: 'PROOF_UNAVAILABLE',
    });
    const other = await ledger();
    expect(
      await refused(checkpoint, elsewhere, { cosign: newer, ledger: other.folder, ...asks }),
    ).toMatchObject({
      code: 'PROOF_UNAVAILABLE',
    });
    // A proof from the wrong size.
    const wrong = await checkpoint.run([], { extends: '5' }, commandContext(root));
    writeFileSync(join(elsewhere, 'wrong.txt'), `${wrong.text}\n`);
    expect(await refused(checkpoint, elsewhere, { cosign: 'wrong.txt', ...asks })).toMatchObject({
      code: 'PROOF_UNAVAILABLE',
      hint: expect.stringContaining('--extends 7'),
    });
    expect(readFileSync(newer, 'utf8')).not.toContain('— w ');
    expect(await ok(checkpoint, elsewhere, { cosign: newer, ledger: folder, ...asks })).toMatchObject({
      after: '7',
    });
    // In the workspace itself the ledger is at hand.
    await grow(root, 2);
    await ok(checkpoint, root, { key: [lab.file] });
    const inPlace = join(folder, 'checkpoints', '19.note');
    expect(await ok(checkpoint, root, { cosign: inPlace, ...asks })).toMatchObject({ after: '13' });
    expect(readFileSync(inPlace, 'utf8')).toContain('— w ');
    // It never goes back.
    expect(await refused(checkpoint, elsewhere, { cosign: '7.note', ...asks })).toMatchObject({
      code: 'PROOF_UNAVAILABLE',
      message: 'this key has cosigned 19 entries; the note has 7',
    });
    // Its record lost, the last note that it cosigned does as well.
    rmSync(`${witness.file}.cosigned`, { recursive: true });
    expect(await refused(checkpoint, root, { cosign: inPlace, ...asks })).toMatchObject({
      code: 'PROOF_UNAVAILABLE',
    });
    await grow(root, 3);
    await ok(checkpoint, root, { key: [lab.file] });
    const last = { cosign: join(folder, 'checkpoints', '25.note'), ...asks };
    expect(await ok(checkpoint, root, { ...last, since: inPlace })).toMatchObject({ after: '19' });
  });

  it('a note of another ledger, or another state, is not taken over', async () => {
    const one = await ledger();
    const other = await ledger();
    const lab = await key('lab');
    await ok(checkpoint, one.root, { key: [lab.file] });
    await ok(checkpoint, other.root, { key: [lab.file] });
    const theirs = join(other.folder, 'checkpoints', '7.note');
    expect(await refused(checkpoint, one.root, { add: theirs })).toMatchObject({
      code: 'CHECKPOINT_INCONSISTENT',
    });
    expect(await refused(checkpoint, one.root, { extends: theirs })).toMatchObject({
      code: 'PROOF_UNAVAILABLE',
    });
    expect(await refused(checkpoint, one.root, { extends: '8' })).toMatchObject({
      code: 'PROOF_UNAVAILABLE',
    });
    const book = await openBook(one.root, undefined, 'write', () => '2026-12-02T00:00:00.000Z');
    book.store.append([{ ...gateDraft('6'.repeat(32)), manifest: book.manifestDigest }]);
    book.close();
    const [origin = '', , root = '', ...rest] = readFileSync(theirs, 'utf8').split('\n');
    writeFileSync(theirs, [origin, '8', root, ...rest].join('\n'));
    expect(await refused(checkpoint, one.root, { add: theirs })).toMatchObject({ code: 'PROOF_UNAVAILABLE' });
  });

  it('a cosignature that does not verify is not taken over, when its key is given', async () => {
    const { root, folder } = await ledger();
    const lab = await key('lab');
    const witness = await key('w', { cosigner: true });
    await ok(checkpoint, root, { key: [lab.file] });
    const file = join(folder, 'checkpoints', '7.note');
    const copy = join(tempFolder(), '7.note');
    cpSync(file, copy);
    await ok(checkpoint, tempFolder(), { cosign: copy, first: true, key: [witness.file], log: [lab.vkey] });
    const text = readFileSync(copy, 'utf8');
    const line = text.split('\n').at(-2) ?? '';
    const blob = Buffer.from(line.split(' ').at(-1) ?? '', 'base64');
    blob[40] = (blob[40] ?? 0) ^ 1;
    writeFileSync(copy, text.replace(line, `— w ${blob.toString('base64')}`));
    const options = { add: copy, key: [lab.vkey, witness.vkey] };
    expect(await refused(checkpoint, root, options)).toMatchObject({ code: 'SIGNATURE_INVALID' });
    expect(readFileSync(file, 'utf8')).not.toContain('— w ');
  });
});

describe('boundbook checkpoint --check', () => {
  it('verifies by given keys alone', async () => {
    const { root, folder, id } = await ledger();
    const lab = await key('lab');
    await ok(checkpoint, root, { key: [lab.file] });
    const elsewhere = tempFolder();
    cpSync(join(folder, 'checkpoints', '7.note'), join(elsewhere, 'n.note'));
    const checked = await checkpoint.run([], { check: 'n.note', key: [lab.vkey] }, commandContext(elsewhere));
    expect(checked.json).toMatchObject({ origin: `lab/${id}/1`, size: '7', quorum: null, cosigned_by: [] });
    expect(checked.text).toContain('not checked');
    const stranger = await key('lab');
    const codes = [
      await refused(checkpoint, elsewhere, { check: 'n.note', key: [stranger.vkey] }),
      await refused(checkpoint, elsewhere, { check: 'n.note', key: ['lab'] }),
      await refused(checkpoint, elsewhere, { check: 'no.note', key: [lab.vkey] }),
    ];
    expect(codes).toMatchObject([
      { code: 'SIGNATURE_INVALID' },
      { code: 'KEY_INVALID' },
      { code: 'FILE_NOT_FOUND' },
    ]);
    expect(
      await refused(checkpoint, elsewhere, { check: 'n.note', key: [lab.vkey] }, ['tiny']),
    ).toMatchObject({
      code: 'USAGE',
    });
    const text = readFileSync(join(elsewhere, 'n.note'), 'utf8');
    writeFileSync(join(elsewhere, 'n.note'), text.replace('\n7\n', '\n8\n'));
    expect(await refused(checkpoint, elsewhere, { check: 'n.note', key: [lab.vkey] })).toMatchObject({
      code: 'SIGNATURE_INVALID',
    });
  });
});
