import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { EntryDraft } from '../../src/ledger/entries/entry.js';
import type { AttributionRule } from '../../src/protocol/schema/attempts.js';
import type { Condition } from '../../src/protocol/schema/conditions.js';

/**
 * The vectors of docs/formats/vectors.md. They were computed by Python programs (hashlib, json, fractions, openssl) from
 * the pages; the code must meet them.
 */

const tuple = z.tuple([z.string(), z.string(), z.int().nullable(), z.int(), z.string(), z.int()]);
const digest = z.custom<`sha256:${string}`>((value) => typeof value === 'string');
const usage = z.object({ prompt_tokens: z.int().nullable(), completion_tokens: z.int().nullable() });
const fractions = z.array(z.array(z.string()));
const range = z.object({ min: z.number(), max: z.number() });
const texts = z.array(z.string());
const rules = z.custom<readonly AttributionRule[]>(Array.isArray);

const schema = z.strictObject({
  slot: z.array(z.object({ tuple, id: z.string(), shards: z.record(z.string(), z.int()) })),
  sampling_seed: z.array(z.object({ namespace: z.string(), bits: z.int(), tuple, seed: z.int() })),
  order: z.array(z.object({ namespace: z.string(), id: z.string(), key: z.string() })),
  attempt: z.array(z.object({ slot: z.string(), k: z.int(), id: z.string() })),
  plan: z.array(
    z.object({
      task_sets: z.record(z.string(), texts),
      models: z.record(z.string(), z.array(z.int()).nullable()),
      arms: z.record(z.string(), z.string()),
      queues: z.record(
        z.string(),
        z.object({
          tasks: z.string(),
          reps: z.int(),
          arms: texts,
          evaluation_seeds: z.array(z.int()).optional(),
        }),
      ),
      group_by: texts,
      namespace: z.string(),
      count: z.int(),
      digest,
      order_digest: digest,
    }),
  ),
  tree: z.array(
    z.object({ files: z.record(z.string(), z.string()), digest: z.string(), oms_root: z.string() }),
  ),
  entry: z.array(z.object({ body: z.string(), leaf: z.string(), root: z.string() })),
  number: z.array(z.object({ json: z.string(), canonical: z.string() })),
  canonical: z.array(z.object({ json: z.string(), digest, bytes: z.int() })),
  strict: z.object({ accepted: texts, refused: texts }),
  task_id: z.object({ accepted: texts, refused: texts }),
  attribution: z.array(
    z.object({
      rules,
      cases: z.array(
        z.object({
          signals: z.record(z.string(), z.unknown()),
          attribution: z.string(),
          rule: z.string().nullable(),
        }),
      ),
    }),
  ),
  life: z.array(
    z.object({
      slot: z.string(),
      namespace: z.string(),
      bits: z.int(),
      key: z.object({ queue: z.string(), evaluation_seed: z.int(), task: z.string(), rep: z.int() }),
      replacements: z.int(),
      regrades: z.int(),
      reward: range,
      rules,
      lives: z.array(
        z.object({
          what: z.string(),
          steps: z.array(z.tuple([z.custom<EntryDraft>(), z.string().nullable()])),
        }),
      ),
    }),
  ),
  request: z.array(
    z.object({
      endpoint: z.enum(['chat', 'completions']),
      model: z.string(),
      condition: z.custom<Condition>(),
      fields: z.record(z.string(), z.json()),
      seed: z.int(),
      text: z.string(),
      digest,
    }),
  ),
  answer: z.array(
    z.object({ endpoint: z.enum(['chat', 'completions']), model: z.string(), body: z.string() }).and(
      z.union([
        z.object({ text: z.string(), finish_reason: z.string().nullable(), usage: usage.nullable() }),
        z.object({
          cause: z.string(),
          embedded_status: z.int().nullable(),
          exception: z.string().nullable(),
        }),
      ]),
    ),
  ),
  grading: z.array(
    z.object({
      kind: z.enum(['exact', 'integer']),
      reference: z.union([z.string(), z.int()]),
      answer_hex: z.string(),
      value: z.int(),
      outcome: z.string(),
      report: z.string(),
      digest,
    }),
  ),
  command_report: z.object({
    task: z.string(),
    candidate: digest,
    expected_tests: texts,
    reward: range,
    valid: texts,
    invalid: texts,
  }),
  bound: z.array(
    z.object({
      arms: z.array(
        z.object({
          reward: range,
          tasks: z.array(z.object({ planned: z.int(), values: z.array(z.number()) })),
          bound: texts,
        }),
      ),
      difference: texts,
      mean: texts,
      values: z.array(z.number()),
      decisions: z.array(
        z.object({ comparator: z.enum(['>', '>=', '<', '<=']), threshold: z.number(), status: z.string() }),
      ),
    }),
  ),
  draw: z.array(z.object({ seed: z.int(), u: z.array(z.number()) })),
  interval: z.array(
    z.object({
      differences: fractions,
      resamples: z.int(),
      seed: z.int(),
      level: z.number(),
      lower: z.number(),
      upper: z.number(),
      resampled: z.number(),
      exact: texts,
    }),
  ),
  note: z.array(
    z.object({
      seed: z.string(),
      name: z.string(),
      vkey: z.string(),
      ledger: z.string(),
      incarnation: z.int(),
      origin_vkey: z.string(),
      size: z.int(),
      root: z.string(),
      note: z.string(),
    }),
  ),
  pack: z.array(z.object({ text: z.string(), record: z.string(), salt: z.string(), redacted: z.string() })),
});

export type Tuple = z.infer<typeof tuple>;
export const vectors = schema.parse(JSON.parse(vectorBlock()));

function vectorBlock(): string {
  const text = readFileSync('docs/formats/vectors.md', 'utf8');
  const block = /```json vectors\n([\s\S]*?)\n```/.exec(text)?.[1];
  if (block === undefined) throw new Error('docs/formats/vectors.md has no vector block');
  return block;
}
