import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { buildModel, type Model, type ModelConfig } from './model.js';
import { parseSafetensors } from './safetensors.js';
import type { Sampling } from './sampler.js';
import { CharTokenizer } from './tokenizer.js';

/** A model directory in memory. */
export interface Loaded {
  readonly model: Model;
  readonly tokenizer: CharTokenizer;
  readonly end: number;
  /** What a request gets when it leaves a sampling field out. */
  readonly defaults: Sampling;
}

const size = z.int().positive();
const configSchema = z.object({
  model_type: z.literal('boundbook-adder'),
  vocab_size: size,
  hidden_size: size,
  intermediate_size: size,
  num_hidden_layers: size,
  num_attention_heads: size,
  max_position_embeddings: size,
  hidden_act: z.literal('gelu_pytorch_tanh'),
  layer_norm_eps: z.number().positive(),
  tie_word_embeddings: z.literal(false),
  dtype: z.literal('float16'),
  eos_token_id: z.int().nonnegative(),
});
const tokenizerSchema = z.object({
  model: z.object({ vocab: z.record(z.string(), z.int().nonnegative()) }),
});
const generationSchema = z.object({
  temperature: z.number().nonnegative().default(1),
  top_p: z.number().gt(0).max(1).default(1),
  top_k: z.int().min(-1).default(0),
  min_p: z.number().min(0).max(1).default(0),
});

/** A model directory that can't be served; the message is one line that names the file. */
export class ModelDirError extends Error {
  override readonly name = 'ModelDirError';
}

/**
 * Loads `config.json`, `tokenizer.json`, `generation_config.json` and `model.safetensors` of a directory.
 *
 * @throws ModelDirError when a file is missing, malformed or doesn't agree with the others.
 */
export function loadModel(dir: string): Loaded {
  const config = readJson(dir, 'config.json', configSchema);
  const vocab = readJson(dir, 'tokenizer.json', tokenizerSchema).model.vocab;
  const generation = readJson(dir, 'generation_config.json', generationSchema);
  const sizes: ModelConfig = {
    vocab: config.vocab_size,
    width: config.hidden_size,
    hidden: config.intermediate_size,
    layers: config.num_hidden_layers,
    heads: config.num_attention_heads,
    positions: config.max_position_embeddings,
    epsilon: config.layer_norm_eps,
  };
  const tokenizer = named(dir, 'tokenizer.json', () => new CharTokenizer(vocab));
  if (tokenizer.size !== sizes.vocab || config.eos_token_id >= sizes.vocab) {
    throw new ModelDirError(`${join(dir, 'tokenizer.json')}: ${tokenizer.size} tokens don't fit config.json`);
  }
  const bytes = read(dir, 'model.safetensors');
  const model = named(dir, 'model.safetensors', () => buildModel(sizes, parseSafetensors(bytes)));
  return {
    model,
    tokenizer,
    end: config.eos_token_id,
    defaults: {
      temperature: generation.temperature,
      topK: generation.top_k,
      topP: generation.top_p,
      minP: generation.min_p,
    },
  };
}

function read(dir: string, file: string): Uint8Array {
  return named(dir, file, () => readFileSync(join(dir, file)));
}

function readJson<T>(dir: string, file: string, schema: z.ZodType<T>): T {
  const text = new TextDecoder().decode(read(dir, file));
  return named(dir, file, () => schema.parse(JSON.parse(text)));
}

/** Runs `job`; a failure becomes one line that names the file. */
function named<T>(dir: string, file: string, job: () => T): T {
  try {
    return job();
  } catch (cause) {
    throw new ModelDirError(`${join(dir, file)}: ${oneLine(cause)}`, { cause });
  }
}

function oneLine(cause: unknown): string {
  if (cause instanceof z.ZodError) {
    return cause.issues.map((issue) => `${issue.path.join('.') || 'content'}: ${issue.message}`).join('; ');
  }
  const message = cause instanceof Error ? cause.message : String(cause);
  return message.replace(/\s+/g, ' ');
}
