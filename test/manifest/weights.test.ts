import { createHash } from 'node:crypto';
import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BoundbookError } from '../../src/core/errors.js';
import { hashTree } from '../../src/manifest/hash.js';
import { parseTensorTable } from '../../src/manifest/safetensors.js';
import { put, safetensors, temporaryFolder, withHeader } from './fixture.js';

/** `place: message` of every fault; empty when the tree is taken. */
async function faults(folder: string): Promise<string[]> {
  try {
    await hashTree(folder, 'weights');
    return [];
  } catch (error) {
    if (!(error instanceof BoundbookError)) throw error;
    return error.faults.map(({ where, message }) => `${where.replace(`${folder}/`, '')}: ${message}`);
  }
}

const SHARD = (i: number): string => `model-0000${i}-of-00002.safetensors`;

/** A sharded model in order: three tensors in two files. */
function sharded(change: { map?: Record<string, string>; total?: number } = {}): string {
  const folder = temporaryFolder();
  put(folder, SHARD(1), safetensors({ a: 2, b: 3 }));
  put(folder, SHARD(2), safetensors({ c: 4 }));
  put(
    folder,
    'model.safetensors.index.json',
    JSON.stringify({
      metadata: { total_size: change.total ?? 36 },
      weight_map: change.map ?? { a: SHARD(1), b: SHARD(1), c: SHARD(2) },
    }),
  );
  return folder;
}

describe('sharded weights', () => {
  it('pass when index and shards agree', async () => {
    expect(await faults(sharded())).toEqual([]);
  });

  it('are refused with a missing shard (F-27)', async () => {
    const folder = sharded();
    await rename(join(folder, SHARD(2)), join(folder, 'elsewhere.bin'));
    expect(await faults(folder)).toEqual([
      `${SHARD(2)}: is missing: model.safetensors.index.json names it`,
      'model-*-of-00002.safetensors: lacks the shards 00002',
    ]);
  });

  it('are refused with a shard of zero bytes (F-27)', async () => {
    const folder = sharded();
    await writeFile(join(folder, SHARD(2)), '');
    expect(await faults(folder)).toEqual([
      `${SHARD(2)}: has zero bytes`,
      `${SHARD(2)}: has zero bytes: model.safetensors.index.json names it as a shard`,
    ]);
  });

  it('are refused with a surplus shard, or a single file that a loader would prefer', async () => {
    const folder = sharded({ map: { a: SHARD(1), b: SHARD(1) } });
    put(folder, 'model.safetensors', safetensors({ a: 1 }));
    expect(await faults(folder)).toEqual(
      [
        `${SHARD(2)}: is surplus: model.safetensors.index.json does not name it`,
        'model.safetensors: is surplus: model.safetensors.index.json does not name it',
      ].sort(),
    );
  });

  it('are refused when a named tensor is not in its shard (F-29)', async () => {
    const folder = sharded({ map: { a: SHARD(1), b: SHARD(1), c: SHARD(2), d: SHARD(2) } });
    expect(await faults(folder)).toEqual([
      `${SHARD(2)}: lacks tensors that model.safetensors.index.json names: "d"`,
    ]);
  });

  it('are refused when a shard holds a tensor that the index puts elsewhere', async () => {
    const folder = sharded({ map: { a: SHARD(1), b: SHARD(2), c: SHARD(2) } });
    expect(await faults(folder)).toEqual([
      `${SHARD(1)}: holds tensors that model.safetensors.index.json does not name: "b"`,
      `${SHARD(2)}: lacks tensors that model.safetensors.index.json names: "b"`,
    ]);
  });

  it('are refused when total_size is off by a tensor (F-29)', async () => {
    expect(await faults(sharded({ total: 20 }))).toEqual([
      'model.safetensors.index.json: names a total_size of 20 bytes; the tensors of its shards have 36',
    ]);
  });

  it('are refused when numbered shards are missing though no index names them', async () => {
    const folder = temporaryFolder();
    put(folder, 'm-00001-of-00004.gguf', 'x');
    put(folder, 'm-00003-of-00004.gguf', 'x');
    expect(await faults(folder)).toEqual(['m-*-of-00004.gguf: lacks the shards 00002, 00004']);
  });

  it('are refused when the index is no index', async () => {
    for (const text of [
      '[]',
      '{}',
      '{"weight_map":{}}',
      '{"weight_map":{"a":1}}',
      '{"weight_map":',
      '\0\0',
    ]) {
      const folder = temporaryFolder();
      put(folder, 'model.safetensors.index.json', text);
      expect(await faults(folder), text).toEqual([
        'model.safetensors.index.json: is no shard index: its weight_map maps no tensor to a file',
      ]);
    }
  });

  it('never read outside the tree by a name in the index', async () => {
    const folder = sharded({ map: { a: '../../etc/passwd' } });
    expect((await faults(folder))[0]).toBe(
      '../../etc/passwd: is missing: model.safetensors.index.json names it',
    );
  });
});

describe('a safetensors file', () => {
  const table = (header: unknown, data: number): unknown =>
    parseTensorTable(Buffer.from(JSON.stringify(header)), data);

  it('gives its tensors and their bytes', () => {
    const header = {
      a: { dtype: 'BF16', shape: [2, 3], data_offsets: [4, 16] },
      b: { dtype: 'F32', shape: [], data_offsets: [0, 4] },
      c: { dtype: 'F4', shape: [4], data_offsets: [16, 18] },
      d: { dtype: 'F64', shape: [0], data_offsets: [18, 18] },
    };
    const tensors = new Map([
      ['b', 4],
      ['a', 12],
      ['c', 2],
      ['d', 0],
    ]);
    expect(table(header, 18)).toEqual({ ok: true, tensors });
  });

  it.each([
    [
      'a gap',
      { a: { dtype: 'U8', shape: [2], data_offsets: [1, 3] } },
      3,
      /gap or an overlap before tensor "a"/,
    ],
    [
      'an overlap',
      {
        a: { dtype: 'U8', shape: [2], data_offsets: [0, 2] },
        b: { dtype: 'U8', shape: [2], data_offsets: [1, 3] },
      },
      3,
      /gap or an overlap before tensor "b"/,
    ],
    [
      'data cut short',
      { a: { dtype: 'U8', shape: [9], data_offsets: [0, 9] } },
      4,
      /holds 4 bytes .* describes 9/,
    ],
    [
      'data left over',
      { a: { dtype: 'U8', shape: [2], data_offsets: [0, 2] } },
      4,
      /holds 4 bytes .* describes 2/,
    ],
    [
      'another shape',
      { a: { dtype: 'F16', shape: [2], data_offsets: [0, 2] } },
      2,
      /has 4 bytes, its offsets span 2/,
    ],
    ['offsets turned', { a: { dtype: 'U8', shape: [2], data_offsets: [2, 0] } }, 2, /bad data_offsets/],
    ['no shape', { a: { dtype: 'U8', data_offsets: [0, 2] } }, 2, /no shape/],
    ['a negative shape', { a: { dtype: 'U8', shape: [-2], data_offsets: [0, 2] } }, 2, /no shape/],
    ['a tensor that is no object', { a: 1 }, 0, /no object/],
    ['no object', [1], 0, /no JSON object/],
  ])('with %s is refused', (_name, header, data, problem) => {
    expect(table(header, data)).toMatchObject({ ok: false, problem: expect.stringMatching(problem) });
  });

  it.each([
    ['three bytes', Buffer.from('abc'), /has 3 bytes/],
    ['a header of length zero (F-41)', Buffer.alloc(64), /header of length zero/],
    [
      'a length beyond the file',
      withHeader(Buffer.from('{}'), Buffer.alloc(0), 1000),
      /names a header of 1000 bytes/,
    ],
    ['an absurd length', Buffer.concat([Buffer.alloc(8, 0xff), Buffer.alloc(8)]), /18446744073709551615/],
    ['a header of zeros', withHeader(Buffer.alloc(32), Buffer.alloc(8)), /header of zeros only/],
    ['a header that is no JSON', withHeader(Buffer.from('<html>  '), Buffer.alloc(8)), /damaged header/],
    ['a key twice', withHeader(Buffer.from('{"a":1,"a":1}'), Buffer.alloc(8)), /occurs twice/],
  ])('of %s is refused', async (_name, bytes, problem) => {
    const folder = temporaryFolder();
    put(folder, 'model.safetensors', bytes);
    const found = await faults(folder);
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(problem);
  });
});

describe('a tree of weights is refused', () => {
  const POINTER = `version https://git-lfs.github.com/spec/v1\noid sha256:${'a'.repeat(64)}\nsize 4\n`;

  it('for a Git LFS pointer in the place of a file', async () => {
    const folder = temporaryFolder();
    put(folder, 'model.safetensors', POINTER);
    put(folder, 'tokenizer.json', POINTER);
    expect(await faults(folder)).toEqual([
      'model.safetensors: is a Git LFS pointer, not the file itself',
      'tokenizer.json: is a Git LFS pointer, not the file itself',
    ]);
    // A program may well hold such a text.
    await expect(hashTree(folder, 'source')).resolves.toMatchObject({ files: 2 });
  });

  it('for empty files that a loader reads, but not for others', async () => {
    const folder = temporaryFolder();
    for (const path of ['pytorch_model.bin', 'config.json', '__init__.py', 'notes.txt'])
      put(folder, path, '');
    expect(await faults(folder)).toEqual([
      'config.json: has zero bytes',
      'pytorch_model.bin: has zero bytes',
    ]);
  });

  it('for code that lies in another repository (F-45)', async () => {
    const folder = temporaryFolder();
    put(
      folder,
      'config.json',
      JSON.stringify({
        text_config: { auto_map: { AutoModel: 'other/repo--modeling.M', X: ['local.Y', null] } },
      }),
    );
    put(folder, 'tokenizer_config.json', JSON.stringify({ auto_map: { T: [null, 'evil/repo--tok.T'] } }));
    expect(await faults(folder)).toEqual([
      'config.json: names code in another repository, which is not bound: "other/repo--modeling.M"',
      'tokenizer_config.json: names code in another repository, which is not bound: "evil/repo--tok.T"',
    ]);
    put(folder, 'config.json', JSON.stringify({ auto_map: { AutoModel: 'modeling.M' }, note: 'a--b' }));
    put(folder, 'tokenizer_config.json', '{}');
    expect(await faults(folder)).toEqual([]);
  });

  it('for a configuration that is no JSON; Infinity and NaN, which Python writes, pass', async () => {
    const folder = temporaryFolder();
    put(
      folder,
      'config.json',
      '{"time_step_limit":[0.0,Infinity],"x":-Infinity,"y":NaN,"s":"NaN \\" Infinity"}',
    );
    expect(await faults(folder)).toEqual([]);
    put(folder, 'config.json', '{"a":');
    expect(await faults(folder)).toEqual(['config.json: is no JSON object']);
  });

  it('for two chat templates that differ (F-43)', async () => {
    const folder = temporaryFolder();
    put(folder, 'chat_template.jinja', '{{ messages }}\n');
    put(folder, 'tokenizer_config.json', JSON.stringify({ chat_template: '{{ messages }}' }));
    expect(await faults(folder)).toEqual([]);
    put(folder, 'tokenizer_config.json', JSON.stringify({ chat_template: '{{ other }}' }));
    const message = 'holds another chat template than chat_template.jinja, and servers choose differently';
    expect(await faults(folder)).toEqual([`tokenizer_config.json: ${message}`]);
    put(
      folder,
      'tokenizer_config.json',
      JSON.stringify({
        chat_template: [
          { name: 'tool', template: 'x' },
          { name: 'default', template: '{{ other }}' },
        ],
      }),
    );
    put(folder, 'chat_template.json', JSON.stringify({ chat_template: '{{ messages }}\n' }));
    expect(await faults(folder)).toEqual([`tokenizer_config.json: ${message}`]);
  });
});

describe('a model-hub cache', () => {
  const WEIGHTS = safetensors({ a: 1 });
  const NAME = createHash('sha256').update(WEIGHTS).digest('hex');

  async function cache(): Promise<{ snapshot: string; root: string }> {
    const root = temporaryFolder();
    const snapshot = join(root, 'models--org--m/snapshots/0123abcd');
    put(root, `models--org--m/blobs/${NAME}`, WEIGHTS);
    put(root, 'models--org--m/blobs/9d8e7f', '{"layers":1}');
    await mkdir(join(snapshot, 'sub'), { recursive: true });
    await symlink(`../../blobs/${NAME}`, join(snapshot, 'model.safetensors'));
    await symlink('../../../blobs/9d8e7f', join(snapshot, 'sub/config.json'));
    return { snapshot, root };
  }

  it('is hashed under the names of its links, as the plain tree would be', async () => {
    const { snapshot } = await cache();
    const plain = temporaryFolder();
    put(plain, 'model.safetensors', WEIGHTS);
    put(plain, 'sub/config.json', '{"layers":1}');
    expect(await hashTree(snapshot, 'weights')).toEqual(await hashTree(plain, 'weights'));
  });

  it('is refused when a blob is not what its name says (F-41)', async () => {
    const { snapshot, root } = await cache();
    await writeFile(join(root, `models--org--m/blobs/${NAME}`), safetensors({ a: 1 }, 9));
    const [fault] = await faults(snapshot);
    expect(fault).toMatch(
      new RegExp(`^model.safetensors: has the digest sha256:.*, but its blob is named ${NAME}$`),
    );
  });

  it('is refused for every other link', async () => {
    const { snapshot, root } = await cache();
    put(root, 'models--org--other/blobs/abc', 'x');
    put(root, 'outside', 'x');
    await symlink('../../../models--org--other/blobs/abc', join(snapshot, 'foreign'));
    await symlink('../../../outside', join(snapshot, 'outside'));
    await symlink('../../blobs/none', join(snapshot, 'gone'));
    await symlink('../../blobs', join(snapshot, 'folder'));
    await symlink(`../../blobs/./${NAME}`, join(snapshot, 'crooked'));
    await symlink(join(root, 'models--org--m/blobs', NAME), join(snapshot, 'absolute'));
    await symlink(NAME, join(root, 'models--org--m/blobs/second'));
    await symlink('../../blobs/second', join(snapshot, 'twice'));
    const found = await faults(snapshot);
    expect(found.map((fault) => fault.split(':')[0])).toEqual([
      'absolute',
      'crooked',
      'folder',
      'foreign',
      'gone',
      'outside',
      'twice',
    ]);
  });

  it('is refused when its blobs folder is itself a link', async () => {
    const { snapshot, root } = await cache();
    await rename(join(root, 'models--org--m/blobs'), join(root, 'elsewhere'));
    await symlink('../elsewhere', join(root, 'models--org--m/blobs'));
    expect(await faults(snapshot)).toHaveLength(2);
  });
});
