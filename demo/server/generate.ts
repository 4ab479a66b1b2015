import type { Loaded } from './load.js';
import { Sequence } from './model.js';
import { distribution, draw, type Sampling } from './sampler.js';

/** What one completion is made from. `maxTokens` plus the prompt must fit the model's positions. */
export interface Job {
  readonly prompt: readonly number[];
  readonly sampling: Sampling;
  readonly maxTokens: number;
  readonly stop: readonly string[];
  /** Uniform numbers in [0, 1), one taken for every token. */
  readonly uniform: () => number;
}

/** A completion; `tokens` counts every token drawn, the end token included, as vLLM's `completion_tokens` does. */
export interface Completion {
  readonly text: string;
  readonly finish: 'stop' | 'length';
  readonly tokens: number;
}

/** Draws tokens until the end token, a stop text or the limit. */
export function complete(loaded: Loaded, job: Job): Completion {
  const sequence = new Sequence(loaded.model);
  for (const token of job.prompt) sequence.push(token);
  let text = '';
  for (let tokens = 1; ; tokens++) {
    const token = draw(distribution(sequence.logits(), job.sampling), job.uniform());
    if (token === loaded.end) return { text, finish: 'stop', tokens };
    text += loaded.tokenizer.character(token);
    const cut = firstStop(text, job.stop);
    if (cut >= 0) return { text: text.slice(0, cut), finish: 'stop', tokens };
    if (tokens === job.maxTokens) return { text, finish: 'length', tokens };
    sequence.push(token);
  }
}

/** Where the earliest stop text begins, or -1. Checked after every token, so that a match is always at the end. */
function firstStop(text: string, stop: readonly string[]): number {
  const found = stop.map((s) => text.indexOf(s)).filter((at) => at >= 0);
  return found.length === 0 ? -1 : Math.min(...found);
}

/**
 * Probability at temperature 1, without filters, that the model answers `answer` and ends: the product over its tokens
 * and the end token.
 */
export function answerProbability(
  loaded: Loaded,
  prompt: readonly number[],
  answer: readonly number[],
): number {
  const sequence = new Sequence(loaded.model);
  const plain: Sampling = { temperature: 1, topK: 0, topP: 1, minP: 0 };
  for (const token of prompt) sequence.push(token);
  let product = 1;
  for (const token of answer) {
    product *= distribution(sequence.logits(), plain)[token] ?? 0;
    sequence.push(token);
  }
  return product * (distribution(sequence.logits(), plain)[loaded.end] ?? 0);
}
