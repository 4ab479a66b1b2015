import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { attemptId } from '../../src/attempts/slot-state.js';
import { commitmentOf, formatRecordHeader, parseRecordHeader } from '../../src/audit/bundle/pack-format.js';
import { canonicalBytes, canonicalText } from '../../src/core/canonical-json.js';
import { digestOf, hexOf } from '../../src/core/digest.js';
import { parseStrictJson } from '../../src/core/strict-json.js';
import { signCheckpoint, verifyCheckpoint } from '../../src/ledger/checkpoint.js';
import { CompactRange, leafHash } from '../../src/ledger/merkle.js';
import { keyOfLedger } from '../../src/ledger/origin.js';
import { hashTree } from '../../src/manifest/hash.js';
import { idFault } from '../../src/protocol/ids.js';
import type { Protocol } from '../../src/protocol/schema/protocol.js';
import { privateKeyOf } from '../../src/signing/ed25519.js';
import { formatVerifierKey, parseVerifierKey, signerKey } from '../../src/signing/keys.js';
import { orderedSlots, planDigest } from '../../src/slots/plan.js';
import { orderKey, type SlotKey, samplingSeed, shardOf, slotId } from '../../src/slots/slot.js';
import { type Tuple, vectors } from './vectors.js';

function keyOf([queue, arm, trainingSeed, evaluationSeed, task, rep]: Tuple): SlotKey {
  return { queue, arm, trainingSeed, evaluationSeed, task, rep };
}

describe('vectors of docs/formats/vectors.md: slots, trees, entries', () => {
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

  it('plans and their order', () => {
    for (const { task_sets, models, arms, queues, group_by, namespace, ...expected } of vectors.plan) {
      const protocol = {
        models: Object.fromEntries(
          Object.entries(models).map(([name, seeds]) => [
            name,
            seeds === null ? {} : { training_seeds: seeds },
          ]),
        ),
        arms: Object.fromEntries(Object.entries(arms).map(([name, model]) => [name, { model }])),
        queues,
        order: { group_by },
        sampling: { namespace },
      } as unknown as Protocol;
      const taskIds = new Map(Object.entries(task_sets));
      expect(planDigest(protocol, taskIds)).toEqual({ count: expected.count, digest: expected.digest });
      const hash = createHash('sha256');
      for (const { id } of orderedSlots(protocol, taskIds)) hash.update(`${id}\n`);
      expect(`sha256:${hash.digest('hex')}`).toBe(expected.order_digest);
    }
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

describe('vectors of docs/formats/vectors.md: JSON and ids', () => {
  it.each(vectors.number)('the number $json', ({ json, canonical }) => {
    expect(canonicalText(JSON.parse(json))).toBe(canonical);
  });

  it('canonical values', () => {
    for (const { json, digest, bytes } of vectors.canonical) {
      const canonical = canonicalBytes(JSON.parse(json));
      expect(digestOf(canonical)).toBe(digest);
      expect(canonical.length).toBe(bytes);
    }
  });

  it('strict reading', () => {
    const read = (text: string) => () => parseStrictJson(Buffer.from(text, 'utf8'), 'a vector');
    for (const text of vectors.strict.accepted) expect(read(text), text).not.toThrow();
    for (const text of vectors.strict.refused) expect(read(text), text).toThrow();
  });

  it('task ids', () => {
    for (const id of vectors.task_id.accepted) expect(idFault(id), JSON.stringify(id)).toBeNull();
    for (const id of vectors.task_id.refused) expect(idFault(id), JSON.stringify(id)).not.toBeNull();
  });
});

describe('vectors of docs/formats/vectors.md: bundles', () => {
  it.each(vectors.pack)('a record and its redaction', ({ text, record, salt, redacted }) => {
    const bytes = Buffer.from(text);
    const header = { hex: hexOf(digestOf(bytes)), length: bytes.length, commitment: null };
    expect(`${formatRecordHeader(header)}${text}\n`).toBe(record);
    const commitment = commitmentOf(Buffer.from(salt, 'hex'), bytes);
    expect(formatRecordHeader({ ...header, commitment })).toBe(redacted);
    expect(parseRecordHeader(redacted.trimEnd())).toEqual({ ...header, commitment });
  });
});

describe('vectors of docs/formats/vectors.md: checkpoints', () => {
  it.each(vectors.note)('a note of $name', (vector) => {
    const key = signerKey(vector.name, 'ed25519', privateKeyOf(Buffer.from(vector.seed, 'hex')));
    const own = keyOfLedger(key, { ledger: vector.ledger, incarnation: vector.incarnation });
    expect(formatVerifierKey(key.verifier)).toBe(vector.vkey);
    expect(formatVerifierKey(own.verifier)).toBe(vector.origin_vkey);
    const root = Buffer.from(vector.root, 'hex');
    const checkpoint = { origin: own.verifier.name, size: BigInt(vector.size), root };
    expect(signCheckpoint(checkpoint, own).toString('utf8')).toBe(vector.note);
    const signed = verifyCheckpoint(Buffer.from(vector.note), {
      logs: [parseVerifierKey(vector.origin_vkey)],
    });
    expect(signed.checkpoint).toEqual(checkpoint);
  });
});
