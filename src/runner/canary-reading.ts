import { canonicalBytes, canonicalText } from '../core/canonical-json.js';
import { BoundbookError } from '../core/errors.js';
import type { JsonObject, JsonValue } from '../core/json.js';
import { parseStrictJson } from '../core/strict-json.js';
import type { OpenaiRunner } from '../protocol/schema/openai-runner.js';
import type { CanarySetting } from '../protocol/schema/services.js';

type Endpoint = OpenaiRunner['endpoint'];

/** What one answer to a canary prompt holds. */
export interface CanaryReading {
  /** What the tokens are given as: numbers, their bytes in hexadecimal, or their texts. */
  readonly form: 'ids' | 'bytes' | 'text';
  readonly tokens: readonly (number | string)[];
  /** Natural logarithms; null where the server gave none. */
  readonly logprobs: readonly (number | null)[];
  /** The prompt as the server cut it into tokens; null when it does not say. */
  readonly prompt_ids: readonly number[] | null;
}

/** One prompt: what was sent, what came, and what it was read as. */
export interface CanaryAnswer extends CanaryReading {
  readonly request: JsonObject;
  readonly body: string;
}

export interface CanaryComparison {
  readonly verdict: 'same' | 'differs';
  readonly largest: number | null;
}

/** The requests of a canary, in the order of its prompts: greedy, every field explicit. */
export function canaryRequests(
  endpoint: Endpoint,
  { prompts, max_tokens, logprobs }: CanarySetting,
  model: string,
): readonly JsonObject[] {
  return prompts.map((prompt) => ({
    model,
    ...(endpoint === 'completions'
      ? { prompt, logprobs }
      : { messages: [{ role: 'user', content: prompt }], logprobs: true, top_logprobs: logprobs }),
    temperature: 0,
    top_p: 1,
    top_k: -1,
    min_p: 0,
    max_tokens,
    seed: 0,
    n: 1,
    stream: false,
    return_token_ids: true,
  }));
}

/**
 * Reads an answer to a canary prompt. Token numbers come from `token_ids` (vLLM) or the `id` of each token (llama.cpp),
 * else tokens are their bytes, else their texts.
 *
 * @returns words for what is missing, when it is no such answer
 */
export function readCanary(body: Uint8Array, model: string): CanaryReading | string {
  const value = parsed(body);
  if (!isObject(value)) return 'the answer is no JSON object';
  if (present(value.error) !== null) return 'the answer is an error';
  if (value.model !== model) return `the answer is from ${quote(value.model)}`;
  const choices = value.choices;
  if (!Array.isArray(choices) || choices.length !== 1) return 'the answer has not one choice';
  const choice = (choices as readonly JsonValue[])[0];
  if (!isObject(choice)) return 'the choice is no object';
  const said = tokensIn(choice);
  if (said === null) return 'the answer has no log-probabilities of its tokens';
  const prompt_ids = idsIn(choice.prompt_token_ids) ?? idsIn(value.prompt_token_ids);
  const ids = idsIn(choice.token_ids);
  return ids === null ? { ...said, prompt_ids } : { ...said, form: 'ids', tokens: ids, prompt_ids };
}

/** The object of a canary, as canonical JSON. */
export function canaryBytes(answers: readonly CanaryAnswer[]): Buffer {
  return canonicalBytes({ answers });
}

/** The answers in such an object, as they stand there; null for anything else. */
export function canaryAnswers(object: Uint8Array): readonly JsonObject[] | null {
  const value = parsed(object);
  const answers = isObject(value) ? value.answers : null;
  return Array.isArray(answers) && (answers as readonly JsonValue[]).every(isObject)
    ? (answers as readonly JsonObject[])
    : null;
}

/** Holds two canaries against each other, prompt by prompt. @param tolerance of a log-probability, absolute */
export function compareCanaries(
  before: readonly CanaryReading[],
  after: readonly CanaryReading[],
  tolerance: number,
): CanaryComparison {
  let largest: number | null = null;
  let same = before.length === after.length;
  for (const [i, left] of before.entries()) {
    const right = after[i];
    if (right === undefined) break;
    same &&= tokensOf(left) === tokensOf(right) && left.logprobs.length === right.logprobs.length;
    for (const [k, a] of left.logprobs.entries()) {
      const b = right.logprobs[k];
      if (b === undefined) break;
      if (a === null || b === null) same &&= a === b;
      else largest = Math.max(largest ?? 0, Math.abs(a - b));
    }
  }
  return { verdict: same && (largest ?? 0) <= tolerance ? 'same' : 'differs', largest };
}

function tokensOf({ form, tokens, prompt_ids }: CanaryReading): string {
  return canonicalText({ form, tokens, prompt_ids });
}

/** Either way in which servers give log-probabilities. */
function tokensIn(choice: JsonObject): Omit<CanaryReading, 'prompt_ids'> | null {
  const given = choice.logprobs;
  if (!isObject(given)) return null;
  if (Array.isArray(given.content)) return fromContent(given.content as readonly JsonValue[]);
  const { tokens, token_logprobs: logprobs } = given;
  if (!isListOf(tokens, isString) || !isListOf(logprobs, isNumberOrNull)) return null;
  return tokens.length === logprobs.length ? { form: 'text', tokens, logprobs } : null;
}

function fromContent(content: readonly JsonValue[]): Omit<CanaryReading, 'prompt_ids'> | null {
  if (!isListOf(content, isObject)) return null;
  const texts = content.map(({ token }) => token ?? null);
  const logprobs = content.map(({ logprob }) => logprob ?? null);
  if (!isListOf(texts, isString) || !isListOf(logprobs, isNumberOrNull)) return null;
  const ids = content.map(({ id }) => id ?? null);
  if (isListOf(ids, isCount)) return { form: 'ids', tokens: ids, logprobs };
  const bytes = content.map((item) => hexOf(item.bytes));
  if (isListOf(bytes, isString)) return { form: 'bytes', tokens: bytes, logprobs };
  return { form: 'text', tokens: texts, logprobs };
}

function idsIn(value: JsonValue | undefined): readonly number[] | null {
  return isListOf(value, isCount) ? value : null;
}

function hexOf(value: JsonValue | undefined): string | null {
  return isListOf(value, isByte) ? Buffer.from(value).toString('hex') : null;
}

function parsed(bytes: Uint8Array): JsonValue {
  try {
    const value = parseStrictJson(bytes, 'the answer');
    canonicalBytes(value);
    return value;
  } catch (error) {
    if (error instanceof BoundbookError) return null;
    throw error;
  }
}

function present(value: JsonValue | undefined): JsonValue {
  return value ?? null;
}

function quote(value: JsonValue | undefined): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 100).toWellFormed()) : 'no named model';
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isListOf<T extends JsonValue>(
  value: JsonValue | undefined,
  is: (item: JsonValue) => item is T,
): value is readonly T[] {
  return Array.isArray(value) && (value as readonly JsonValue[]).every(is);
}

function isString(value: JsonValue): value is string {
  return typeof value === 'string';
}

function isNumberOrNull(value: JsonValue): value is number | null {
  return value === null || typeof value === 'number';
}

function isCount(value: JsonValue): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isByte(value: JsonValue): value is number {
  return isCount(value) && value <= 255;
}
