import type { Tensor } from './safetensors.js';

/** The sizes that `config.json` declares and the forward pass needs. */
export interface ModelConfig {
  readonly vocab: number;
  readonly width: number;
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly positions: number;
  readonly epsilon: number;
}

interface Linear {
  readonly weight: Float32Array;
  readonly bias: Float32Array | undefined;
}

interface Norm {
  readonly weight: Float32Array;
  readonly bias: Float32Array;
}

interface Block {
  readonly ln1: Norm;
  readonly qkv: Linear;
  readonly proj: Linear;
  readonly ln2: Norm;
  readonly up: Linear;
  readonly down: Linear;
}

/** Weights laid out for the forward pass; shared by all requests and never written to. */
export interface Model {
  readonly config: ModelConfig;
  readonly parameters: number;
  readonly tok: Float32Array;
  readonly pos: Float32Array;
  readonly blocks: readonly Block[];
  readonly lnF: Norm;
  readonly head: Linear;
}

/**
 * Takes the named tensors for a model of these sizes.
 *
 * @throws Error when a tensor is missing, has another shape, or is left over: weights of some other model would
 *   otherwise run and answer nonsense.
 */
export function buildModel(config: ModelConfig, tensors: ReadonlyMap<string, Tensor>): Model {
  const { vocab, width, hidden, positions } = config;
  if (width % config.heads !== 0) throw new Error(`width ${width} isn't a multiple of ${config.heads} heads`);
  const left = new Set(tensors.keys());
  let parameters = 0;
  const take = (name: string, ...shape: number[]): Float32Array => {
    const tensor = tensors.get(name);
    if (tensor === undefined) throw new Error(`tensor ${name} is missing`);
    if (tensor.shape.join() !== shape.join()) {
      throw new Error(`tensor ${name} has shape [${tensor.shape.join()}], expected [${shape.join()}]`);
    }
    left.delete(name);
    parameters += tensor.data.length;
    return tensor.data;
  };
  const norm = (name: string): Norm => ({
    weight: take(`${name}.weight`, width),
    bias: take(`${name}.bias`, width),
  });
  const linear = (name: string, out: number, into: number): Linear => ({
    weight: take(`${name}.weight`, out, into),
    bias: take(`${name}.bias`, out),
  });

  const blocks = Array.from({ length: config.layers }, (_, i) => ({
    ln1: norm(`blocks.${i}.ln_1`),
    qkv: linear(`blocks.${i}.qkv`, 3 * width, width),
    proj: linear(`blocks.${i}.proj`, width, width),
    ln2: norm(`blocks.${i}.ln_2`),
    up: linear(`blocks.${i}.up`, hidden, width),
    down: linear(`blocks.${i}.down`, width, hidden),
  }));
  const model = {
    config,
    tok: take('tok.weight', vocab, width),
    pos: take('pos.weight', positions, width),
    blocks,
    lnF: norm('ln_f'),
    head: { weight: take('head.weight', vocab, width), bias: undefined },
  };
  if (left.size > 0) throw new Error(`unknown tensors: ${[...left].join(', ')}`);
  return { ...model, parameters };
}

/**
 * One sequence in progress: the keys and values of the positions read so far, and scratch space, so that a token costs
 * one pass over the weights and no allocation.
 */
export class Sequence {
  readonly #model: Model;
  readonly #keys: Float32Array[];
  readonly #values: Float32Array[];
  readonly #x: Float32Array;
  readonly #normed: Float32Array;
  readonly #qkv: Float32Array;
  readonly #mixed: Float32Array;
  readonly #out: Float32Array;
  readonly #hidden: Float32Array;
  readonly #scores: Float64Array;
  readonly #logits: Float32Array;
  #length = 0;

  constructor(model: Model) {
    const { width, hidden, layers, positions, vocab } = model.config;
    this.#model = model;
    this.#keys = Array.from({ length: layers }, () => new Float32Array(positions * width));
    this.#values = Array.from({ length: layers }, () => new Float32Array(positions * width));
    this.#x = new Float32Array(width);
    this.#normed = new Float32Array(width);
    this.#qkv = new Float32Array(3 * width);
    this.#mixed = new Float32Array(width);
    this.#out = new Float32Array(width);
    this.#hidden = new Float32Array(hidden);
    this.#scores = new Float64Array(positions);
    this.#logits = new Float32Array(vocab);
  }

  /** Tokens read so far. */
  get length(): number {
    return this.#length;
  }

  /**
   * Reads one token.
   *
   * @throws Error for a token outside the vocabulary, or when all positions are taken.
   */
  push(token: number): void {
    const { config, tok, pos, blocks } = this.#model;
    const { width, vocab, positions, epsilon } = config;
    if (!(Number.isInteger(token) && token >= 0 && token < vocab)) throw new Error(`no token ${token}`);
    if (this.#length >= positions) throw new Error(`all ${positions} positions are taken`);
    const x = this.#x;
    const at = this.#length;
    for (let i = 0; i < width; i++) x[i] = (tok[token * width + i] ?? 0) + (pos[at * width + i] ?? 0);
    this.#length = at + 1;
    blocks.forEach((block, layer) => {
      normalise(this.#normed, x, block.ln1, epsilon);
      multiply(this.#qkv, block.qkv, this.#normed);
      this.#attend(layer, at);
      multiply(this.#out, block.proj, this.#mixed);
      add(x, this.#out);
      normalise(this.#normed, x, block.ln2, epsilon);
      multiply(this.#hidden, block.up, this.#normed);
      gelu(this.#hidden);
      multiply(this.#out, block.down, this.#hidden);
      add(x, this.#out);
    });
  }

  /** Logits of the next token, one per token of the vocabulary; valid until the next call. */
  logits(): Float32Array {
    normalise(this.#normed, this.#x, this.#model.lnF, this.#model.config.epsilon);
    multiply(this.#logits, this.#model.head, this.#normed);
    return this.#logits;
  }

  /** Causal attention of position `at` over itself and the positions before it. */
  #attend(layer: number, at: number): void {
    const { width, heads } = this.#model.config;
    const keys = this.#keys[layer] as Float32Array;
    const values = this.#values[layer] as Float32Array;
    const qkv = this.#qkv;
    const mixed = this.#mixed;
    const scores = this.#scores;
    keys.set(qkv.subarray(width, 2 * width), at * width);
    values.set(qkv.subarray(2 * width), at * width);
    const size = width / heads;
    const scale = 1 / Math.sqrt(size);
    for (let first = 0; first < width; first += size) {
      let top = Number.NEGATIVE_INFINITY;
      for (let t = 0; t <= at; t++) {
        let sum = 0;
        for (let i = first; i < first + size; i++)
          sum += (qkv[i] as number) * (keys[t * width + i] as number);
        scores[t] = sum * scale;
        top = Math.max(top, sum * scale);
      }
      let total = 0;
      for (let t = 0; t <= at; t++) {
        const weight = Math.exp((scores[t] as number) - top);
        scores[t] = weight;
        total += weight;
      }
      for (let i = first; i < first + size; i++) {
        let sum = 0;
        for (let t = 0; t <= at; t++) sum += (scores[t] as number) * (values[t * width + i] as number);
        mixed[i] = sum / total;
      }
    }
  }
}

/**
 * `out = weight · x + bias`, with the rows of `weight` contiguous. Four rows at a time: each number of `x` is read once for
 * all four, and their sums don't wait for each other.
 */
function multiply(out: Float32Array, { weight, bias }: Linear, x: Float32Array): void {
  const n = x.length;
  const rows = out.length;
  const blocked = rows - (rows % 4);
  for (let row = 0; row < blocked; row += 4) {
    const w0 = row * n;
    const w1 = w0 + n;
    const w2 = w1 + n;
    const w3 = w2 + n;
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    for (let i = 0; i < n; i++) {
      const v = x[i] as number;
      a += (weight[w0 + i] as number) * v;
      b += (weight[w1 + i] as number) * v;
      c += (weight[w2 + i] as number) * v;
      d += (weight[w3 + i] as number) * v;
    }
    out[row] = a;
    out[row + 1] = b;
    out[row + 2] = c;
    out[row + 3] = d;
  }
  for (let row = blocked; row < rows; row++) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += (weight[row * n + i] as number) * (x[i] as number);
    out[row] = sum;
  }
  if (bias !== undefined) add(out, bias);
}

function add(x: Float32Array, y: Float32Array): void {
  for (let i = 0; i < x.length; i++) x[i] = (x[i] as number) + (y[i] as number);
}

/** Layer normalisation with the biased variance, as PyTorch's `LayerNorm`. */
function normalise(out: Float32Array, x: Float32Array, { weight, bias }: Norm, epsilon: number): void {
  const n = x.length;
  let mean = 0;
  for (let i = 0; i < n; i++) mean += x[i] as number;
  mean /= n;
  let variance = 0;
  for (let i = 0; i < n; i++) variance += ((x[i] as number) - mean) ** 2;
  const scale = 1 / Math.sqrt(variance / n + epsilon);
  for (let i = 0; i < n; i++) {
    out[i] = ((x[i] as number) - mean) * scale * (weight[i] as number) + (bias[i] as number);
  }
}

const GELU = Math.sqrt(2 / Math.PI);

/** The tanh form of GELU (Hendrycks and Gimpel 2016), the one the models were trained with. */
function gelu(x: Float32Array): void {
  for (let i = 0; i < x.length; i++) {
    const v = x[i] as number;
    x[i] = 0.5 * v * (1 + Math.tanh(GELU * (v + 0.044715 * v * v * v)));
  }
}
