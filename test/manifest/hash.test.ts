import { execFileSync } from 'node:child_process';
import { createHash, randomFillSync } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, symlink, utimes } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { BoundbookError, type Fault } from '../../src/core/errors.js';
import { hashFile, hashTree, type TreeKind } from '../../src/manifest/hash.js';
import { compareUtf8, omsRoot, treeDigest, treeOf } from '../../src/manifest/tree.js';
import { put, temporaryFolder } from './fixture.js';

/** The faults with which a tree is refused, places relative to it. */
async function faultsOf(folder: string, kind: TreeKind = 'source'): Promise<readonly Fault[]> {
  const error = await hashTree(folder, kind).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof BoundbookError)) throw new Error('the tree was not refused', { cause: error });
  expect(error.code).toBe('BINDING_REFUSED');
  return error.faults.map((fault) => ({ ...fault, where: fault.where.replace(folder, '') }));
}

describe('digests', () => {
  it('of a file: those of FIPS 180-4 and of sha256sum', async () => {
    const folder = temporaryFolder();
    const abc = put(folder, 'abc', 'abc');
    expect(await hashFile(abc)).toEqual({
      size: 3,
      digest: 'sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    });
    const million = put(folder, 'million', 'a'.repeat(1_000_000));
    expect((await hashFile(million)).digest).toBe(
      'sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0',
    );
    const empty = put(folder, 'empty', '');
    expect((await hashFile(empty)).digest).toBe(
      'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    );
  });

  it('of a file longer than the read buffer, at every odd end', async () => {
    const folder = temporaryFolder();
    for (const size of [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, (3 << 20) + 17]) {
      const bytes = randomFillSync(Buffer.alloc(size));
      const expected = createHash('sha256').update(bytes).digest('hex');
      expect(await hashFile(put(folder, 'file', bytes))).toEqual({ size, digest: `sha256:${expected}` });
    }
  });

  it('of a tree: what sha256sum prints for its files, hashed once more', async () => {
    const folder = temporaryFolder();
    for (const [path, text] of Object.entries({
      'a/b': '1',
      'a-b': '2',
      'a.b': '3',
      'z/deep/er/file with spaces.txt': '4',
      'é.txt': '5',
      '\u{1f600}': '6',
      '\ue000': '7',
      '.env': '8',
    })) {
      put(folder, path, text);
    }
    const printed = execFileSync(
      'sh',
      [
        '-c',
        "find . -type f -printf '%P\\n' | LC_ALL=C sort | tr '\\n' '\\0' | xargs -0 sha256sum | sha256sum",
      ],
      { cwd: folder, encoding: 'utf8' },
    );
    const tree = await hashTree(folder, 'source');
    expect(tree.digest).toBe(`sha256:${printed.slice(0, 64)}`);
    expect(tree).toMatchObject({ size: 8, files: 8 });
    // UTF-8 byte order; JavaScript's own order would put the emoji before U+E000.
    expect(tree.entries.map(({ path }) => path)).toEqual([
      '.env',
      'a-b',
      'a.b',
      'a/b',
      'z/deep/er/file with spaces.txt',
      'é.txt',
      '\ue000',
      '\u{1f600}',
    ]);
  });

  it('of trees that careless joining confuses differ (F-35)', async () => {
    const one = temporaryFolder();
    put(one, 'ab', 'c');
    const other = temporaryFolder();
    put(other, 'a', 'bc');
    const [first, second] = [await hashTree(one, 'source'), await hashTree(other, 'source')];
    expect(first.digest).not.toBe(second.digest);
  });

  it('do not depend on the order in which files are given', () => {
    const entry = fc.record({ path: fc.string({ unit: 'grapheme', minLength: 1 }), content: fc.string() });
    const files = fc.uniqueArray(entry, { selector: ({ path }) => path, maxLength: 12 });
    fc.assert(
      fc.property(files, fc.nat(), (drawn, turn) => {
        const entries = drawn.map(({ path, content }) => {
          const digest: `sha256:${string}` = `sha256:${createHash('sha256').update(content).digest('hex')}`;
          return { path, size: Buffer.byteLength(content), digest };
        });
        const at = turn % (entries.length + 1);
        const turned = [...entries.slice(at), ...entries.slice(0, at)];
        expect(treeOf(turned)).toEqual(treeOf(entries));
        const paths = treeOf(entries).entries.map(({ path }) => path);
        // Code point order, computed in another way.
        const points = (path: string): number[] => Array.from(path, (c) => c.codePointAt(0) ?? 0);
        for (let i = 1; i < paths.length; i++) {
          const [a, b] = [points(paths[i - 1] ?? ''), points(paths[i] ?? '')];
          const k = a.findIndex((point, j) => point !== b[j]);
          expect(k === -1 || (a[k] ?? 0) < (b[k] ?? -1)).toBe(true);
        }
      }),
      { seed: 6 },
    );
  });

  const vectors = new URL('../../../shared/vectors/oms/valid/', import.meta.url);
  it.skipIf(!existsSync(vectors))('OpenSSF roots: the published bundles', () => {
    const bundles = readdirSync(vectors);
    expect(bundles.length).toBeGreaterThan(0);
    for (const file of bundles) {
      const statement = z
        .object({
          subject: z.array(z.object({ digest: z.object({ sha256: z.string() }) })).length(1),
          predicate: z.object({ resources: z.array(z.object({ name: z.string(), digest: z.string() })) }),
        })
        .parse(payloadOf(readFileSync(new URL(file, vectors), 'utf8')));
      const entries = statement.predicate.resources
        .map(({ name, digest }) => ({ path: name, size: 0, digest: `sha256:${digest}` as const }))
        .sort((a, b) => compareUtf8(a.path, b.path));
      expect(omsRoot(entries), file).toBe(`sha256:${statement.subject[0]?.digest.sha256}`);
    }
  });

  it('OpenSSF root of two known digests, and the tree digest that names them', () => {
    // From the valid/key bundle of model-signing-spec v1.0.
    const entries = [
      {
        path: 'signme-1',
        size: 0,
        digest: 'sha256:bc9a717db6064a32cbe9eae6fc40651dd6d36ef1757183f590eff2b1765d7ebc',
      },
      {
        path: 'signme-2',
        size: 0,
        digest: 'sha256:32dcb1f8e1ae52d5963e56a6ba06ab58b424c15ed2a6b70d2feca1d089370028',
      },
    ] as const;
    expect(omsRoot(entries)).toBe('sha256:92745110b1ab4368471cbe31664e10174e954b113a3df333db860317b2c6dec4');
    const renamed = entries.map((entry) => ({ ...entry, path: `${entry.path}x` }));
    expect(omsRoot(renamed)).toBe(omsRoot(entries));
    expect(treeDigest(renamed)).not.toBe(treeDigest(entries));
  });
});

function payloadOf(bundle: string): unknown {
  const { dsseEnvelope } = z
    .object({ dsseEnvelope: z.object({ payload: z.string() }) })
    .parse(JSON.parse(bundle));
  return JSON.parse(Buffer.from(dsseEnvelope.payload, 'base64').toString('utf8'));
}

describe('what a tree counts', () => {
  it('leaves out version-control data at its top and nothing else (F-37)', async () => {
    const folder = temporaryFolder();
    put(folder, 'a.py', 'x');
    const before = await hashTree(folder, 'source');
    for (const path of ['.git/HEAD', '.gitignore', '.gitattributes', '.github/w.yml']) put(folder, path, 'x');
    expect(await hashTree(folder, 'source')).toEqual(before);
    for (const path of [
      '__pycache__/a.pyc',
      '.DS_Store',
      '.cache/x',
      '.env',
      'sub/.git/HEAD',
      'sub/.gitignore',
    ]) {
      const last = await hashTree(folder, 'source');
      put(folder, path, 'x');
      const next = await hashTree(folder, 'source');
      expect(next.digest, path).not.toBe(last.digest);
      expect(next.entries.map((entry) => entry.path)).toContain(path);
    }
  });

  it('does not see times', async () => {
    const folder = temporaryFolder();
    const file = put(folder, 'a', 'x');
    const before = await hashTree(folder, 'source');
    await utimes(file, 1, 1);
    expect(await hashTree(folder, 'source')).toEqual(before);
  });
});

describe('a tree is refused', () => {
  it('when it is missing, a file, empty, or holds an empty folder', async () => {
    const folder = temporaryFolder();
    expect(await faultsOf(join(folder, 'none'))).toMatchObject([{ where: '', message: 'does not exist' }]);
    const file = put(folder, 'file/only', 'x');
    expect(await faultsOf(file)).toMatchObject([{ where: '', message: 'is a file; a folder is expected' }]);
    await mkdir(join(folder, 'void'));
    expect(await faultsOf(join(folder, 'void'))).toMatchObject([{ where: '', message: 'is an empty tree' }]);
    put(folder, 'void/.git/HEAD', 'x');
    expect(await faultsOf(join(folder, 'void'))).toMatchObject([{ message: 'is an empty tree' }]);
    await mkdir(join(folder, 'file/nothing'));
    const message = 'is an empty folder, which no digest would show';
    expect(await faultsOf(join(folder, 'file'))).toMatchObject([{ where: '/nothing', message }]);
  });

  it('a file likewise when it is a folder or missing', async () => {
    const folder = temporaryFolder();
    await expect(hashFile(folder)).rejects.toMatchObject({
      code: 'BINDING_REFUSED',
      faults: [{ message: 'is a folder; a file is expected' }],
    });
    await expect(hashFile(join(folder, 'x/y'))).rejects.toMatchObject({
      faults: [{ message: 'does not exist' }],
    });
  });

  it('for special files, without waiting for them', async () => {
    const folder = temporaryFolder();
    put(folder, 'file', 'x');
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(folder, 'socket'), resolve));
    const faults = await faultsOf(folder);
    await new Promise((resolve) => server.close(resolve));
    expect(faults).toMatchObject([
      { where: '/pipe', message: 'is a named pipe, not a regular file' },
      { where: '/socket', message: 'is a socket, not a regular file' },
    ]);
    await expect(hashFile('/dev/null')).rejects.toMatchObject({
      faults: [{ message: 'is a device, not a regular file' }],
    });
  });

  it('for links, loops among them, in bounded time (F-31)', async () => {
    const folder = temporaryFolder();
    put(folder, 'model/file', 'x');
    put(folder, 'other-model/file', 'x');
    const model = join(folder, 'model');
    await symlink('.', join(model, 'loop'));
    await symlink('../other-model', join(model, 'ref'));
    await symlink('nowhere', join(model, 'dangling'));
    await symlink('self', join(model, 'self'));
    await symlink('file', join(model, 'twin'));
    const faults = await faultsOf(model);
    expect(faults.map(({ where }) => where)).toEqual(['/dangling', '/loop', '/ref', '/self', '/twin']);
    for (const { message } of faults) expect(message).toMatch(/^is a link that is not followed/);
    await symlink('model', join(folder, 'alias'));
    expect(await faultsOf(join(folder, 'alias'))).toMatchObject([{ where: '' }]);
  });

  it('for names that are not UTF-8, hold control characters or backslashes (F-35, F-39)', async () => {
    const folder = temporaryFolder();
    put(folder, 'good', 'x');
    // The shell makes the names: Node can't spell the first.
    execFileSync('sh', ['-c', 'printf x > "$(printf \'\\377\\376\')"'], { cwd: folder });
    put(folder, `line\n${'0'.repeat(64)}  x`, 'x');
    put(folder, 'back\\slash', 'x');
    expect(await faultsOf(folder)).toMatchObject([
      { where: '/back\\slash', message: 'the name holds a backslash' },
      { message: 'the name holds control or invisible characters' },
      { where: '/\\xff\\xfe', message: 'the name is not UTF-8' },
    ]);
  });

  it('for names that clash by case or normalisation', async () => {
    const folder = temporaryFolder();
    for (const path of [
      'README',
      'readme',
      'caf\u00e9/x',
      'cafe\u0301/y',
      'Stra\u00dfe',
      'STRASSE',
      'fine',
    ]) {
      put(folder, path, 'x');
    }
    const faults = await faultsOf(folder);
    expect(faults.map(({ where }) => where).sort(compareUtf8)).toEqual([
      '/Stra\u00dfe',
      '/caf\u00e9',
      '/readme',
    ]);
    for (const { message } of faults) expect(message).toMatch(/only by letter case or normalisation/);
  });

  it('for a file that the system can not read, as any user', async () => {
    // Reading it at its beginning fails with EIO, for root too.
    await expect(hashFile('/proc/self/mem')).rejects.toMatchObject({
      code: 'BINDING_REFUSED',
      faults: [{ message: 'cannot be read (EIO)' }],
    });
  });

  it.skipIf(process.getuid?.() === 0)(
    'for a file without the right to read it (root has every right)',
    async () => {
      const folder = temporaryFolder();
      execFileSync('chmod', ['000', put(folder, 'secret', 'x')]);
      expect(await faultsOf(folder)).toMatchObject([
        { where: '/secret', message: 'cannot be read (EACCES)' },
      ]);
    },
  );

  it('when a file changes while others are hashed (F-33)', async () => {
    const folder = temporaryFolder();
    put(folder, 'large', Buffer.alloc(2 << 20));
    const small = put(folder, 'small', 'x');
    const touch = (): void => {
      put(folder, 'small', 'y');
    };
    await expect(hashTree(folder, 'source', { onProgress: touch })).rejects.toMatchObject({
      code: 'BINDING_REFUSED',
      faults: [{ where: small, message: expect.stringMatching(/^changed while it was read/) }],
    });
  });

  it('when a file is replaced by one of the same size and times', async () => {
    const folder = temporaryFolder();
    put(folder, 'large', Buffer.alloc(2 << 20));
    const small = put(folder, 'small', 'x');
    const swap = (): void => {
      execFileSync('sh', ['-c', 'printf y > new && touch -r small new && mv new small'], { cwd: folder });
    };
    await expect(hashTree(folder, 'source', { onProgress: swap })).rejects.toMatchObject({
      faults: [{ where: small, message: expect.stringContaining('inode') }],
    });
  });

  it('with all its faults at once', async () => {
    const folder = temporaryFolder();
    put(folder, 'A', 'x');
    put(folder, 'a', 'x');
    await symlink('A', join(folder, 'link'));
    await mkdir(join(folder, 'nothing'));
    expect((await faultsOf(folder)).map(({ where }) => where).sort()).toEqual(['/a', '/link', '/nothing']);
  });

  it('and nothing is said of it when it is stopped', async () => {
    const folder = temporaryFolder();
    put(folder, 'a', Buffer.alloc(1 << 20));
    await expect(hashTree(folder, 'source', { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'STOPPED',
      exitCode: 5,
    });
  });
});
