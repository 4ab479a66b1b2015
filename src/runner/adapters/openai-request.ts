import { canonicalBytes } from '../../core/canonical-json.js';
import type { JsonObject, JsonValue } from '../../core/json.js';
import type { Condition } from '../../protocol/schema/conditions.js';
import type { OpenaiRunner } from '../../protocol/schema/openai-runner.js';
import { renderPrompt } from '../prompt.js';
import type { Work } from './adapter.js';
import type { Question } from './openai-answer.js';
import { settingsOf } from './openai-echo.js';

export const ENDPOINT_PATHS = { chat: '/v1/chat/completions', completions: '/v1/completions' } as const;

/**
 * The body of the one request of an attempt, as canonical JSON. Every sampling field is explicit: servers fill
 * missing ones from files and versions of their own (harnesses §15.3). One slot, one request, one answer (F-55).
 */
export function buildRequest(
  endpoint: OpenaiRunner['endpoint'],
  condition: Condition,
  model: string,
  fields: JsonObject,
  seed: number,
  stream = false,
): Buffer {
  const { decoding, reasoning } = condition;
  return canonicalBytes({
    model,
    ...promptFields(endpoint, condition, fields),
    temperature: decoding.temperature,
    top_p: decoding.top_p,
    top_k: decoding.top_k,
    min_p: decoding.min_p,
    max_tokens: decoding.max_tokens,
    seed,
    n: 1,
    stream,
    // Without it no server says what a streamed answer cost.
    ...(stream ? { stream_options: { include_usage: true } } : {}),
    ...defined({
      stop: decoding.stop,
      presence_penalty: decoding.presence_penalty,
      frequency_penalty: decoding.frequency_penalty,
      repetition_penalty: decoding.repetition_penalty,
    }),
    ...(reasoning === undefined ? {} : { chat_template_kwargs: { enable_thinking: reasoning === 'on' } }),
  });
}

/** What of a request the reading of its answer rests on. */
export function questionOf(
  { endpoint, stream = false }: Pick<OpenaiRunner, 'endpoint' | 'stream'>,
  { model, condition, samplingSeed }: Pick<Work, 'model' | 'condition' | 'samplingSeed'>,
): Question {
  const settings = settingsOf(condition.decoding, samplingSeed);
  return { endpoint, model, stream, loopStop: condition.loop_stop ?? null, settings };
}

/** The completions endpoint knows no roles: a system text stands directly before the user's. */
function promptFields(
  endpoint: OpenaiRunner['endpoint'],
  condition: Condition,
  fields: JsonObject,
): JsonObject {
  const { system, user } = renderPrompt(condition, fields);
  if (endpoint === 'completions') return { prompt: (system ?? '') + user };
  const messages = system === null ? [] : [{ role: 'system', content: system }];
  return { messages: [...messages, { role: 'user', content: user }] };
}

function defined(values: Record<string, JsonValue | undefined>): JsonObject {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as JsonObject;
}
