import type { JsonValue } from '../../core/json.js';
import type { Decoding } from '../../protocol/schema/conditions.js';
import { asRecord } from './openai-answer.js';

/** Settings as llama.cpp names them in its echo, and what the request asked for. */
export type Settings = Readonly<Record<string, number>>;

/** Numbers that servers keep as they are; the others are rounded to single precision. */
const WHOLE: ReadonlySet<string> = new Set(['top_k', 'seed', 'max_tokens', 'n_predict']);

/** What an echo must say of a request. A `top_k` of 0 or −1 has more than one spelling, and is left out. */
export function settingsOf(decoding: Decoding, seed: number): Settings {
  const { temperature, top_p, top_k, min_p, max_tokens, repetition_penalty } = decoding;
  const { presence_penalty, frequency_penalty } = decoding;
  const named = {
    temperature,
    top_p,
    min_p,
    seed,
    max_tokens,
    n_predict: max_tokens,
    presence_penalty,
    frequency_penalty,
    repeat_penalty: repetition_penalty,
    top_k: top_k > 0 ? top_k : undefined,
  };
  return Object.fromEntries(
    Object.entries(named).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

/**
 * What a server says that it did in place of what it was asked (F-57, F-59): the first member of `generation_settings`, or of
 * that inside `__verbose`, that is a number and another one. Null without an echo.
 */
export function differingEcho(
  chunk: Readonly<Record<string, JsonValue | undefined>>,
  asked: Settings,
): string | null {
  const echo =
    asRecord(chunk.generation_settings) ?? asRecord(asRecord(chunk.__verbose)?.generation_settings);
  if (echo === null) return null;
  const round = (name: string, value: number) => (WHOLE.has(name) ? value : Math.fround(value));
  const differing = Object.entries(asked).find(([name, value]) => {
    const said = echo[name];
    return typeof said === 'number' && round(name, said) !== round(name, value);
  });
  if (differing === undefined) return null;
  const [name, value] = differing;
  return `the server generates with ${name} ${JSON.stringify(echo[name])}, and was asked for ${value}`;
}
