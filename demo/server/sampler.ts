import seedrandom from 'seedrandom';

/** How the next token is chosen. `temperature` 0 is greedy; `topK` 0 or -1, `topP` 1 and `minP` 0 are off. */
export interface Sampling {
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
}

/** Below this a temperature counts as 0, as in vLLM: dividing by it would overflow. */
const GREEDY = 1e-5;

/** A source of numbers in [0, 1) that depends on the seed alone. */
export function seeded(seed: number): () => number {
  return seedrandom(String(seed));
}

/** Index of the largest logit, the first one on ties. */
export function argmax(logits: ArrayLike<number>): number {
  let best = 0;
  for (let i = 1; i < logits.length; i++) {
    if ((logits[i] as number) > (logits[best] as number)) best = i;
  }
  return best;
}

/**
 * Probabilities of the next token, in double precision, after temperature, then top-k, top-p and min-p. Each filter sees
 * what the one before it left, rescaled to sum to 1. The most likely token always stays.
 *
 * Top-k keeps every token tied with the k-th. Top-p drops the least likely tokens whose summed probability is at most
 * `1 - topP` (vLLM's `apply_top_k_top_p`). Min-p drops tokens below `minP` times the largest probability (Nguyen et al.
 * 2024).
 */
export function distribution(logits: ArrayLike<number>, sampling: Sampling): Float64Array {
  const p = new Float64Array(logits.length);
  const best = argmax(logits);
  if (sampling.temperature < GREEDY) {
    p[best] = 1;
    return p;
  }
  const top = logits[best] as number;
  for (let i = 0; i < p.length; i++) p[i] = Math.exp(((logits[i] as number) - top) / sampling.temperature);
  rescale(p);
  if (sampling.topK > 0 && sampling.topK < p.length) keepTopK(p, sampling.topK);
  if (sampling.topP < 1) keepTopP(p, sampling.topP, best);
  if (sampling.minP > 0) keepMinP(p, sampling.minP * (p[best] as number));
  return p;
}

function rescale(p: Float64Array): void {
  let total = 0;
  for (const value of p) total += value;
  for (let i = 0; i < p.length; i++) p[i] = (p[i] as number) / total;
}

function keepTopK(p: Float64Array, k: number): void {
  keepMinP(p, p.toSorted()[p.length - k] as number);
}

function keepTopP(p: Float64Array, topP: number, best: number): void {
  const ascending = Array.from(p.keys()).sort((a, b) => (p[a] as number) - (p[b] as number) || b - a);
  let tail = 0;
  for (const i of ascending) {
    tail += p[i] as number;
    if (tail > 1 - topP || i === best) break;
    p[i] = 0;
  }
  rescale(p);
}

function keepMinP(p: Float64Array, least: number): void {
  for (let i = 0; i < p.length; i++) {
    if ((p[i] as number) < least) p[i] = 0;
  }
  rescale(p);
}

/** Draws a token by inverting the cumulative distribution at one uniform number. */
export function draw(p: Float64Array, uniform: number): number {
  let last = 0;
  let sum = 0;
  for (let i = 0; i < p.length; i++) {
    const value = p[i] as number;
    if (value === 0) continue;
    last = i;
    sum += value;
    if (uniform < sum) return i;
  }
  // Rounding can leave the sum a little under 1.
  return last;
}
