import type { JsonValue } from '../../core/json.js';
import type { LoopStop } from '../../protocol/schema/conditions.js';
import { EventSplitter } from './event-stream.js';
import { LoopWatch } from './loop-watch.js';
import {
  type AnswerReading,
  asRecord,
  errorIn,
  GIVEN_UP,
  parseAnswer,
  type Question,
  quote,
  type Refusal,
  readAnswer,
  refuse,
  type Usage,
} from './openai-answer.js';
import { differingEcho } from './openai-echo.js';

/** The finish reason of a generation that the declared stop rule ended; no server may say it. */
export const LOOP_STOP = 'loop_stop';

export interface StreamReading {
  readonly answer: AnswerReading;
  /** Whether any text, of an answer or of reasoning, came. */
  readonly firstToken: boolean;
  /** Offset in bytes of the end of the event at which the stop rule fired; null when it did not. */
  readonly stoppedAt: number | null;
}

/** Finish reasons after which an answer without any content is the model's own, empty answer. */
const OWN_END: ReadonlySet<string> = new Set(['stop', 'length']);

/**
 * Reads a streamed answer as it comes. What it makes of the stream depends on its bytes alone, so that an audit that
 * reads the kept stream comes to the same. The first fault decides; a stream without a finish reason is no answer.
 */
export class StreamReader {
  readonly #question: Question;
  readonly #splitter = new EventSplitter();
  readonly #watches: readonly LoopWatch[];
  #events = 0;
  #fault: Refusal | null = null;
  #isDone = false;
  #firstToken = false;
  #stoppedAt: number | null = null;
  #finishReason: string | null = null;
  #usage: Usage | null = null;
  readonly #content: string[] = [];
  #saidNothing = true;

  constructor(question: Question) {
    this.#question = question;
    this.#watches = question.loopStop === null ? [] : watchesOf(question.loopStop);
  }

  get firstToken(): boolean {
    return this.#firstToken;
  }

  /** What has come of the answer, whatever becomes of it. */
  get text(): string {
    return this.#content.join('');
  }

  /** Takes a further piece of the stream. @returns whether the stop rule has fired */
  feed(piece: Buffer): boolean {
    if (this.#isOver) return this.#stoppedAt !== null;
    for (const { data, end } of this.#splitter.feed(piece)) {
      if (data.length > 0) this.#take(data, end);
      if (this.#isOver) break;
    }
    return this.#stoppedAt !== null;
  }

  /**
   * What the stream comes to, as far as it was taken.
   *
   * @param body all of it: without a single event it is read as the body of a plain answer
   */
  end(body: Buffer): StreamReading {
    return { answer: this.#answer(body), firstToken: this.#firstToken, stoppedAt: this.#stoppedAt };
  }

  get #isOver(): boolean {
    return this.#fault !== null || this.#isDone || this.#stoppedAt !== null;
  }

  #answer(body: Buffer): AnswerReading {
    if (this.#fault !== null) return this.#fault;
    if (this.#events === 0) return plainRefusal(body, this.#question);
    const { text } = this;
    if (this.#stoppedAt !== null) return { ok: true, text, finishReason: LOOP_STOP, usage: null };
    const finishReason = this.#finishReason;
    if (finishReason === null) return refuse('stream_cut', 'the stream ends without a finish reason');
    if (GIVEN_UP.has(finishReason)) {
      return { ...refuse('body_error', `the server ended with "${finishReason}"`), exception: finishReason };
    }
    if (this.#saidNothing && !this.#firstToken && !OWN_END.has(finishReason)) {
      return refuse('body_malformed', 'no content came and nothing says why');
    }
    return { ok: true, text, finishReason, usage: this.#usage };
  }

  #take(data: Buffer, end: number): void {
    this.#events++;
    if (data.toString('latin1').trim() === '[DONE]') {
      this.#isDone = true;
      return;
    }
    const parsed = parseAnswer(data);
    if (!parsed.ok) this.#fault = { ...parsed, cause: 'body_malformed' };
    else this.#fault = this.#takeChunk(parsed.value, end);
  }

  /** @returns what is wrong with the chunk */
  #takeChunk(value: JsonValue, end: number): Refusal | null {
    const error = errorIn(value);
    if (error !== null) return error;
    const chunk = asRecord(value);
    if (chunk === null) return refuse('body_malformed', 'a chunk is no object');
    const choices = chunk.choices ?? [];
    if (!Array.isArray(choices)) return refuse('body_malformed', '/choices: not a list');
    const { model } = chunk;
    if (typeof model !== 'string' && (choices.length > 0 || model !== undefined)) {
      return refuse('body_malformed', '/model: not a string');
    }
    if (typeof model === 'string' && model !== this.#question.model) {
      const text = `a chunk is from ${quote(model)}, not ${quote(this.#question.model)}`;
      return { ...refuse('model_differs', text), otherModel: model };
    }
    const echo = differingEcho(chunk, this.#question.settings);
    if (echo !== null) return refuse('settings_differ', echo);
    const usage = usageOf(chunk.usage);
    if (usage === undefined) return refuse('body_malformed', '/usage: not counts of tokens');
    this.#usage = usage ?? this.#usage;
    if (choices.length === 0) return null;
    if (choices.length > 1) return refuse('body_malformed', `${choices.length} choices came for n = 1`);
    return this.#takeChoice(asRecord(choices[0]), end);
  }

  #takeChoice(choice: Members, end: number): Refusal | null {
    if (choice === null) return refuse('body_malformed', '/choices/0: not an object');
    if ((choice.index ?? 0) !== 0) return refuse('body_malformed', 'a second choice came for n = 1');
    const reason = choice.finish_reason ?? null;
    if (reason !== null && !(typeof reason === 'string' && reason.length <= 100)) {
      return refuse('body_malformed', '/choices/0/finish_reason: not a short text');
    }
    if (reason === LOOP_STOP) return refuse('body_malformed', `the server says "${LOOP_STOP}"`);
    const parts = partsOf(choice, this.#question.endpoint);
    if (parts === null) return refuse('body_malformed', '/choices/0: not the text of a chunk');
    const isFinished = this.#finishReason !== null;
    if (
      isFinished &&
      (parts.content || parts.reasoning || (reason !== null && reason !== this.#finishReason))
    ) {
      return refuse('body_malformed', 'the stream goes on after its finish reason');
    }
    if (parts.content !== null) {
      this.#saidNothing = false;
      this.#content.push(parts.content);
    }
    if (parts.content || parts.reasoning) this.#firstToken = true;
    this.#finishReason = reason ?? this.#finishReason;
    // A server that ends by itself at this very chunk has ended it.
    if (this.#watch(parts) && this.#finishReason === null) this.#stoppedAt = end;
    return null;
  }

  #watch({ content, reasoning }: Parts): boolean {
    const [answers, thoughts] = this.#watches;
    const looped = answers?.feed(content ?? '') ?? false;
    return (thoughts?.feed(reasoning ?? '') ?? false) || looped;
  }
}

export interface ResponseReading extends Omit<StreamReading, 'firstToken'> {
  /** Null for an answer that is not streamed. */
  readonly firstToken: boolean | null;
}

/** Reads all that was kept of a response with status 200. */
export function readResponse(body: Buffer, question: Question): ResponseReading {
  if (!question.stream) {
    return { answer: readAnswer(body, question.endpoint, question.model), firstToken: null, stoppedAt: null };
  }
  const reader = new StreamReader(question);
  reader.feed(body);
  return reader.end(body);
}

type Members = ReturnType<typeof asRecord>;

interface Parts {
  /** Null when the chunk has none. */
  readonly content: string | null;
  readonly reasoning: string | null;
}

/** Answer and reasoning are watched apart: a model may quote in one what stands in the other. */
function watchesOf(rule: LoopStop): readonly LoopWatch[] {
  return [new LoopWatch(rule), new LoopWatch(rule)];
}

/** Null when it is none of a chunk. */
function partsOf(choice: NonNullable<Members>, endpoint: Question['endpoint']): Parts | null {
  if (endpoint === 'completions') {
    const text = choice.text ?? null;
    return text === null || typeof text === 'string' ? { content: text, reasoning: null } : null;
  }
  const delta = choice.delta === undefined || choice.delta === null ? {} : asRecord(choice.delta);
  if (delta === null) return null;
  const content = delta.content ?? null;
  const thoughts = [delta.reasoning_content ?? null, delta.reasoning ?? null];
  if (![content, ...thoughts].every((part) => part === null || typeof part === 'string')) return null;
  // Servers that give both names give the same text twice.
  const reasoning = thoughts.find((part) => part !== null) ?? null;
  return { content: content as string | null, reasoning: reasoning as string | null };
}

/** Undefined when it is no usage. */
function usageOf(value: JsonValue | undefined): Usage | null | undefined {
  if (value === undefined || value === null) return null;
  const usage = asRecord(value);
  if (usage === null) return undefined;
  const counts = [usage.prompt_tokens ?? null, usage.completion_tokens ?? null];
  if (!counts.every((count) => count === null || (Number.isSafeInteger(count) && Number(count) >= 0))) {
    return undefined;
  }
  const [prompt_tokens, completion_tokens] = counts as [number | null, number | null];
  return prompt_tokens === null && completion_tokens === null ? null : { prompt_tokens, completion_tokens };
}

/** Of what is no stream: an error body is what it says, and a plain answer is not what was asked for. */
function plainRefusal(body: Buffer, question: Question): Refusal {
  const plain = readAnswer(body, question.endpoint, question.model);
  return plain.ok ? refuse('body_malformed', 'the answer was not streamed') : plain;
}
