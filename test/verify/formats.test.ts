import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { bytes, call, hasPython, NO_PYTHON, value } from './python.js';

type Tuple = readonly [string, string, number | null, number, string, number];

type Vectors = {
  readonly slot: readonly { tuple: Tuple; id: string; shards: Record<string, number> }[];
  readonly sampling_seed: readonly { namespace: string; bits: number; tuple: Tuple; seed: number }[];
  readonly order: readonly { namespace: string; id: string; key: string }[];
  readonly attempt: readonly { slot: string; k: number; id: string }[];
  readonly tree: readonly { files: Record<string, string>; digest: string; oms_root: string }[];
  readonly entry: readonly { body: string; leaf: string; root: string }[];
};

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

const PAGES = ['formats.md', 'formats/vectors.md'].map(
  (name) => new URL(`../../docs/${name}`, import.meta.url),
);
const PAGE = PAGES.filter((page) => existsSync(page))
  .map((page) => readFileSync(page, 'utf8'))
  .join('');
const vectors = JSON.parse(/```json vectors\n([\s\S]*?)```/.exec(PAGE)?.[1] ?? '') as Vectors;

describe.skipIf(!hasPython)(`second verifier: vectors of docs/formats.md (${NO_PYTHON})`, () => {
  it('derives slot ids, shards, sampling seeds, order keys and attempt ids', () => {
    const expected = [
      ...vectors.slot.map(({ tuple, id }) => ['slot_id', [tuple], id] as const),
      ...vectors.slot.flatMap(({ id, shards }) =>
        Object.entries(shards).map(([count, shard]) => ['shard_of', [id, Number(count)], shard] as const),
      ),
      ...vectors.sampling_seed.map((v) => ['sampling_seed', [v.namespace, v.bits, v.tuple], v.seed] as const),
      ...vectors.order.map((v) => ['order_key', [v.namespace, v.id], v.key] as const),
      ...vectors.attempt.map((v) => ['attempt_id', [v.slot, v.k], v.id] as const),
    ];
    expect(call(expected.map(([name, args]) => [name, args] as const)).map((answer) => answer.value)).toEqual(
      expected.map(([, , result]) => result),
    );
  });

  it('digests trees of files', () => {
    for (const { files, digest, oms_root } of vectors.tree) {
      const pairs = Object.entries(files).map(([path, text]) => [path, sha256(text)]);
      expect(value('tree_digest', pairs)).toBe(digest);
      expect(value('oms_root', pairs)).toBe(oms_root);
    }
  });

  it('hashes entries', () => {
    const bodies = vectors.entry.map(({ body }) => bytes(body));
    expect(call(bodies.map((body) => ['leaf_hash', [body]] as const))).toEqual(
      vectors.entry.map(({ leaf }) => ({ value: { hex: leaf } })),
    );
    expect((value('roots_of', bodies) as string[]).slice(1)).toEqual(vectors.entry.map(({ root }) => root));
    expect(call(bodies.map((body) => ['parse_canonical', [body]] as const)).map((a) => a.refused)).toEqual(
      bodies.map(() => undefined),
    );
  });
});
