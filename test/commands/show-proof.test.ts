import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { command as checkpoint } from '../../src/commands/checkpoint.js';
import type { OptionValue } from '../../src/commands/command.js';
import { command as show } from '../../src/commands/show.js';
import { canonicalBytes } from '../../src/core/canonical-json.js';
import { openBook } from '../../src/ledger/book.js';
import { formatTlogProof, parseTlogProof } from '../../src/ledger/tlog-proof.js';
import { writeSignerKey } from '../../src/signing/key-file.js';
import { formatVerifierKey, generateKey } from '../../src/signing/keys.js';
import { newBook, pausedDraft, SLOTS, SlotScript, slotAt, tempFolder } from '../ledger/support.js';
import { commandContext } from './context.js';

/** A value that cannot come about by accident. */
const VALUE = 0.123456789;
const KEY = generateKey('lab.example');
const VKEY = formatVerifierKey(KEY.verifier);

type Options = Readonly<Record<string, OptionValue>>;

function run(root: string, args: string[], options: Options = {}) {
  return show.run(args, options, commandContext(root));
}

function refused(root: string, args: string[], options: Options): Promise<unknown> {
  return run(root, args, options).then(
    () => 'nothing was refused',
    (error: unknown) => error,
  );
}

async function place(
  changes: Record<string, unknown> = {},
  scripts = SLOTS.map((slot) => new SlotScript(slot).whole(VALUE)),
) {
  const { root, book } = await newBook(scripts, changes);
  book.store.append([pausedDraft('finished')]);
  book.close();
  const keyFile = join(tempFolder(), 'lab.key');
  await writeSignerKey(keyFile, KEY, root);
  const sign = () => checkpoint.run([], { key: [keyFile] }, commandContext(root));
  return { root, sign, book };
}

const SLOT = slotAt(3).id;
const OPEN = { blinding: 'none' };

describe('boundbook show --proof', () => {
  it('gives one file that a stranger verifies with a public key and nothing else', async () => {
    const { root, sign } = await place(OPEN);
    await sign();
    const out = join(tempFolder(), 'slot.tlog-proof');
    const written = await run(root, [SLOT], { proof: true, out });
    expect(written.json).toMatchObject({ slot: SLOT, type: 'slot.settled', shown: true, file: out });
    expect(readFileSync(out, 'utf8')).toBe((written.json as { proof: string }).proof);
    expect((await run(root, [SLOT], { proof: true })).text).toBe(readFileSync(out, 'utf8').trimEnd());
    const elsewhere = tempFolder();
    const verified = await run(elsewhere, [], { verify: out, key: [VKEY] });
    expect(verified.json).toMatchObject({
      verified: true,
      entry: { type: 'slot.settled', slot: SLOT, value: VALUE },
    });
    expect(verified.text).toContain('not checked');
  });

  it('its signature and hashes verify with openssl and sha256 alone', async () => {
    const { root, sign } = await place(OPEN);
    await sign();
    const { json } = await run(root, [SLOT], { proof: true });
    const {
      extra,
      hashes,
      index,
      checkpoint: note,
    } = parseTlogProof(Buffer.from((json as { proof: string }).proof));
    const script = `
import base64, hashlib, sys
body, index, size, root = (base64.b64decode(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), base64.b64decode(sys.argv[4]))
path = [base64.b64decode(one) for one in sys.argv[5:]]
h = lambda data: hashlib.sha256(data).digest()
node, fn, sn = h(b'\\0' + body), index, size - 1
for p in path:
    assert sn != 0
    if fn & 1 or fn == sn:
        node = h(b'\\1' + p + node)
        while fn & 1 == 0 and fn != 0:
            fn >>= 1; sn >>= 1
    else:
        node = h(b'\\1' + node + p)
    fn >>= 1; sn >>= 1
assert sn == 0 and node == root
print('proved')`;
    const [, size = '', text = ''] = note.toString('utf8').split('\n');
    const args = [
      extra?.toString('base64') ?? '',
      String(index),
      size,
      text,
      ...hashes.map((one) => one.toString('base64')),
    ];
    expect(execFileSync('python3', ['-c', script, ...args], { encoding: 'utf8' })).toBe('proved\n');
  });

  it('holds no outcome while outcomes are blinded; the entry is shown later, and the proof holds for it', async () => {
    const { root, sign } = await place();
    await sign();
    const out = join(tempFolder(), 'slot.tlog-proof');
    const { text, json } = await run(root, [SLOT], { proof: true, out });
    const file = readFileSync(out, 'utf8');
    expect(json).toMatchObject({ shown: false });
    for (const printed of [text, JSON.stringify(json), file]) {
      expect(printed).not.toContain(String(VALUE));
      expect(
        Buffer.from(printed.replaceAll(/[^A-Za-z0-9+/=]/g, ''), 'base64').toString('latin1'),
      ).not.toContain('0.1234');
    }
    expect(parseTlogProof(Buffer.from(file)).extra).toBeUndefined();
    expect(await refused(root, [], { verify: out, key: [VKEY] })).toMatchObject({
      code: 'PROOF_UNAVAILABLE',
    });
    const book = await openBook(root, undefined, 'read');
    const entry = book.store.entryAt((json as { index: number }).index);
    book.close();
    const bodyFile = join(tempFolder(), 'entry.json');
    writeFileSync(bodyFile, Buffer.concat([canonicalBytes(entry), Buffer.from('\n')]));
    const verified = await run(tempFolder(), [], { verify: out, key: [VKEY], entry: bodyFile });
    expect(verified.json).toMatchObject({ entry: { slot: SLOT, value: VALUE } });
  });

  it('proves that a slot is finally unresolved, which shows no outcome', async () => {
    const unresolved = new SlotScript(slotAt(3))
      .start()
      .failed('generate', 'time_limit')
      .finished('failure')
      .unresolved();
    const { root, sign } = await place({}, [unresolved]);
    await sign();
    const { json } = await run(root, [SLOT], { proof: true });
    expect(json).toMatchObject({ type: 'slot.unresolved', shown: true });
  });

  it('uses the newest signed checkpoint, and needs one that covers the end of the slot', async () => {
    const half = SLOTS.slice(0, 4).map((slot) => new SlotScript(slot).whole(VALUE));
    const { root, sign } = await place(OPEN, half);
    expect(await refused(root, [SLOT], { proof: true })).toMatchObject({
      code: 'PROOF_UNAVAILABLE',
      hint: expect.stringContaining('boundbook checkpoint --key'),
    });
    await checkpoint.run([], {}, commandContext(root));
    expect(await refused(root, [SLOT], { proof: true })).toMatchObject({ code: 'PROOF_UNAVAILABLE' });
    await sign();
    const { json: first } = await run(root, [SLOT], { proof: true });
    const later = await openBook(root, undefined, 'write', () => '2026-12-02T00:00:00.000Z');
    const next = new SlotScript(slotAt(5), '7'.repeat(32));
    later.store.append(
      [
        { ...(later.store.entryAt(1) as never as { type: 'gate.passed' }), session: '7'.repeat(32) } as never,
      ].map(strip),
    );
    later.store.append(next.whole(VALUE).drafts, next.objects);
    later.close();
    expect(await refused(root, [slotAt(5).id], { proof: true })).toMatchObject({ code: 'PROOF_UNAVAILABLE' });
    await sign();
    const { json: second } = await run(root, [SLOT], { proof: true });
    const { json: third } = await run(root, [slotAt(5).id], { proof: true });
    expect((second as { size: number }).size).toBeGreaterThan((first as { size: number }).size);
    expect((third as { size: number }).size).toBe((second as { size: number }).size);
    expect(await refused(root, [slotAt(7).id], { proof: true })).toMatchObject({ code: 'PROOF_UNAVAILABLE' });
    expect(await refused(root, ['0'.repeat(32)], { proof: true })).toMatchObject({
      code: 'SLOT_NOT_PLANNED',
    });
  });
});

/** An entry without what the store adds. */
function strip({ seq: _, prev: __, time: ___, ...draft }: Record<string, unknown>) {
  return draft as never;
}

describe('boundbook show --verify', () => {
  it.each<[string, (proof: Buffer) => Buffer, string]>([
    ['another entry', (bytes) => edit(bytes, { extra: Buffer.from('{"value":1}') }), 'PROOF_INVALID'],
    ['another index', (bytes) => edit(bytes, { index: 4n }), 'PROOF_INVALID'],
    [
      'a hash less',
      (bytes) => edit(bytes, { hashes: parseTlogProof(bytes).hashes.slice(1) }),
      'PROOF_INVALID',
    ],
    [
      'another checkpoint text',
      (bytes) => Buffer.from(bytes.toString().replace('lab.example/', 'lab.examplf/')),
      'SIGNATURE_INVALID',
    ],
    ['trailing garbage', (bytes) => Buffer.concat([bytes, Buffer.from('x')]), 'NOTE_INVALID'],
    ['nothing of it', () => Buffer.from('hello\n'), 'NOTE_INVALID'],
  ])('refuses %s', async (_, change, code) => {
    const { root, sign } = await place(OPEN, [new SlotScript(slotAt(3)).whole(VALUE)]);
    await sign();
    const { json } = await run(root, [SLOT], { proof: true });
    const file = join(tempFolder(), 'p');
    writeFileSync(file, change(Buffer.from((json as { proof: string }).proof)));
    expect(await refused(root, [], { verify: file, key: [VKEY] })).toMatchObject({ code, exitCode: 4 });
  });

  it('refuses keys that it was not given, and flags that do not go with it', async () => {
    const { root, sign } = await place(OPEN, [new SlotScript(slotAt(3)).whole(VALUE)]);
    await sign();
    const file = join(tempFolder(), 'p');
    await run(root, [SLOT], { proof: true, out: file });
    const stranger = formatVerifierKey(generateKey('lab.example').verifier);
    expect(await refused(root, [], { verify: file, key: [stranger] })).toMatchObject({
      code: 'SIGNATURE_INVALID',
    });
    const usage = [
      refused(root, [], { verify: file }),
      refused(root, [SLOT], { verify: file, key: [VKEY] }),
      refused(root, [], {}),
      refused(root, ['1'], { proof: true }),
      refused(root, ['1'], { key: [VKEY] }),
      refused(root, [SLOT], { proof: true, entry: 'e' }),
    ];
    for (const one of usage) expect(await one).toMatchObject({ code: 'USAGE' });
  });
});

function edit(bytes: Buffer, changes: Partial<ReturnType<typeof parseTlogProof>>): Buffer {
  return formatTlogProof({ ...parseTlogProof(bytes), ...changes });
}
