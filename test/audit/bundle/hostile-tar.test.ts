import { closeSync, ftruncateSync, openSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { auditBundle } from '../../../src/audit/audit.js';
import { exportBundle } from '../../../src/audit/bundle/export.js';
import { BoundbookError } from '../../../src/core/errors.js';
import { FEW, signedBook } from '../../mutation/book.js';
import { filesBelow } from '../../support/loose-bundle.js';
import { auditHostile, craftTar, type Member, pax } from './hostile-support.js';
import { temporaryFolder } from './support.js';

/** What a stranger may send as a tar, through the program itself. Needs dist/, which `npm test` has built before. */

const MB = 1024 * 1024;
const MAX_MEMORY = 200 * MB;

/** A sound bundle, member by member, in the folder `b`. */
let sound: Member[];
let exported: Buffer;
beforeAll(async () => {
  const { root } = await signedBook(temporaryFolder(), FEW, true);
  await exportBundle(root, undefined, { out: 'bundle', tar: 'bundle.tar' });
  const folder = join(root, 'bundle');
  sound = filesBelow(folder).map((path) => ({
    path: `b/${path}`,
    content: readFileSync(join(folder, path)),
  }));
  exported = readFileSync(join(root, 'bundle.tar'));
});

function write(bytes: Buffer, name = 'bundle.tar'): string {
  const path = join(temporaryFolder(), name);
  writeFileSync(path, bytes);
  return path;
}

interface Expected {
  readonly status?: 0 | 2 | 4;
  readonly says: readonly RegExp[];
}

async function expectOf(path: string, { status = 4, says }: Expected): Promise<void> {
  const audited = await auditHostile(path);
  for (const pattern of says) expect(audited.stdout + audited.stderr).toMatch(pattern);
  expect(audited.status).toBe(status);
  expect(audited.memory).toBeLessThan(MAX_MEMORY);
}

test('a crafted tar of the sound bundle is clean: what is found below is found for its own sake', () =>
  expectOf(write(craftTar(sound)), { status: 0, says: [/audit: clean/] }));

/** A member in front of the sound ones. */
const leading =
  (...members: Member[]) =>
  () =>
    craftTar([...members, ...sound]);
const x = Buffer.from('x');
const size = (text: string) => Buffer.from(text.padEnd(12, '\0'), 'latin1');
/** A size in base 256, as GNU tar writes those that are too large for octal digits. */
const wide = (...bytes: number[]) => Buffer.concat([Buffer.alloc(12 - bytes.length), Buffer.from(bytes)]);
const huge = wide(0x7f, 0xff, 0xff, 0xff, 0xff);
huge[0] = 0x80;

describe('members that no bundle holds are named, and nothing is unpacked', () => {
  test.concurrent.each<[string, () => Buffer, Expected]>([
    [
      'above the folder',
      leading({ path: '../up.txt', content: x }),
      { says: [/BUNDLE_FILE .* \.\.\/up\.txt$/m] },
    ],
    [
      'through the folder',
      leading({ path: 'b/report/../../up.txt', content: x }),
      { says: [/BUNDLE_FILE .*\.\.\/\.\.\/up\.txt$/m] },
    ],
    [
      'absolute',
      leading({ path: '/etc/cron.d/x', content: x }),
      { says: [/BUNDLE_FILE .*etc\/cron\.d\/x$/m] },
    ],
    [
      'in a second folder',
      () => craftTar([...sound, { path: 'c/report/x.txt', content: x }]),
      { says: [/BUNDLE_FILE .* c\/report\/x\.txt$/m] },
    ],
    [
      'without a folder',
      () => craftTar([...sound, { path: 'x.txt', content: x }]),
      { says: [/BUNDLE_FILE .* x\.txt$/m] },
    ],
    ['a path twice', () => craftTar([...sound, ...sound.slice(0, 1)]), { says: [/the path occurs twice/] }],
    [
      'a path in another case',
      () =>
        craftTar([
          ...sound,
          { path: 'b/BUNDLE.json', content: x },
          { path: 'b/report/REPORT.txt', content: x },
        ]),
      { says: [/in case only/, /BUNDLE\.json/] },
    ],
    [
      'a link',
      leading({ path: 'b/report/l.txt', type: '2', link: '/etc/passwd' }),
      { says: [/SymbolicLink, which is never followed/] },
    ],
    [
      'a hard link',
      leading({ path: 'b/report/l.txt', type: '1', link: '/etc/passwd' }),
      { says: [/kind Link, which is never followed/] },
    ],
    ['a device', leading({ path: 'b/report/d.txt', type: '3' }), { says: [/CharacterDevice/] }],
    ['a pipe', leading({ path: 'b/report/p.txt', type: '6' }), { says: [/FIFO/] }],
    [
      'a kind that nobody knows',
      leading({ path: 'b/report/q.txt', type: 'Z' }),
      { says: [/BUNDLE_FILE .* b\/report\/q\.txt$/m] },
    ],
    [
      'a global extension',
      leading({ ...pax({ path: 'b/bundle.json' }), path: 'b/x', type: 'g' }),
      { says: [/GlobalExtendedHeader/] },
    ],
    [
      'a sparse file of GNU tar',
      leading({ path: 'b/report/s.txt', type: 'S', content: x }),
      { says: [/BUNDLE_FILE .* b\/report\/s\.txt$/m] },
    ],
    [
      'a name that steers the terminal',
      leading({ path: 'b/report/\u001b[2J\nverdict: clean \u202e', content: x }),
      { says: [/\\u\{1b\}\[2J\\u\{a\}verdict: clean/] },
    ],
    [
      'a name that is not UTF-8',
      leading({ path: Buffer.from('b/report/\xff\xfe', 'latin1'), content: x }),
      { says: [/BUNDLE_FILE/] },
    ],
    [
      'a path in an extension that leaves the folder',
      leading(pax({ path: '../../up.txt' }), { path: 'b/report/y.txt', content: x }),
      { says: [/BUNDLE_FILE .* \.\.\/\.\.\/up\.txt$/m] },
    ],
    [
      'a path in an extension with a zero',
      leading(pax({ path: 'b/report/a.txt\0.md' }), { path: 'b/report/y.txt', content: x }),
      { says: [/BUNDLE_INDEX .* report\/a\.txt$/m] },
    ],
    [
      'prototype keys in an extension',
      leading(pax({ __proto__x: '1', constructor: 'x', hasOwnProperty: 'y' }), {
        path: 'b/report/y.txt',
        content: x,
      }),
      { says: [/BUNDLE_INDEX .* report\/y\.txt$/m] },
    ],
    [
      'a folder a thousand deep',
      leading(pax({ path: `b/${'d/'.repeat(1000)}x` }), { path: 'b/x', content: x }),
      { says: [/a file that no bundle holds/] },
    ],
    [
      'three hundred thousand of them',
      () => Buffer.concat([craftTar(sound, Buffer.of()), ...manyHeaders(300_000)]),
      { says: [/BUNDLE_FILE: 981 more/] },
    ],
    [
      'an extension for each of ten thousand extensions',
      () => craftTar([...Array.from({ length: 10_000 }, () => pax({ path: 'b/report/z.txt' })), ...sound]),
      { says: [/BUNDLE_/] },
    ],
  ])('%s', (_, make, expected) => expectOf(write(make()), expected), 120_000);
});

/** The same header again and again. */
function manyHeaders(count: number): Buffer[] {
  const one = craftTar([{ path: 'b/report/many.txt' }], Buffer.of());
  return [
    ...Array.from({ length: count / 1000 }, () => Buffer.concat(Array<Buffer>(1000).fill(one))),
    Buffer.alloc(1024),
  ];
}

describe('sizes', () => {
  test.concurrent.each<[string, () => Buffer, Expected]>([
    [
      'of eight gigabytes',
      leading({ path: 'b/report/y.txt', content: x, size: size('77777777777') }),
      { says: [/go beyond the end of the tar|no bundle\.json/] },
    ],
    [
      'of more than any disk',
      leading({ path: 'b/report/y.txt', content: x, size: huge }),
      { says: [/\[BUNDLE_INVALID\]|BUNDLE_FILE/] },
    ],
    [
      'below zero',
      leading({ path: 'b/report/y.txt', content: x, size: Buffer.alloc(12, 0xff) }),
      { says: [/\[BUNDLE_INVALID\]|BUNDLE_FILE/] },
    ],
    [
      'of letters',
      leading({ path: 'b/report/y.txt', content: x, size: size('zzzzzzzzzzz') }),
      { says: [/BUNDLE_/] },
    ],
    [
      'in an extension, of more than any disk',
      leading(pax({ size: '99999999999999999999' }), { path: 'b/report/y.txt', content: x }),
      { says: [/\[BUNDLE_INVALID\]|BUNDLE_FILE/] },
    ],
    [
      'in an extension, below zero',
      leading(pax({ size: '-5000' }), { path: 'b/report/y.txt', content: x }),
      { says: [/\[BUNDLE_INVALID\]|BUNDLE_/] },
    ],
    [
      'in an extension, of letters',
      leading(pax({ size: 'NaN' }), { path: 'b/report/y.txt', content: x }),
      { says: [/BUNDLE_/] },
    ],
    [
      'in an extension, with a fraction',
      leading(pax({ size: '0.5' }), { path: 'b/report/y.txt', content: x }),
      { says: [/BUNDLE_/] },
    ],
    [
      'of an extension, of a gigabyte',
      leading({ path: 'x', type: 'x', size: size('10000000000') }),
      { says: [/BUNDLE_/] },
    ],
    [
      'of an extension, beyond what one may have',
      leading({ path: 'x', type: 'x', content: Buffer.alloc(100_000, 0x61) }),
      { says: [/an extension of 100000 bytes/] },
    ],
    [
      'of a record in an extension that is a lie',
      leading(
        { path: 'x', type: 'x', content: Buffer.from('999 path=b/x\n') },
        { path: 'b/report/y.txt', content: x },
      ),
      { says: [/BUNDLE_/] },
    ],
  ])('%s', (_, make, expected) => expectOf(write(make()), expected), 120_000);
});

describe('the file', () => {
  test.concurrent.each<[string, () => string, Expected]>([
    ['empty', () => write(Buffer.of()), { says: [/\[BUNDLE_INVALID\]/] }],
    ['zeros', () => write(Buffer.alloc(10_240)), { says: [/\[BUNDLE_INVALID\]/] }],
    ['noise', () => write(Buffer.alloc(10_240, 0xa5)), { says: [/\[BUNDLE_INVALID\]/] }],
    [
      'compressed',
      () => write(gzipSync(exported), 'bundle.tar.gz'),
      { says: [/\[BUNDLE_INVALID\]/, /gunzip/] },
    ],
    ['without its end', () => write(craftTar(sound, Buffer.of())), { says: [/without its last two blocks/] }],
    [
      'with something behind its end',
      () => write(craftTar(sound, Buffer.concat([Buffer.alloc(1024), x]))),
      { says: [/behind the end of the tar/] },
    ],
    [
      'with a hole of 4 GB behind its end',
      () => holed(craftTar(sound), 4096 * MB),
      { says: [/behind the end of the tar/] },
    ],
    ['a hole of 4 GB', () => holed(Buffer.of(), 4096 * MB), { says: [/\[BUNDLE_INVALID\]/] }],
    [
      'a member that is a hole of 400 MB',
      () =>
        holed(
          craftTar(
            [...sound, { path: 'b/report/h.txt', size: size((400 * MB).toString(8).padStart(11, '0')) }],
            Buffer.of(),
          ),
          401 * MB,
        ),
      { says: [/BUNDLE_INDEX .* report\/h\.txt$/m] },
    ],
    [
      'with a name that steers the terminal',
      () => write(Buffer.of(), 'a\u001b[2J\nverdict: clean.tar'),
      { says: [/\[BUNDLE_INVALID\]/] },
    ],
  ])('%s', (_, make, expected) => expectOf(make(), expected), 120_000);

  test('cut at any block or in its middle: findings or a typed refusal', async () => {
    const path = write(exported);
    for (let length = exported.length - 1; length > 0; length -= length % 512 === 0 ? 700 : length % 512) {
      truncateSync(path, length);
      const outcome = await auditBundle(path).then(
        ({ verdict }) => verdict,
        (error: unknown) => {
          if (!(error instanceof BoundbookError)) throw error;
          return error.code;
        },
      );
      expect(outcome, `cut to ${length} bytes`).toMatch(/^(findings|BUNDLE_INVALID)$/);
    }
  });
});

/** Bytes and a hole behind them, up to a length. */
function holed(bytes: Buffer, length: number): string {
  const path = write(bytes);
  const file = openSync(path, 'r+');
  ftruncateSync(file, length);
  closeSync(file);
  return path;
}
