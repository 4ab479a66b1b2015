import { describe, expect, it } from 'vitest';
import { formatExtension, isExtension, parseExtension } from '../../src/ledger/extension.js';
import { errorOf } from '../signing/support.js';
import { signedNote } from './notes.js';

const NOTE = signedNote({ origin: `lab/${'1'.repeat(32)}/1`, size: 9n, root: Buffer.alloc(32, 3) });
const HASH = Buffer.alloc(32, 7);
const LINE = HASH.toString('base64');

describe('an extension (c2sp.org/tlog-witness, body of add-checkpoint)', () => {
  it('has the written form of the specification and is read back', () => {
    const extension = { oldSize: 5n, hashes: [HASH, HASH], note: NOTE };
    const bytes = formatExtension(extension);
    expect(bytes.toString('utf8')).toBe(`old 5\n${LINE}\n${LINE}\n\n${NOTE.toString('utf8')}`);
    expect(parseExtension(bytes)).toEqual(extension);
    expect(isExtension(bytes)).toBe(true);
    expect(isExtension(NOTE)).toBe(false);
    const first = formatExtension({ oldSize: 0n, hashes: [], note: NOTE });
    expect(first.toString('utf8')).toBe(`old 0\n\n${NOTE.toString('utf8')}`);
    expect(parseExtension(first).hashes).toEqual([]);
  });

  it.each<[string, string]>([
    ['no size', `old\n\n${NOTE}`],
    ['a hexadecimal size', `old 0x5\n\n${NOTE}`],
    ['a leading zero', `old 05\n\n${NOTE}`],
    ['a sign', `old -5\n\n${NOTE}`],
    ['2^64', `old 18446744073709551616\n\n${NOTE}`],
    ['a size of 21 digits', `old ${'9'.repeat(21)}\n\n${NOTE}`],
    ['another first line', `new 5\n\n${NOTE}`],
    ['a short hash', `old 5\n${Buffer.alloc(31).toString('base64')}\n\n${NOTE}`],
    ['a long hash', `old 5\n${Buffer.alloc(33).toString('base64')}\n\n${NOTE}`],
    ['a hash that is not base64', `old 5\n${LINE.replace('=', '!')}\n\n${NOTE}`],
    ['trailing bits', `old 5\n${LINE.slice(0, -2)}d=\n\n${NOTE}`],
    ['64 hashes', `old 5\n${`${LINE}\n`.repeat(64)}\n${NOTE}`],
    ['no empty line', `old 5\n${LINE}\n`],
    ['no note', `old 5\n${LINE}\n\n`],
    ['a note that is none', `old 5\n\nhello\n`],
    ['carriage returns', `old 5\r\n\r\n${NOTE}`],
    ['trailing garbage', `old 5\n\n${NOTE}\n`],
    ['nothing', ''],
  ])('refuses %s', (_, text) => {
    expect(errorOf(() => parseExtension(Buffer.from(text))).code).toBe('NOTE_INVALID');
  });

  it('refuses bytes that are not UTF-8, and more than a megabyte', () => {
    const bad = Buffer.concat([Buffer.from('old 5\n'), Buffer.of(0xff), Buffer.from(`\n\n${NOTE}`)]);
    expect(errorOf(() => parseExtension(bad)).code).toBe('NOTE_INVALID');
    expect(errorOf(() => parseExtension(Buffer.alloc(2_000_000, 'a'))).code).toBe('NOTE_INVALID');
    expect(errorOf(() => formatExtension({ oldSize: -1n, hashes: [], note: NOTE })).code).toBe(
      'NOTE_INVALID',
    );
  });
});
