import { type Dispatcher, Pool } from 'undici';
import type { JsonValue } from '../../core/json.js';
import { EventSplitter } from './event-stream.js';
import { KEY_MARK, KeyMask } from './key-mask.js';
import { parseAnswer } from './openai-answer.js';

/**
 * Connections to a service that wants a key. Every request bears it, and every answer passes here before anything reads
 * or keeps it: its headers, its body and the text of its error hold the mark in place of the key.
 */
export class KeyedPool extends Pool {
  readonly #key: string;
  readonly #mask: KeyMask;

  constructor(origin: string, options: Pool.Options, key: string) {
    super(origin, options);
    this.#key = key;
    this.#mask = new KeyMask(key);
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const headers = {
      ...(options.headers as Record<string, string>),
      authorization: `Bearer ${this.#key}`,
    };
    return super.dispatch({ ...options, headers }, new MaskedHandler(handler, this.#mask));
  }

  /** A whole body as it may be kept: one whose texts spell out the key piece by piece is the mark alone. */
  kept(body: Buffer): Buffer {
    return spells(body, this.#mask) ? Buffer.from(KEY_MARK, 'utf8') : body;
  }
}

class MaskedHandler implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler;
  readonly #mask: KeyMask;
  readonly #pieces: ReturnType<KeyMask['pieces']>;

  constructor(handler: Dispatcher.DispatchHandler, mask: KeyMask) {
    this.#handler = handler;
    this.#mask = mask;
    this.#pieces = mask.pieces();
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.#handler.onRequestStart?.(controller, context);
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[]>,
  ): void {
    this.#handler.onResponseStart?.(controller, status, this.#headers(headers));
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.#pass(controller, this.#pieces.feed(piece));
  }

  onResponseEnd(
    controller: Dispatcher.DispatchController,
    trailers: Record<string, string | string[]>,
  ): void {
    this.#pass(controller, this.#pieces.end());
    this.#handler.onResponseEnd?.(controller, this.#headers(trailers));
  }

  /** What was held back of a body that broke off may be the beginning of the key, and is dropped. */
  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    error.message = this.#mask.text(error.message);
    this.#handler.onResponseError?.(controller, error);
  }

  #pass(controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (piece.length > 0) this.#handler.onResponseData?.(controller, piece);
  }

  #headers(headers: Record<string, string | string[]>): Record<string, string | string[]> {
    const masked = (value: string | string[]) =>
      Array.isArray(value) ? value.map((item) => this.#mask.text(item)) : this.#mask.text(value);
    return Object.fromEntries(
      Object.entries(headers ?? {}).map(([name, value]) => [this.#mask.text(name), masked(value)]),
    );
  }
}

/** Whether the texts at one place of all events, or of all items of a list, make up the key when they are joined. */
function spells(body: Buffer, mask: KeyMask): boolean {
  const texts = new Map<string, string[]>();
  for (const part of partsOf(body)) {
    const parsed = parseAnswer(part);
    if (parsed.ok) collect(parsed.value, '', texts);
  }
  return [...texts.values()].some((pieces) => pieces.length > 1 && mask.holds(pieces.join('')));
}

const EVENT_END = Buffer.from('\n\n');

function* partsOf(body: Buffer): Generator<Buffer> {
  yield body;
  // A stream that broke off may lack the end of its last event alone.
  for (const { data } of new EventSplitter().feed(Buffer.concat([body, EVENT_END]))) yield data;
}

function collect(value: JsonValue, place: string, texts: Map<string, string[]>): void {
  if (typeof value === 'string') {
    const pieces = texts.get(place);
    if (pieces === undefined) texts.set(place, [value]);
    else pieces.push(value);
  } else if (Array.isArray(value)) {
    for (const item of value as readonly JsonValue[]) collect(item, `${place}/*`, texts);
  } else if (value !== null && typeof value === 'object') {
    for (const [key, item] of Object.entries(value)) collect(item as JsonValue, `${place}/${key}`, texts);
  }
}
