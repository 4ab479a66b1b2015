import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openBook } from '../../src/ledger/book.js';
import { checkpointOf, verifyCheckpoint } from '../../src/ledger/checkpoint.js';
import { checkpointFaults } from '../../src/ledger/checkpoint-entry.js';
import { decideCheckpoint, healNotes, writeCheckpoint } from '../../src/ledger/checkpoints.js';
import type { EntryDraft } from '../../src/ledger/entries/entry.js';
import { GroupCommitter } from '../../src/ledger/group-commit.js';
import { CompactRange } from '../../src/ledger/merkle.js';
import { notePath, readNotes, writeNote } from '../../src/ledger/note-files.js';
import { toObject } from '../../src/ledger/objects.js';
import {
  assertShortName,
  keyOfLedger,
  keysForOrigin,
  originText,
  parseOrigin,
} from '../../src/ledger/origin.js';
import { generateKey, verifierKey } from '../../src/signing/keys.js';
import { errorOf } from '../signing/support.js';
import { cosigned, signedNote } from './notes.js';
import { foldOf, newBook, SlotScript, slotAt, testClock } from './support.js';

const KEY = generateKey('lab.example/eval');
const LEDGER = 'ab'.repeat(16);
const ORIGIN = `lab.example/eval/${LEDGER}/1`;

describe('origins', () => {
  it('are key name, ledger and incarnation', () => {
    const origin = { name: 'lab.example/eval', ledger: LEDGER, incarnation: 1 };
    expect(originText(origin)).toBe(ORIGIN);
    expect(parseOrigin(ORIGIN)).toEqual(origin);
    expect(parseOrigin(`${ORIGIN.slice(0, -1)}12`)?.incarnation).toBe(12);
    for (const other of [
      '',
      LEDGER,
      `/${LEDGER}/1`,
      `a/${LEDGER}`,
      `a/${LEDGER}/0`,
      `a/${LEDGER}/01`,
      `a/${LEDGER}/-1`,
    ]) {
      expect(parseOrigin(other), other).toBeNull();
    }
    expect(parseOrigin(`a/${LEDGER.toUpperCase()}/1`)).toBeNull();
  });

  it('a key speaks for the origins below its short name, and a full key for its own alone', () => {
    const full = verifierKey(ORIGIN, 'ed25519', KEY.verifier.publicKey);
    expect(keysForOrigin(ORIGIN, [KEY.verifier])).toEqual([full]);
    expect(keysForOrigin(ORIGIN, [full])).toEqual([full]);
    expect(keysForOrigin(`${ORIGIN}0`, [full])).toEqual([]);
    expect(keysForOrigin(ORIGIN, [verifierKey('lab.example', 'ed25519', KEY.verifier.publicKey)])).toEqual(
      [],
    );
    expect(keysForOrigin(ORIGIN, [generateKey('lab.example/eval', 'cosignature').verifier])).toEqual([]);
    expect(keyOfLedger(KEY, { ledger: LEDGER, incarnation: 1 }).verifier).toEqual(full);
  });

  it('a key that is a cosigner’s, too long a name, or an origin as a name is refused', () => {
    const identity = { ledger: LEDGER, incarnation: 1 };
    expect(errorOf(() => keyOfLedger(generateKey('w', 'cosignature'), identity)).code).toBe('KEY_INVALID');
    expect(errorOf(() => assertShortName('é'.repeat(101))).code).toBe('KEY_INVALID');
    expect(errorOf(() => assertShortName(ORIGIN)).code).toBe('KEY_INVALID');
    assertShortName('é'.repeat(100));
  });
});

describe('a checkpoint', () => {
  it('covers every entry before it, is signed for the ledger, and lies in a file', async () => {
    const { book } = await newBook([new SlotScript(slotAt(0)).whole(1)]);
    const before = book.head();
    const { entry, file } = await writeCheckpoint(book, { key: KEY, tokens: [] });
    expect(entry).toMatchObject({ seq: before.size, size: before.size, root: before.root, timestamps: [] });
    expect(file).toBe(join(book.folder, 'checkpoints', `${before.size}.note`));
    const note = readFileSync(file ?? '');
    expect(note.toString()).toBe(entry.note);
    const origin = `lab.example/eval/${book.opened.ledger}/1`;
    const { checkpoint } = verifyCheckpoint(note, { logs: keysForOrigin(origin, [KEY.verifier]) });
    expect(checkpoint).toEqual({ origin, size: BigInt(before.size), root: Buffer.from(before.root, 'hex') });
    expect(book.fold.checkpoints).toMatchObject({ signed: [before.size], last: before.size });
    expect(statSync(file ?? '').mode & 0o777).toBe(0o644);
  });

  it('without a key is an entry without a note, and no file', async () => {
    const { book } = await newBook();
    const { entry, file } = await writeCheckpoint(book, { key: null, tokens: [] });
    expect(entry).toMatchObject({ seq: 2, size: 2, note: null });
    expect(file).toBeNull();
    expect(existsSync(join(book.folder, 'checkpoints'))).toBe(false);
    expect(book.fold.checkpoints).toMatchObject({ signed: [], last: 2 });
  });

  it('is exact when other processes append just before it, and others of the same commit', async () => {
    const { root, book } = await newBook();
    const other = await openBook(root, undefined, 'write', testClock());
    const theirs = new SlotScript(slotAt(0)).whole(1);
    other.store.append(theirs.drafts, theirs.objects);
    other.close();
    const committer = new GroupCommitter(book.store);
    const ours = new SlotScript(slotAt(1)).start();
    const [, written, again] = await Promise.all([
      committer.submit(ours.drafts, ours.objects),
      committer.transact(decideCheckpoint(book, { key: KEY, tokens: [] })),
      committer.transact(decideCheckpoint(book, { key: KEY, tokens: [] })),
    ]);
    // Opening, gate, five entries of another process, one of this commit.
    expect(written.entries).toMatchObject([{ type: 'checkpoint', seq: 8, size: 8 }]);
    expect(again.entries).toMatchObject([{ type: 'checkpoint', seq: 9, size: 9 }]);
    book.close();
    const reading = await openBook(root, undefined, 'read');
    expect(reading.fold.checkpoints.signed).toEqual([8, 9]);
    reading.close();
  });

  it('names each time-stamp token once, whoever is at it', async () => {
    const { root, book } = await newBook();
    const [a, b] = [toObject('token a'), toObject('token b')];
    const first = await writeCheckpoint(book, { key: null, tokens: [a, a] });
    expect(first.entry.timestamps).toEqual([a.digest]);
    expect(book.store.getObject(a.digest).toString()).toBe('token a');
    const other = await openBook(root, undefined, 'write', testClock());
    const second = await writeCheckpoint(other, { key: null, tokens: [a, b] });
    expect(second.entry.timestamps).toEqual([b.digest]);
    other.close();
    expect((await writeCheckpoint(book, { key: null, tokens: [b, a] })).entry.timestamps).toEqual([]);
    const committer = new GroupCommitter(book.store);
    const c = toObject('token c');
    const both = await Promise.all(
      [0, 1].map(() => committer.transact(decideCheckpoint(book, { key: null, tokens: [c] }))),
    );
    expect(both.map(({ entries }) => entries)).toMatchObject([
      [{ timestamps: [c.digest] }],
      [{ timestamps: [] }],
    ]);
  });

  it('takes up to a hundred tokens; the next one takes the rest', async () => {
    const { book } = await newBook();
    const tokens = Array.from({ length: 130 }, (_, i) => toObject(`token ${i}`));
    expect((await writeCheckpoint(book, { key: KEY, tokens })).entry.timestamps.length).toBe(100);
    expect((await writeCheckpoint(book, { key: KEY, tokens })).entry.timestamps.length).toBe(30);
  });
});

describe('the files of checkpoints', () => {
  it('that a kill kept from being written are made from the entries', async () => {
    const { root, book } = await newBook();
    book.store.transact(decideCheckpoint(book, { key: KEY, tokens: [] }));
    book.store.transact(decideCheckpoint(book, { key: null, tokens: [] }));
    book.store.transact(decideCheckpoint(book, { key: KEY, tokens: [] }));
    book.close();
    expect(await readNotes(book.folder)).toEqual([]);
    const again = await openBook(root, undefined, 'write', testClock());
    await healNotes(again);
    const names = (await readNotes(book.folder)).map(({ name }) => name);
    expect(names).toEqual(['checkpoints/2.note', 'checkpoints/4.note']);
    rmSync(notePath(book.folder, 2));
    writeFileSync(notePath(book.folder, 4), '');
    await writeCheckpoint(again, { key: KEY, tokens: [] });
    expect((await readNotes(book.folder)).map(({ name, bytes }) => [name, bytes.length > 0])).toEqual([
      ['checkpoints/2.note', true],
      ['checkpoints/4.note', true],
      ['checkpoints/5.note', true],
    ]);
    again.close();
  });

  it('are never replaced: they may have cosignatures by now', async () => {
    const { book } = await newBook();
    const { entry, file = null } = await writeCheckpoint(book, { key: KEY, tokens: [] });
    const more = cosigned(Buffer.from(entry.note ?? ''), generateKey('w.example', 'cosignature'), 7n);
    writeFileSync(file ?? '', more);
    await writeNote(book.folder, entry);
    await healNotes(book);
    expect(readFileSync(file ?? '')).toEqual(more);
  });

  it('of a state that was lost are kept under another name', async () => {
    const { book } = await newBook();
    const lost = signedNote({ origin: `lab/${'0'.repeat(32)}/3`, size: 2n, root: Buffer.alloc(32, 1) });
    mkdirSync(join(book.folder, 'checkpoints'));
    writeFileSync(notePath(book.folder, 2), lost);
    writeFileSync(join(book.folder, 'checkpoints', 'readme.txt'), 'no note');
    const { entry } = await writeCheckpoint(book, { key: KEY, tokens: [] });
    expect((await readNotes(book.folder)).map(({ name, bytes }) => [name, bytes.toString()])).toEqual([
      ['checkpoints/2.incarnation-3.note', lost.toString()],
      ['checkpoints/2.note', entry.note],
    ]);
  });
});

describe('what is no lawful checkpoint', () => {
  const digest = toObject('token').digest;
  const good = { type: 'checkpoint' as const, size: 2, root: '0'.repeat(64), note: null, timestamps: [] };

  it.each<[string, readonly EntryDraft[], string]>([
    ['another size', [{ ...good, size: 1 }], 'it speaks of 1 entries; there are 2 before it'],
    ['a token twice', [{ ...good, timestamps: [digest, digest] }], 'it names a time-stamp token twice'],
    [
      'a token that was named before',
      [
        { ...good, timestamps: [digest] },
        { ...good, size: 3, timestamps: [digest] },
      ],
      `an entry before it named the time-stamp token ${digest}`,
    ],
  ])('%s', (_, drafts, message) => {
    const { violations, fold } = foldOf(drafts);
    expect(violations).toEqual([{ seq: drafts.length + 1, clause: 'P16', message }]);
    expect(fold.size).toBe(drafts.length + 2);
  });

  it('another root, or a note that says something else, which opening refuses', async () => {
    const { root, book } = await newBook();
    expect(() => book.store.append([good])).toThrowError(
      /checkpoint: its root is 0{64}; the entries before it make/,
    );
    book.close();
    const error = await openBook(root, undefined, 'read').catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'LEDGER_DAMAGED', evidence: { seq: 2 } });
  });

  it('a note of another size, root, ledger, incarnation or form', () => {
    const tree = new CompactRange();
    tree.append(Buffer.alloc(32, 7));
    const identity = { ledger: LEDGER, incarnation: 1 };
    const root = tree.root();
    const faults = (note: Buffer | string, who: typeof identity | null = identity) =>
      checkpointFaults({ size: 1, root: root.toString('hex'), note: note.toString() }, tree, who);
    const right = { origin: ORIGIN, size: 1n, root };
    expect(faults(signedNote(right))).toEqual([]);
    expect(faults(signedNote({ ...right, size: 2n }))).toEqual(['its note says size 2']);
    expect(faults(signedNote({ ...right, root: Buffer.alloc(32) }))).toEqual([
      `its note says the root ${'0'.repeat(64)}`,
    ]);
    for (const origin of [`${ORIGIN}1`, `lab.example/eval/${'0'.repeat(32)}/1`, 'lab.example/eval', LEDGER]) {
      expect(faults(signedNote({ ...right, origin }))).toEqual([
        `its note is of "${origin}", another ledger or incarnation`,
      ]);
    }
    expect(faults(signedNote({ ...right, origin: `x/${LEDGER}/9` }), null)).toEqual([]);
    expect(faults(signedNote(right, 'somebody.else'))).toEqual([
      'its note has no signature under the name of its origin',
    ]);
    expect(faults('no note')).toEqual([
      'the note is refused: no empty line parts the text from the signatures',
    ]);
    expect(checkpointOf(signedNote(right))).toEqual(right);
  });
});
