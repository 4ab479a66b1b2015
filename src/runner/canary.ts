import { canonicalBytes } from '../core/canonical-json.js';
import type { JsonObject } from '../core/json.js';
import type { OpenaiRunner } from '../protocol/schema/openai-runner.js';
import type { CanarySetting } from '../protocol/schema/services.js';
import { type HttpResult, send } from './adapters/http.js';
import type { Endpoint } from './adapters/openai.js';
import { readAnswer } from './adapters/openai-answer.js';
import { ENDPOINT_PATHS } from './adapters/openai-request.js';
import { type CanaryAnswer, canaryBytes, canaryRequests, readCanary } from './canary-reading.js';

const PAUSE_MS = 250;

export type CanaryTaken =
  | { readonly ok: true; readonly answers: readonly CanaryAnswer[]; readonly bytes: Buffer }
  | {
      readonly ok: false;
      readonly reason: string;
      /** The model that answered in place of the one that was asked; null for another reason. */
      readonly otherModel: string | null;
    };

/** Asks a service the fixed prompts, one after the other. Never throws. */
export async function takeCanary(
  pool: Endpoint['pool'],
  runner: OpenaiRunner,
  canary: CanarySetting,
  model: string,
  signal: AbortSignal,
): Promise<CanaryTaken> {
  const answers: CanaryAnswer[] = [];
  for (const [i, request] of canaryRequests(runner.endpoint, canary, model).entries()) {
    const failed = (why: string, otherModel: string | null = null) =>
      ({ ok: false, reason: `prompt ${i + 1} of the canary: ${why}`, otherModel }) as const;
    const result = await ask(pool, runner, request, signal);
    if (result.kind === 'abandoned') return failed('it was cut short');
    if (result.kind === 'failure') return failed(result.text);
    if (result.status !== 200) return failed(`status ${result.status}`);
    const body = result.body.toString('utf8');
    const reading = readCanary(result.body, model);
    if (typeof reading === 'string') {
      const plain = readAnswer(result.body, runner.endpoint, model);
      return failed(reading, plain.ok ? null : (plain.otherModel ?? null));
    }
    answers.push({ request, body, ...reading });
  }
  return { ok: true, answers, bytes: canaryBytes(answers) };
}

/** Asks until the server takes the request, within the bound for attempts. */
async function ask(
  pool: Endpoint['pool'],
  { endpoint, limits }: OpenaiRunner,
  request: JsonObject,
  signal: AbortSignal,
): Promise<HttpResult> {
  const start = performance.now();
  for (;;) {
    const result = await send(pool, {
      method: 'POST',
      path: ENDPOINT_PATHS[endpoint],
      body: canonicalBytes(request),
      timeoutMs: limits.request_s * 1000,
      maxBytes: limits.response_bytes,
      signal,
    });
    const busy = result.kind === 'answer' && (result.status === 429 || result.status === 503);
    if (!busy || performance.now() - start + PAUSE_MS > limits.queue_wait_s * 1000) return result;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
