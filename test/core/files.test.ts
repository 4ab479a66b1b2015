import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  createFileDurable,
  decodeUtf8,
  exists,
  makeFolder,
  readFileBounded,
  writeFileDurable,
} from '../../src/core/files.js';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'files-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});
const at = (name: string) => join(folder, name);

describe('reading', () => {
  test('gives the bytes', async () => {
    writeFileSync(at('a'), 'abc');
    expect(await readFileBounded(at('a'), { maxBytes: 3 })).toEqual(Buffer.from('abc'));
  });

  test.each([
    ['a missing file', 'none', 'FILE_NOT_FOUND'],
    ['a folder', '.', 'FILE_NOT_REGULAR'],
    ['a file under a file', 'a/b', 'FILE_NOT_FOUND'],
    ['an empty file', 'empty', 'FILE_EMPTY'],
    ['a large file', 'large', 'FILE_TOO_LARGE'],
    ['a device', '/dev/null', 'FILE_NOT_REGULAR'],
  ])('refuses %s', async (_name, path, code) => {
    writeFileSync(at('a'), 'abc');
    writeFileSync(at('empty'), '');
    writeFileSync(at('large'), 'abcd');
    const place = path.startsWith('/') ? path : at(path);
    await expect(readFileBounded(place, { maxBytes: 3 })).rejects.toMatchObject({ code, exitCode: 2 });
  });

  test('does not wait for the writer of a named pipe', async () => {
    execFileSync('mkfifo', [at('pipe')]);
    await expect(readFileBounded(at('pipe'), { maxBytes: 3 })).rejects.toMatchObject({
      code: 'FILE_NOT_REGULAR',
    });
  });

  test('an empty file may be allowed', async () => {
    writeFileSync(at('empty'), '');
    expect(await readFileBounded(at('empty'), { maxBytes: 3, allowEmpty: true })).toHaveLength(0);
  });
});

describe('writing', () => {
  test('replaces whole files and leaves nothing else behind', async () => {
    await writeFileDurable(at('a'), 'one');
    await writeFileDurable(at('a'), Buffer.from('two'), 0o600);
    expect(readFileSync(at('a'), 'utf8')).toBe('two');
    expect(statSync(at('a')).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(['a']);
  });

  test('creates exclusively: what is there stays', async () => {
    await createFileDurable(at('a'), 'one', 0o444);
    expect(statSync(at('a')).mode & 0o777).toBe(0o444);
    await expect(createFileDurable(at('a'), 'two')).rejects.toMatchObject({ code: 'FILE_EXISTS' });
    expect(readFileSync(at('a'), 'utf8')).toBe('one');
    expect(readdirSync(folder)).toEqual(['a']);
  });

  test('of many creators of one name, one wins', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => createFileDurable(at('a'), `writer ${i}`)),
    );
    const winners = outcomes.flatMap((outcome, i) => (outcome.status === 'fulfilled' ? [i] : []));
    expect(winners).toHaveLength(1);
    expect(readFileSync(at('a'), 'utf8')).toBe(`writer ${winners[0]}`);
    expect(readdirSync(folder)).toEqual(['a']);
  });

  test('takes a text in pieces, and leaves no file when they fail', async () => {
    await createFileDurable(at('a'), ['x', 'y', 'é'].values());
    expect(readFileSync(at('a'), 'utf8')).toBe('xyé');
    function* broken(): Generator<string> {
      yield 'x';
      throw new RangeError('no more');
    }
    await expect(createFileDurable(at('b'), broken())).rejects.toMatchObject({ name: 'BoundbookError' });
    expect(readdirSync(folder)).toEqual(['a']);
  });

  test('into a folder that is not there is refused, with nothing written', async () => {
    await expect(writeFileDurable(at('no/a'), 'x')).rejects.toMatchObject({ code: 'FILE_UNWRITABLE' });
    await expect(createFileDurable(at('no/a'), 'x')).rejects.toMatchObject({ code: 'FILE_UNWRITABLE' });
    expect(readdirSync(folder)).toEqual([]);
  });

  test('makes folders with their parents, again and again', async () => {
    await makeFolder(at('a/b/c'));
    await makeFolder(at('a/b/c'));
    expect(existsSync(at('a/b/c'))).toBe(true);
    writeFileSync(at('file'), '');
    await expect(makeFolder(at('file/x'))).rejects.toMatchObject({ name: 'BoundbookError' });
    if (existsSync('/proc/self')) {
      // A parent that exists and takes no folders: Node's recursive mkdir never comes back from it.
      await expect(makeFolder('/proc/boundbook/x')).rejects.toMatchObject({ code: 'FILE_UNWRITABLE' });
    }
  });

  test('exists tells names from nothing', async () => {
    mkdirSync(at('d'));
    expect(await exists(at('d'))).toBe(true);
    expect(await exists(at('none'))).toBe(false);
    expect(await exists(at('none/none'))).toBe(false);
  });
});

describe('UTF-8', () => {
  test.each([
    [[0x61, 0xff], 1],
    [[0xc3], 1],
    [[0x61, 0xed, 0xa0, 0x80], 2],
    [[0xe2, 0x82, 0xac, 0xc0, 0xaf], 3],
  ])('refuses %o with the offset at which it cannot go on', (bytes, offset) => {
    expect(() => decodeUtf8(Uint8Array.from(bytes), 'x')).toThrow(
      expect.objectContaining({ code: 'TEXT_NOT_UTF8', evidence: { offset } }),
    );
  });

  test('keeps a byte-order mark for the caller to refuse', () => {
    expect(decodeUtf8(Buffer.from('\ufeffa'), 'x')).toBe('\ufeffa');
  });
});
