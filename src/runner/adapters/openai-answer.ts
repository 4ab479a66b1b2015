import { z } from 'zod';
import { BoundbookError } from '../../core/errors.js';
import type { JsonValue } from '../../core/json.js';
import { parseStrictJson } from '../../core/strict-json.js';
import type { LoopStop } from '../../protocol/schema/conditions.js';
import type { OpenaiRunner } from '../../protocol/schema/openai-runner.js';
import type { Cause } from '../../protocol/schema/signals.js';

export interface Usage {
  readonly prompt_tokens: number | null;
  readonly completion_tokens: number | null;
}

export type AnswerReading =
  | {
      readonly ok: true;
      readonly text: string;
      readonly finishReason: string | null;
      readonly usage: Usage | null;
    }
  | {
      readonly ok: false;
      readonly cause: Cause;
      readonly text: string;
      /** The status that an error body names, when it names one. */
      readonly embeddedStatus: number | null;
      readonly exception: string | null;
      /** The model that it names in place of the one that was asked; absent when it names that, or none. */
      readonly otherModel?: string;
    };

/** What was asked, as far as it matters to the reading of an answer. */
export interface Question {
  readonly endpoint: OpenaiRunner['endpoint'];
  /** As the request calls it. */
  readonly model: string;
  readonly stream: boolean;
  readonly loopStop: LoopStop | null;
  /** What a server that echoes its settings must say. */
  readonly settings: Readonly<Record<string, number>>;
}

const count = z.int().min(0).nullish();
const answer = z.object({
  model: z.string(),
  choices: z.array(z.unknown()).nullish(),
  usage: z.object({ prompt_tokens: count, completion_tokens: count }).nullish(),
});
const chatChoice = z.object({
  finish_reason: z.string().max(100).nullish(),
  message: z.object({
    content: z.string().nullish(),
    reasoning_content: z.string().nullish(),
    reasoning: z.string().nullish(),
  }),
});
const textChoice = z.object({ finish_reason: z.string().max(100).nullish(), text: z.string() });

/** Finish reasons by which a server says that it gave up, under status 200 (harnesses §15.4). */
export const GIVEN_UP: ReadonlySet<string> = new Set(['abort', 'error']);

/**
 * Reads the body of an answer with status 200. What is no complete answer to this request is a failure with a typed
 * cause, never an empty text: error bodies (F-63), no choice, several choices (F-55), another model (F-73), a
 * generation that the server broke off, an answer that says neither how nor after how many tokens it ended (F-61).
 */
export function readAnswer(body: Buffer, endpoint: OpenaiRunner['endpoint'], model: string): AnswerReading {
  const parsed = parseAnswer(body);
  if (!parsed.ok) return parsed;
  const reading = readValue(parsed.value, endpoint, model);
  const said = asRecord(parsed.value)?.model;
  return reading.ok || typeof said !== 'string' || said === model
    ? reading
    : { ...reading, otherModel: said };
}

function readValue(value: JsonValue, endpoint: OpenaiRunner['endpoint'], model: string): AnswerReading {
  const error = errorIn(value);
  if (error !== null) return error;
  if (value === null) return refuse('body_no_choice', 'the body is null');
  const reading = answer.safeParse(value);
  if (!reading.success) return refuse('body_malformed', issueText(reading.error));
  const { choices, usage } = reading.data;
  if (choices === null || choices === undefined || choices.length === 0) {
    return refuse('body_no_choice', 'the answer holds no choice');
  }
  if (choices.length > 1) return refuse('body_malformed', `${choices.length} choices came for n = 1`);
  if (reading.data.model !== model) {
    return refuse('body_malformed', `the answer is from ${quote(reading.data.model)}, not ${quote(model)}`);
  }
  return readChoice(choices[0], endpoint, {
    prompt_tokens: usage?.prompt_tokens ?? null,
    completion_tokens: usage?.completion_tokens ?? null,
  });
}

function readChoice(choice: unknown, endpoint: OpenaiRunner['endpoint'], usage: Usage): AnswerReading {
  const reading = endpoint === 'chat' ? chatChoice.safeParse(choice) : textChoice.safeParse(choice);
  if (!reading.success) return refuse('body_malformed', issueText(reading.error));
  const finishReason = reading.data.finish_reason ?? null;
  if (finishReason !== null && GIVEN_UP.has(finishReason)) {
    return { ...refuse('body_error', `the server ended with "${finishReason}"`), exception: finishReason };
  }
  if (finishReason === null && usage.completion_tokens === null) {
    return refuse('body_malformed', 'neither a finish reason nor a token count: the answer may be cut short');
  }
  const text = 'text' in reading.data ? reading.data.text : contentOf(reading.data.message, finishReason);
  if (text === null) return refuse('body_malformed', 'the content is null and nothing says why');
  const counted = usage.prompt_tokens !== null || usage.completion_tokens !== null;
  return { ok: true, text, finishReason, usage: counted ? usage : null };
}

/**
 * The content of a message. Where the whole budget went into reasoning, or the model reasoned and then said nothing,
 * servers send null: that is the model's own, empty answer (P13, F-61). Null for any other null content.
 */
function contentOf(
  message: z.infer<typeof chatChoice>['message'],
  finishReason: string | null,
): string | null {
  if (typeof message.content === 'string') return message.content;
  const reasoned = typeof (message.reasoning_content ?? message.reasoning) === 'string';
  return reasoned || finishReason === 'length' ? '' : null;
}

export type Refusal = Extract<AnswerReading, { ok: false }>;

/** Strict JSON, or what is none. */
export function parseAnswer(body: Buffer): { readonly ok: true; readonly value: JsonValue } | Refusal {
  try {
    return { ok: true, value: parseStrictJson(body, 'the answer') };
  } catch (error) {
    if (!(error instanceof BoundbookError)) throw error;
    const looksLikeJson = /^\s*[{[]/.test(body.subarray(0, 64).toString('latin1'));
    return refuse(looksLikeJson ? 'body_malformed' : 'body_not_json', error.message);
  }
}

/** An error object in place of an answer (F-63); null when there is none. */
export function errorIn(value: JsonValue): Refusal | null {
  const record = asRecord(value);
  const error = record?.error;
  if (record === null || error === undefined || error === null) return null;
  const details = asRecord(error);
  const message = details?.message ?? (typeof error === 'string' ? error : JSON.stringify(error));
  const status = [details?.code, details?.status, record.code, record.status].map(asStatus);
  return {
    ok: false,
    cause: 'body_error',
    text: String(message),
    embeddedStatus: status.find((item) => item !== null) ?? null,
    exception: typeof details?.type === 'string' ? details.type.slice(0, 200).toWellFormed() : null,
  };
}

/** What the body of an answer under an error status says, for people: exception name and text. */
export function errorText(body: Buffer): { readonly exception: string | null; readonly text: string | null } {
  if (body.length === 0) return { exception: null, text: null };
  const parsed = parseAnswer(body);
  const error = parsed.ok ? errorIn(parsed.value) : null;
  if (error !== null) return { exception: error.exception, text: error.text };
  // Not JSON, or no error in it: the beginning of the body is the text.
  return { exception: null, text: body.subarray(0, 2000).toString('utf8') };
}

export function asRecord(
  value: JsonValue | undefined,
): Readonly<Record<string, JsonValue | undefined>> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, JsonValue | undefined>>)
    : null;
}

/** A number or text that is an HTTP status. */
function asStatus(value: JsonValue | undefined): number | null {
  const status = typeof value === 'string' && /^[1-5][0-9]{2}$/.test(value) ? Number(value) : value;
  return typeof status === 'number' && Number.isInteger(status) && status >= 100 && status <= 599
    ? status
    : null;
}

export function refuse(cause: Cause, text: string): Refusal {
  return { ok: false, cause, text, embeddedStatus: null, exception: null };
}

function issueText(error: z.ZodError): string {
  const issue = error.issues[0];
  return `/${(issue?.path ?? []).join('/')}: ${issue?.message ?? 'not an answer'}`;
}

export function quote(text: string): string {
  return JSON.stringify(text.slice(0, 100).toWellFormed());
}
