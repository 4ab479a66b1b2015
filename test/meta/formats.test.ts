import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { attemptId } from '../../src/attempts/machine.js';
import { CompactRange, leafHash } from '../../src/ledger/merkle.js';
import { hashTree } from '../../src/manifest/hash.js';
import { orderKey, type SlotKey, samplingSeed, shardOf, slotId } from '../../src/slots/slot.js';

/** The vectors of docs/formats/vectors.md were computed by Python programs (hashlib, json); the code must meet them. */
const tuple = z.tuple([z.string(), z.string(), z.int().nullable(), z.int(), z.string(), z.int()]);
const vectors = z
  .object({
    slot: z.array(z.object({ tuple, id: z.string(), shards: z.record(z.string(), z.int()) })),
    sampling_seed: z.array(z.object({ namespace: z.string(), bits: z.int(), tuple, seed: z.int() })),
    order: z.array(z.object({ namespace: z.string(), id: z.string(), key: z.string() })),
    attempt: z.array(z.object({ slot: z.string(), k: z.int(), id: z.string() })),
    tree: z.array(
      z.object({ files: z.record(z.string(), z.string()), digest: z.string(), oms_root: z.string() }),
    ),
    entry: z.array(z.object({ body: z.string(), leaf: z.string(), root: z.string() })),
  })
  .parse(JSON.parse(await vectorBlock()));

async function vectorBlock(): Promise<string> {
  const text = await readFile('docs/formats/vectors.md', 'utf8');
  const block = /```json vectors\n([\s\S]*?)\n```/.exec(text)?.[1];
  if (block === undefined) throw new Error('docs/formats/vectors.md has no vector block');
  return block;
}

function keyOf([queue, arm, trainingSeed, evaluationSeed, task, rep]: z.infer<typeof tuple>): SlotKey {
  return { queue, arm, trainingSeed, evaluationSeed, task, rep };
}

describe('vectors of docs/formats/vectors.md', () => {
  it('slot ids and shards', () => {
    for (const vector of vectors.slot) {
      expect(slotId(keyOf(vector.tuple))).toBe(vector.id);
      for (const [count, shard] of Object.entries(vector.shards)) {
        expect(shardOf(vector.id, Number(count))).toBe(shard);
      }
    }
  });

  it('sampling seeds', () => {
    for (const vector of vectors.sampling_seed) {
      expect(samplingSeed(vector, keyOf(vector.tuple))).toBe(vector.seed);
    }
  });

  it('order keys and attempt ids', () => {
    for (const vector of vectors.order) expect(orderKey(vector.namespace, vector.id)).toBe(vector.key);
    for (const vector of vectors.attempt) expect(attemptId(vector.slot, vector.k)).toBe(vector.id);
  });

  it('tree digests', async () => {
    for (const vector of vectors.tree) {
      const folder = await mkdtemp(join(tmpdir(), 'boundbook-vectors-'));
      for (const [name, text] of Object.entries(vector.files)) {
        await mkdir(dirname(join(folder, name)), { recursive: true });
        await writeFile(join(folder, name), text);
      }
      const tree = await hashTree(folder, 'source');
      expect(tree).toMatchObject({ digest: vector.digest, oms_root: vector.oms_root });
      await rm(folder, { recursive: true });
    }
  });

  it('entry leaves and roots', () => {
    const range = new CompactRange();
    for (const vector of vectors.entry) {
      const leaf = leafHash(Buffer.from(vector.body, 'utf8'));
      range.append(leaf);
      expect(Buffer.from(leaf).toString('hex')).toBe(vector.leaf);
      expect(Buffer.from(range.root()).toString('hex')).toBe(vector.root);
    }
  });
});
