import { randomInt } from 'node:crypto';
import { z } from 'zod';
import type { Job } from './generate.js';
import type { Loaded } from './load.js';
import { seeded } from './sampler.js';

/** A refusal, answered as OpenAI's error body `{"error":{"message","type","code"}}`. */
export class RequestError extends Error {
  override readonly name = 'RequestError';

  constructor(
    readonly status: number,
    message: string,
    readonly code: string | null = null,
    readonly type: string = 'invalid_request_error',
  ) {
    super(message);
  }
}

const seed = z.int();
const fields = {
  model: z.string().nullish(),
  seed: seed.nullish(),
  temperature: z.number().min(0).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.int().min(-1).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  max_tokens: z.int().positive().nullish(),
  max_completion_tokens: z.int().positive().nullish(),
  stop: z.union([z.string().min(1), z.array(z.string().min(1)).max(4)]).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
};

const textPart = z.object({ type: z.literal('text'), text: z.string() });
const message = z.object({
  role: z.string(),
  content: z.union([z.string(), z.array(textPart)]).nullish(),
});
const chatSchema = z.object({ ...fields, messages: z.array(message).min(1) });
const completionSchema = z.object({ ...fields, prompt: z.string() });

/**
 * Fields that would change the answer and aren't implemented, with the values that ask for nothing. Any other value is
 * refused: to take it and do nothing would answer from another distribution than the one asked for.
 */
const UNSUPPORTED: Readonly<Record<string, readonly unknown[]>> = {
  n: [1],
  logprobs: [false],
  best_of: [1],
  echo: [false],
  presence_penalty: [0],
  frequency_penalty: [0],
  repetition_penalty: [1],
  min_tokens: [0],
  ignore_eos: [false],
};

/** A request body that has been read: what to generate, and the model name it asks for. */
export interface ParsedRequest {
  readonly model: string | undefined;
  readonly job: Job;
  readonly stream: boolean;
  /** Whether a stream ends with a chunk that says what it cost. */
  readonly includeUsage: boolean;
}

/**
 * Reads the body of `/v1/chat/completions`. The prompt is the text of the last user message; there is no chat template.
 * Unknown fields are accepted.
 *
 * @throws RequestError 400
 */
export function parseChat(body: unknown, loaded: Loaded): ParsedRequest {
  const request = check(chatSchema, body);
  const last = request.messages.findLast((entry) => entry.role === 'user');
  if (last === undefined) throw new RequestError(400, 'messages: there is no user message');
  const content = last.content ?? '';
  const prompt = typeof content === 'string' ? content : content.map((part) => part.text).join('');
  return toJob(request, prompt, loaded);
}

/**
 * Reads the body of `/v1/completions`.
 *
 * @throws RequestError 400
 */
export function parseCompletion(body: unknown, loaded: Loaded): ParsedRequest {
  const request = check(completionSchema, body);
  return toJob(request, request.prompt, loaded);
}

function check<T>(schema: z.ZodType<T>, body: unknown): T {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new RequestError(400, 'the body must be a JSON object');
  }
  for (const [name, value] of Object.entries(body)) {
    const neutral = Object.hasOwn(UNSUPPORTED, name) ? UNSUPPORTED[name] : undefined;
    if (neutral !== undefined && value !== null && !neutral.includes(value)) {
      const only = JSON.stringify(neutral[0]);
      throw new RequestError(400, `${name}: only ${only} is supported`, 'unsupported_value');
    }
  }
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const faults = result.error.issues.map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`);
  throw new RequestError(400, faults.join('; '), 'invalid_value');
}

type Fields = { [K in keyof typeof fields]?: z.infer<(typeof fields)[K]> };

function toJob(request: Fields, prompt: string, { tokenizer, model, defaults }: Loaded): ParsedRequest {
  const encoded = tokenizer.encode(prompt);
  if ('unknown' in encoded) {
    const shown = JSON.stringify(encoded.unknown);
    throw new RequestError(400, `the prompt holds ${shown}, which isn't in the vocabulary`, 'invalid_prompt');
  }
  const length = encoded.ids.length;
  if (length === 0) throw new RequestError(400, 'the prompt is empty', 'invalid_prompt');
  const positions = model.config.positions;
  const room = positions - length;
  if (room < 1) {
    throw new RequestError(
      400,
      `the prompt has ${length} tokens; the model holds ${positions}, the answer included`,
      'context_length_exceeded',
    );
  }
  const maxTokens = request.max_completion_tokens ?? request.max_tokens ?? room;
  if (maxTokens > room) {
    throw new RequestError(
      400,
      `${length} prompt tokens and max_tokens ${maxTokens} exceed the model's ${positions} positions`,
      'context_length_exceeded',
    );
  }
  const stop = request.stop ?? [];
  return {
    model: request.model ?? undefined,
    stream: request.stream ?? false,
    includeUsage: request.stream_options?.include_usage ?? false,
    job: {
      prompt: encoded.ids,
      sampling: {
        temperature: request.temperature ?? defaults.temperature,
        topK: request.top_k ?? defaults.topK,
        topP: request.top_p ?? defaults.topP,
        minP: request.min_p ?? defaults.minP,
      },
      maxTokens,
      stop: typeof stop === 'string' ? [stop] : stop,
      uniform: seeded(request.seed ?? randomInt(2 ** 47)),
    },
  };
}
