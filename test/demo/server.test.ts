import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { answerProbability, complete } from '../../demo/server/generate.js';
import { createModelServer, MAX_BODY, type ModelServer } from '../../demo/server/http.js';
import { type Loaded, loadModel, ModelDirError } from '../../demo/server/load.js';
import { Sequence } from '../../demo/server/model.js';
import { fromHalf, parseSafetensors } from '../../demo/server/safetensors.js';
import { distribution, draw, type Sampling, seeded } from '../../demo/server/sampler.js';
import { CharTokenizer } from '../../demo/server/tokenizer.js';
import { readResponse } from '../../src/runner/adapters/openai-stream.js';

const ROOT = resolve(import.meta.dirname, '../..');
const MODELS = join(ROOT, 'demo/models');
const TASKS = join(ROOT, 'demo/tasks');
const NAMES = [
  ...['O', 'B', 'M'].flatMap((arm) => [42, 314159, 271828].map((seed) => `${arm}-${seed}`)),
  'E-42',
  'base',
];
const PARAMETERS = 58_608;

const taskSchema = z.strictObject({ instance_id: z.string(), prompt: z.string(), answer: z.string() });
const expectedSchema = z.strictObject({
  model: z.string(),
  temperature: z.literal(1),
  mean: z.strictObject({
    official500: z.number(),
    holdout100: z.number(),
    demo100: z.number(),
    demo40: z.number(),
  }),
  tasks: z.record(z.string(), z.number()),
});

const tasks = readFileSync(join(TASKS, 'official500.jsonl'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => taskSchema.parse(JSON.parse(line)));

function ids(list: string): string[] {
  return readFileSync(join(TASKS, `${list}.txt`), 'utf8')
    .trimEnd()
    .split('\n');
}

function expectedOf(name: string) {
  return expectedSchema.parse(JSON.parse(readFileSync(join(MODELS, name, 'expected.json'), 'utf8')));
}

function taskOf(id: string) {
  const task = tasks.find((entry) => entry.instance_id === id);
  if (task === undefined) throw new Error(`no task ${id}`);
  return task;
}

function encode(loaded: Loaded, text: string): readonly number[] {
  const encoded = loaded.tokenizer.encode(text);
  if ('unknown' in encoded) throw new Error(`not in the vocabulary: ${encoded.unknown}`);
  return encoded.ids;
}

/** Largest distance of a frequency over `n` draws from `p` that is taken for chance: 4 standard deviations. */
function band(p: number, n: number): number {
  return 4 * Math.sqrt((p * (1 - p)) / n);
}

const PLAIN: Sampling = { temperature: 1, topK: 0, topP: 1, minP: 0 };

describe('tasks', () => {
  test('five hundred distinct additions with their sums', () => {
    expect(tasks.map((task) => task.instance_id)).toEqual(
      Array.from({ length: 500 }, (_, i) => `add-${String(i + 1).padStart(4, '0')}`),
    );
    const pairs = new Set<string>();
    for (const { prompt, answer } of tasks) {
      const match = /^(\d{3})\+(\d{3})=$/.exec(prompt);
      expect(match, prompt).not.toBeNull();
      const operands = [Number(match?.[1]), Number(match?.[2])];
      expect(answer).toBe(String(operands.reduce((sum, n) => sum + n, 0)));
      pairs.add(operands.toSorted((a, b) => a - b).join('+'));
    }
    expect(pairs.size).toBe(500);
  });

  test('the id lists have their sizes and relations', () => {
    const all = new Set(tasks.map((task) => task.instance_id));
    const set = (list: string) => new Set(ids(list));
    const sizes = {
      trained149: 149,
      outside351: 351,
      original150: 150,
      quarantined1: 1,
      holdout100: 100,
      other250: 250,
      demo100: 100,
      demo40: 40,
    };
    for (const [list, size] of Object.entries(sizes)) {
      expect(ids(list), list).toHaveLength(size);
      expect(set(list).size, list).toBe(size);
      for (const id of ids(list)) expect(all.has(id), `${list} ${id}`).toBe(true);
    }
    const union = (...lists: string[]) => lists.flatMap(ids).toSorted();
    expect(union('trained149', 'outside351')).toEqual([...all].toSorted());
    expect(union('trained149', 'quarantined1')).toEqual(ids('original150').toSorted());
    expect(union('original150', 'holdout100', 'other250')).toEqual([...all].toSorted());
    expect(ids('demo40').filter((id) => !set('holdout100').has(id))).toEqual([]);
    expect(ids('demo100').filter((id) => set('holdout100').has(id))).toEqual(ids('demo40'));
  });
});

describe('model directories', () => {
  test('there are eleven', () => {
    expect(readdirSync(MODELS).toSorted()).toEqual(NAMES.toSorted());
  });

  test.each(NAMES)('%s: 58,608 half-precision parameters, 13 positions, newline ends', (name) => {
    const bytes = readFileSync(join(MODELS, name, 'model.safetensors'));
    const tensors = parseSafetensors(bytes);
    expect([...tensors.values()].reduce((sum, tensor) => sum + tensor.data.length, 0)).toBe(PARAMETERS);
    const loaded = loadModel(join(MODELS, name));
    expect(loaded.model.parameters).toBe(PARAMETERS);
    expect(loaded.model.config).toEqual({
      vocab: 14,
      width: 48,
      hidden: 192,
      layers: 2,
      heads: 4,
      positions: 13,
      epsilon: 1e-5,
    });
    expect(loaded.tokenizer.character(loaded.end)).toBe('\n');
    expect(encode(loaded, '0123456789+=\n ')).toHaveLength(14);
    expect(loaded.defaults).toEqual(PLAIN);
  });

  // The figures in expected.json come from PyTorch, an implementation independent of this one.
  test.each(NAMES)('%s: probabilities of the right answers equal those of PyTorch', (name) => {
    const loaded = loadModel(join(MODELS, name));
    const expected = expectedOf(name);
    expect(expected.model).toBe(name);
    const all = name === 'B-42' ? tasks : ids('demo40').map(taskOf);
    for (const { instance_id, prompt, answer } of all) {
      const p = answerProbability(loaded, encode(loaded, prompt), encode(loaded, answer));
      expect(Math.abs(p - (expected.tasks[instance_id] ?? Number.NaN)), instance_id).toBeLessThan(1e-4);
    }
  });

  test.each(NAMES)('%s: the means are those of the tasks', (name) => {
    const { mean, tasks: byId } = expectedOf(name);
    expect(Object.keys(byId)).toEqual(tasks.map((task) => task.instance_id));
    const average = (list: readonly string[]) =>
      list.reduce((sum, id) => sum + (byId[id] ?? Number.NaN), 0) / list.length;
    expect(mean.official500).toBeCloseTo(average(Object.keys(byId)), 12);
    expect(mean.holdout100).toBeCloseTo(average(ids('holdout100')), 12);
    expect(mean.demo100).toBeCloseTo(average(ids('demo100')), 12);
    expect(mean.demo40).toBeCloseTo(average(ids('demo40')), 12);
  });

  test('the arms differ as the demonstration says: M above B and O, base far below, E on top', () => {
    const average = (arm: string) =>
      [42, 314159, 271828].reduce((sum, seed) => sum + expectedOf(`${arm}-${seed}`).mean.holdout100, 0) / 3;
    const difference = average('M') - average('B');
    expect(difference).toBeGreaterThan(0.05);
    expect(difference).toBeLessThan(0.15);
    expect(average('M')).toBeGreaterThan(average('O'));
    expect(expectedOf('base').mean.holdout100).toBeLessThan(0.5);
    expect(expectedOf('E-42').mean.holdout100).toBeGreaterThan(0.9);
  });
});

describe('half precision and safetensors', () => {
  test.each([
    [0x0000, 0],
    [0x8000, -0],
    [0x3c00, 1],
    [0xc000, -2],
    [0x7bff, 65504],
    [0x0001, 2 ** -24],
    [0x0400, 2 ** -14],
    [0x3555, 0.333251953125],
    [0x7c00, Number.POSITIVE_INFINITY],
    [0xfc00, Number.NEGATIVE_INFINITY],
    [0x7e00, Number.NaN],
  ])('bits %i are %d', (bits, value) => {
    expect(Object.is(fromHalf(bits), value)).toBe(true);
  });

  function file(header: unknown, body: readonly number[]): Uint8Array {
    const text = Buffer.from(JSON.stringify(header));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    return Buffer.concat([length, text, Buffer.from(body)]);
  }
  const entry = { dtype: 'F16', shape: [2], data_offsets: [0, 4] };

  test('a tensor is read with its shape, metadata is not a tensor', () => {
    const tensors = parseSafetensors(
      file({ __metadata__: { format: 'pt' }, a: entry }, [0x00, 0x3c, 0x00, 0xc0]),
    );
    expect([...tensors]).toEqual([['a', { shape: [2], data: new Float32Array([1, -2]) }]]);
  });

  test.each([
    ['empty', new Uint8Array(0), /shorter/],
    ['a header beyond the end', file({}, []).subarray(0, 9), /beyond the end/],
    ['another precision', file({ a: { ...entry, dtype: 'F32' } }, [0, 0, 0, 0]), /only F16/],
    ['offsets that do not fit the shape', file({ a: { ...entry, shape: [3] } }, [0, 0, 0, 0]), /don't fit/],
    ['weights cut off', file({ a: entry }, [0, 0, 0]), /don't fit/],
    ['a weight that is no number', file({ a: entry }, [0, 0, 0x00, 0x7e]), /isn't finite/],
    ['a header that is no object', file([1], []), /./],
  ])('%s is refused', (_what, bytes, message) => {
    expect(() => parseSafetensors(bytes)).toThrow(message);
  });
});

describe('loading a directory with one fault', () => {
  let scratch: string;
  beforeAll(() => {
    scratch = mkdtempSync(join(ROOT, 'node_modules', '.server-load-'));
  });
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  function edit(file: string, change: (value: Record<string, unknown>) => unknown): (dir: string) => void {
    return (dir) => {
      const value = z
        .record(z.string(), z.unknown())
        .parse(JSON.parse(readFileSync(join(dir, file), 'utf8')));
      writeFileSync(join(dir, file), JSON.stringify(change(value)));
    };
  }

  test.each<[string, (dir: string) => void, string]>([
    ['no weights', (dir) => rmSync(join(dir, 'model.safetensors')), 'model.safetensors'],
    ['no config', (dir) => rmSync(join(dir, 'config.json')), 'config.json'],
    ['no tokenizer', (dir) => rmSync(join(dir, 'tokenizer.json')), 'tokenizer.json'],
    ['no generation config', (dir) => rmSync(join(dir, 'generation_config.json')), 'generation_config.json'],
    ['config of another type', edit('config.json', (c) => ({ ...c, model_type: 'gpt2' })), 'config.json'],
    ['other sizes', edit('config.json', (c) => ({ ...c, intermediate_size: 96 })), 'model.safetensors'],
    ['more layers', edit('config.json', (c) => ({ ...c, num_hidden_layers: 3 })), 'model.safetensors'],
    ['fewer layers', edit('config.json', (c) => ({ ...c, num_hidden_layers: 1 })), 'model.safetensors'],
    [
      'heads that do not divide',
      edit('config.json', (c) => ({ ...c, num_attention_heads: 5 })),
      'model.safetensors',
    ],
    [
      'a token missing',
      edit('tokenizer.json', (t) => ({ ...t, model: { vocab: { '0': 0 } } })),
      'tokenizer.json',
    ],
    [
      'a long token',
      edit('tokenizer.json', (t) => ({ ...t, model: { vocab: { ab: 0 } } })),
      'tokenizer.json',
    ],
    ['malformed JSON', (dir) => writeFileSync(join(dir, 'config.json'), '{'), 'config.json'],
  ])('%s', (what, spoil, file) => {
    const dir = join(scratch, what.replaceAll(' ', '-'));
    cpSync(join(MODELS, 'base'), dir, { recursive: true });
    spoil(dir);
    let caught: unknown;
    try {
      loadModel(dir);
    } catch (cause) {
      caught = cause;
    }
    expect(caught).toBeInstanceOf(ModelDirError);
    const message = caught instanceof Error ? caught.message : '';
    expect(message.startsWith(`${join(dir, file)}: `)).toBe(true);
    expect(message).not.toContain('\n');
  });

  test('generation_config.json gives the defaults', () => {
    const dir = join(scratch, 'defaults');
    cpSync(join(MODELS, 'base'), dir, { recursive: true });
    edit('generation_config.json', (g) => ({ ...g, temperature: 0.5, top_k: 3, top_p: 0.9, min_p: 0.1 }))(
      dir,
    );
    expect(loadModel(dir).defaults).toEqual({ temperature: 0.5, topK: 3, topP: 0.9, minP: 0.1 });
  });
});

describe('sampler', () => {
  const logits = [0.5, 0.25, 0.15, 0.1].map(Math.log);
  const third = [2 / 3, 1 / 3, 0, 0];

  test.each<[string, Partial<Sampling>, readonly number[]]>([
    ['nothing', {}, [0.5, 0.25, 0.15, 0.1]],
    ['temperature 0', { temperature: 0 }, [1, 0, 0, 0]],
    ['temperature 0.5 squares', { temperature: 0.5 }, [0.25, 0.0625, 0.0225, 0.01].map((p) => p / 0.345)],
    ['top_k 1', { topK: 1 }, [1, 0, 0, 0]],
    ['top_k 2', { topK: 2 }, third],
    ['top_k -1 is off', { topK: -1 }, [0.5, 0.25, 0.15, 0.1]],
    ['top_k above the vocabulary is off', { topK: 9 }, [0.5, 0.25, 0.15, 0.1]],
    ['top_p 0.7', { topP: 0.7 }, third],
    ['top_p 0.01 keeps one', { topP: 0.01 }, [1, 0, 0, 0]],
    ['top_p 0.95 keeps all', { topP: 0.95 }, [0.5, 0.25, 0.15, 0.1]],
    ['min_p 0.4', { minP: 0.4 }, third],
    ['min_p 1', { minP: 1 }, [1, 0, 0, 0]],
    // Rescaled by top_k the third token has 1/6, within the 0.2 that top_p drops; unscaled, 0.15 + 0.1 isn't.
    ['top_k before top_p', { topK: 3, topP: 0.8 }, third],
    ['top_p 0.8 alone', { topP: 0.8 }, [0.5, 0.25, 0.15, 0].map((p) => p / 0.9)],
    // After min_p the second token would have 1/3 and fall to top_p.
    ['top_p before min_p', { topP: 0.65, minP: 0.45 }, third],
    // At temperature 1 top_p 0.7 keeps two tokens, at temperature 0.5 the first one alone has 0.72.
    ['temperature before top_p', { temperature: 0.5, topP: 0.7 }, [1, 0, 0, 0]],
  ])('%s', (_what, fields, expected) => {
    const p = distribution(logits, { ...PLAIN, ...fields });
    expected.forEach((value, i) => {
      expect(p[i]).toBeCloseTo(value, 12);
    });
  });

  test('tokens tied with the k-th stay; greedy takes the first of a tie', () => {
    expect([...distribution([1, 2, 2], { ...PLAIN, topK: 1 })]).toEqual([0, 0.5, 0.5]);
    expect([...distribution([1, 2, 2], { ...PLAIN, temperature: 0 })]).toEqual([0, 1, 0]);
  });

  test('always a distribution that keeps the most likely token', () => {
    const number = fc.double({ min: -30, max: 30, noNaN: true });
    fc.assert(
      fc.property(
        fc.array(number, { minLength: 1, maxLength: 14 }),
        fc.record({
          temperature: fc.double({ min: 0, max: 4, noNaN: true }),
          topK: fc.integer({ min: -1, max: 20 }),
          topP: fc.double({ min: 1e-6, max: 1, noNaN: true }),
          minP: fc.double({ min: 0, max: 1, noNaN: true }),
        }),
        (values, sampling) => {
          const p = distribution(values, sampling);
          expect(p.reduce((sum, v) => sum + v, 0)).toBeCloseTo(1, 9);
          expect(p[values.indexOf(Math.max(...values))]).toBeGreaterThan(0);
          expect(p.every((v) => v >= 0)).toBe(true);
        },
      ),
      { seed: 1, numRuns: 500 },
    );
  });

  test('a draw inverts the cumulative distribution and never takes a dropped token', () => {
    const p = Float64Array.from([0, 0.5, 0, 0.5, 0]);
    expect([0, 0.4999, 0.5, 0.9999, 1].map((u) => draw(p, u))).toEqual([1, 1, 3, 3, 3]);
  });

  test('equal seeds, equal numbers; the numbers of neighbouring seeds are spread evenly', () => {
    expect(seeded(7)()).toBe(seeded(7)());
    const cells = new Array<number>(10).fill(0);
    for (let seed = 0; seed < 10_000; seed++) {
      const cell = Math.floor(seeded(seed)() * 10);
      cells[cell] = (cells[cell] ?? 0) + 1;
    }
    const chi2 = cells.reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0);
    // The 99.9 % point of chi-squared with 9 degrees of freedom.
    expect(chi2).toBeLessThan(27.88);
  });
});

describe('sequence and tokenizer', () => {
  test('the cache gives what reading the text afresh gives', () => {
    const { model } = loadModel(join(MODELS, 'B-42'));
    const tokens = [1, 2, 3, 10, 4, 5, 6, 11, 5, 7];
    const cached = new Sequence(model);
    tokens.forEach((token, i) => {
      cached.push(token);
      const afresh = new Sequence(model);
      for (const earlier of tokens.slice(0, i + 1)) afresh.push(earlier);
      expect([...cached.logits()]).toEqual([...afresh.logits()]);
    });
    expect(cached.length).toBe(10);
  });

  test('a fourteenth position and an unknown token are refused', () => {
    const sequence = new Sequence(loadModel(join(MODELS, 'base')).model);
    for (const token of [-1, 14, 0.5]) expect(() => sequence.push(token)).toThrow(/no token/);
    for (let i = 0; i < 13; i++) sequence.push(1);
    expect(() => sequence.push(1)).toThrow(/all 13 positions/);
  });

  test('tokenizer', () => {
    const tokenizer = new CharTokenizer({ a: 1, b: 0 });
    expect(tokenizer.encode('ab')).toEqual({ ids: [1, 0] });
    expect(tokenizer.encode('aéb')).toEqual({ unknown: 'é' });
    expect(tokenizer.encode('😀')).toEqual({ unknown: '😀' });
    expect(tokenizer.character(0)).toBe('b');
    expect(() => tokenizer.character(2)).toThrow();
    expect(() => new CharTokenizer({ a: 0, b: 0 })).toThrow(/taken twice/);
  });
});

const completionSchema = z.looseObject({
  model: z.string(),
  object: z.string(),
  choices: z
    .array(
      z.looseObject({
        index: z.literal(0),
        text: z.string().optional(),
        message: z.strictObject({ role: z.literal('assistant'), content: z.string() }).optional(),
        finish_reason: z.enum(['stop', 'length']),
      }),
    )
    .length(1),
  usage: z.strictObject({ prompt_tokens: z.int(), completion_tokens: z.int(), total_tokens: z.int() }),
});
const errorSchema = z.strictObject({
  error: z.strictObject({ message: z.string(), type: z.string(), code: z.string().nullable() }),
});

interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
  readonly reused: boolean;
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 });
afterAll(() => agent.destroy());

function call(port: number, method: string, path: string, body?: string | Uint8Array): Promise<Reply> {
  return new Promise((done, failed) => {
    const sent = httpRequest({ agent, host: '127.0.0.1', port, method, path }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', failed);
      response.on('end', () => {
        const bytes = Buffer.concat(chunks);
        if (Number(response.headers['content-length']) !== bytes.length && method !== 'HEAD') {
          failed(new Error('content-length is not the length'));
          return;
        }
        done({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: bytes.length === 0 ? undefined : JSON.parse(bytes.toString('utf8')),
          reused: sent.reusedSocket,
        });
      });
    });
    sent.on('error', failed);
    sent.end(body);
  });
}

describe('server', () => {
  const NAME = 'adder';
  const ROOT_DIR = 'models/B-42';
  let loaded: Loaded;
  let running: ModelServer;
  let port: number;

  beforeAll(async () => {
    loaded = loadModel(join(MODELS, 'B-42'));
    running = createModelServer({ name: NAME, root: ROOT_DIR, loaded });
    await new Promise<void>((done) => running.server.listen(0, '127.0.0.1', done));
    port = (running.server.address() as AddressInfo).port;
  });
  afterAll(() => {
    running.server.closeAllConnections();
    running.server.close();
  });

  async function ok(path: string, body: object) {
    const reply = await call(port, 'POST', path, JSON.stringify(body));
    expect(reply.status, JSON.stringify(reply.body)).toBe(200);
    const parsed = completionSchema.parse(reply.body);
    const choice = parsed.choices[0];
    return {
      ...parsed,
      text: choice?.message?.content ?? choice?.text ?? '',
      finish: choice?.finish_reason,
    };
  }
  const chat = (prompt: string, fields: object = {}) =>
    ok('/v1/chat/completions', { messages: [{ role: 'user', content: prompt }], ...fields });
  const plain = (prompt: string, fields: object = {}) => ok('/v1/completions', { prompt, ...fields });
  async function refused(fields: object, path = '/v1/completions') {
    const reply = await call(port, 'POST', path, JSON.stringify({ prompt: '123+456=', ...fields }));
    return { status: reply.status, ...errorSchema.parse(reply.body).error };
  }

  /** Draws of the first token over the seeds 0, 1, … n - 1. */
  async function firstTokens(prompt: string, fields: object, n: number): Promise<Map<string, number>> {
    const counts = new Map<string, number>();
    for (let seed = 0; seed < n; seed++) {
      const { text } = await plain(prompt, { seed, max_tokens: 1, ...fields });
      counts.set(text, (counts.get(text) ?? 0) + 1);
    }
    return counts;
  }

  /** Probability of the answer and end under a temperature, by the plain formula. */
  function atTemperature(prompt: string, answer: string, temperature: number): number {
    const sequence = new Sequence(loaded.model);
    for (const token of encode(loaded, prompt)) sequence.push(token);
    let product = 1;
    for (const token of encode(loaded, `${answer}\n`)) {
      const powers = [...sequence.logits()].map((logit) => Math.exp(logit / temperature));
      product *= (powers[token] ?? 0) / powers.reduce((sum, p) => sum + p, 0);
      sequence.push(token);
    }
    return product;
  }

  /** The task whose right answer has the probability nearest to `p`. */
  function taskNear(p: number) {
    const expected = expectedOf('B-42');
    const distance = (id: string) => Math.abs((expected.tasks[id] ?? Number.NaN) - p);
    const task = tasks.toSorted((a, b) => distance(a.instance_id) - distance(b.instance_id))[0];
    if (task === undefined) throw new Error('no tasks');
    return { ...task, p: expected.tasks[task.instance_id] ?? Number.NaN };
  }

  /** A prompt whose first answer token is in doubt, with its plain distribution. */
  function doubtful() {
    const prompts = tasks.map(({ prompt }) => {
      const sequence = new Sequence(loaded.model);
      for (const token of encode(loaded, prompt)) sequence.push(token);
      return { prompt, logits: Float64Array.from(sequence.logits()) };
    });
    const second = (logits: Float64Array) => distribution(logits, PLAIN).toSorted().at(-2) ?? 0;
    const chosen = prompts.toSorted((a, b) => second(b.logits) - second(a.logits))[0];
    if (chosen === undefined) throw new Error('no tasks');
    return chosen;
  }

  test('health, version, models', async () => {
    expect(await call(port, 'GET', '/health')).toMatchObject({ status: 200 });
    expect(await call(port, 'GET', '/version')).toMatchObject({ status: 200, body: { version: '0.1.0' } });
    const models = await call(port, 'GET', '/v1/models?x=1');
    expect(models.body).toMatchObject({
      object: 'list',
      data: [{ id: NAME, object: 'model', root: ROOT_DIR, max_model_len: 13 }],
    });
  });

  test('the connection is kept', async () => {
    await call(port, 'GET', '/health');
    for (const [method, path] of [
      ['GET', '/health'],
      ['GET', '/nowhere'],
      ['POST', '/health'],
      ['POST', '/v1/completions'],
      ['GET', '/health'],
    ] as const) {
      expect((await call(port, method, path, method === 'POST' ? '{' : undefined)).reused).toBe(true);
    }
  });

  test('both endpoints: shape, usage, no end token in the text', async () => {
    const { prompt, answer } = taskNear(1);
    const a = await chat(prompt, { model: NAME, temperature: 0 });
    expect(a).toMatchObject({ object: 'chat.completion', model: NAME, text: answer, finish: 'stop' });
    const b = await plain(prompt, { model: NAME, temperature: 0 });
    expect(b).toMatchObject({ object: 'text_completion', model: NAME, text: answer, finish: 'stop' });
    const drawn = answer.length + 1;
    for (const { usage } of [a, b]) {
      expect(usage).toEqual({ prompt_tokens: 8, completion_tokens: drawn, total_tokens: 8 + drawn });
    }
  });

  test('messages: the last user message, its text parts joined', async () => {
    const { prompt, answer } = taskNear(1);
    const content = [
      { type: 'text', text: prompt.slice(0, 3) },
      { type: 'text', text: prompt.slice(3) },
    ];
    const messages = [
      { role: 'system', content: 'You add numbers.' },
      { role: 'user', content: '001+001=' },
      { role: 'assistant', content: '2' },
      { role: 'user', content },
    ];
    expect((await ok('/v1/chat/completions', { messages, temperature: 0 })).text).toBe(answer);
  });

  test('model: only the served name', async () => {
    expect(await refused({ model: 'other' })).toMatchObject({ status: 404, code: 'model_not_found' });
  });

  test('unknown fields are accepted', async () => {
    const { prompt, answer } = taskNear(1);
    const fields = { temperature: 0, chat_template_kwargs: { enable_thinking: false }, user: 'u' };
    expect((await chat(prompt, fields)).text).toBe(answer);
  });

  test('seed: equal seeds, equal text on both endpoints; without one the texts vary', async () => {
    const { prompt } = taskNear(0.5);
    const texts = new Set<string>();
    for (let seed = -5; seed < 25; seed++) {
      const first = await chat(prompt, { seed });
      expect((await chat(prompt, { seed })).text).toBe(first.text);
      expect((await plain(prompt, { seed })).text).toBe(first.text);
      texts.add(first.text);
    }
    expect(texts.size).toBeGreaterThan(1);
    const free = new Set<string>();
    for (let i = 0; i < 60; i++) free.add((await chat(prompt)).text);
    expect(free.size).toBeGreaterThan(1);
  });

  test.each([0.2, 0.5, 0.8])(
    'temperature 1: frequency of the right answer, probability near %d',
    async (near) => {
      const { prompt, answer, p } = taskNear(near);
      const n = 600;
      let right = 0;
      for (let seed = 0; seed < n; seed++) if ((await chat(prompt, { seed })).text === answer) right++;
      expect(Math.abs(right / n - p)).toBeLessThan(band(p, n));
    },
  );

  test.each([0.5, 2])('temperature %d: frequency of the right answer', async (temperature) => {
    const { prompt, answer, p } = taskNear(0.6);
    expect(atTemperature(prompt, answer, 1)).toBeCloseTo(p, 4);
    const q = atTemperature(prompt, answer, temperature);
    const n = 600;
    expect(Math.abs(p - q)).toBeGreaterThan(band(q, n));
    let right = 0;
    for (let seed = 0; seed < n; seed++) {
      if ((await chat(prompt, { seed, temperature })).text === answer) right++;
    }
    expect(Math.abs(right / n - q)).toBeLessThan(band(q, n));
  });

  test('the mean over tasks and seeds is the true accuracy', async () => {
    const expected = expectedOf('B-42');
    const seeds = 20;
    let right = 0;
    let variance = 0;
    for (const { instance_id, prompt, answer } of ids('demo40').map(taskOf)) {
      const p = expected.tasks[instance_id] ?? Number.NaN;
      for (let k = 0; k < seeds; k++) {
        // Not the same seeds for every task: equal seeds take equal numbers, and their answers would go together.
        const seed = Number(instance_id.slice(4)) * 1000 + k;
        if ((await chat(prompt, { seed })).text === answer) right++;
        variance += p * (1 - p);
      }
    }
    const n = 40 * seeds;
    expect(Math.abs(right / n - expected.mean.demo40)).toBeLessThan((4 * Math.sqrt(variance)) / n);
  });

  test('temperature 0, top_k 1, min_p 1 and a tiny top_p answer alike, whatever the seed', async () => {
    for (const { prompt } of tasks.slice(0, 25)) {
      const { text } = await chat(prompt, { temperature: 0 });
      for (const fields of [{ temperature: 0 }, { top_k: 1 }, { min_p: 1 }, { top_p: 1e-9 }]) {
        for (const seed of [1, 2]) expect((await chat(prompt, { ...fields, seed })).text).toBe(text);
      }
    }
  });

  test.each([
    { top_k: 2 },
    { top_p: 0.5 },
    { top_p: 0.9 },
    { min_p: 0.3 },
    { top_k: 3, top_p: 0.8, min_p: 0.1 },
  ])('%o: frequencies of the first token', async (fields) => {
    const { prompt, logits } = doubtful();
    const { top_k: topK = 0, top_p: topP = 1, min_p: minP = 0 } = { ...fields } as Record<string, number>;
    const p = distribution(logits, { temperature: 1, topK, topP, minP });
    const n = 400;
    const counts = await firstTokens(prompt, fields, n);
    for (const [token, probability] of p.entries()) {
      const share = (counts.get(loaded.tokenizer.character(token)) ?? 0) / n;
      expect(Math.abs(share - probability)).toBeLessThanOrEqual(band(probability, n));
    }
  });

  test('top_k -1 and 0 and top_p 1 and min_p 0 are off', async () => {
    const { prompt } = doubtful();
    for (let seed = 0; seed < 30; seed++) {
      const { text } = await chat(prompt, { seed });
      for (const off of [
        { top_k: -1 },
        { top_k: 0 },
        { top_p: 1, min_p: 0 },
        { temperature: 1 },
        { stop: null },
      ]) {
        expect((await chat(prompt, { seed, ...off })).text).toBe(text);
      }
    }
  });

  test('max_tokens and max_completion_tokens cut; the end token counts', async () => {
    const { prompt, answer } = taskNear(1);
    const greedy = { temperature: 0 };
    for (let limit = 1; limit <= 5; limit++) {
      const whole = limit > answer.length;
      for (const field of ['max_tokens', 'max_completion_tokens']) {
        const cut = await chat(prompt, { ...greedy, [field]: limit });
        expect(cut.text).toBe(answer.slice(0, limit));
        expect(cut.finish).toBe(whole ? 'stop' : 'length');
        expect(cut.usage.completion_tokens).toBe(Math.min(limit, answer.length + 1));
      }
    }
    const both = await chat(prompt, { ...greedy, max_tokens: 3, max_completion_tokens: 2 });
    expect(both.text).toBe(answer.slice(0, 2));
  });

  test('without a limit the text ends at the last position', async () => {
    const reply = await chat('12', { seed: 1, temperature: 5 });
    expect(reply.usage.total_tokens).toBeLessThanOrEqual(13);
    const cut = Array.from({ length: 40 }, (_, seed) => seed).map((seed) =>
      complete(loaded, {
        prompt: encode(loaded, '12'),
        sampling: { ...PLAIN, temperature: 5 },
        maxTokens: 11,
        stop: [],
        uniform: seeded(seed),
      }),
    );
    expect(cut.some((c) => c.finish === 'length' && c.tokens === 11)).toBe(true);
  });

  test('stop: the text ends before it', async () => {
    const { prompt, answer } = taskNear(1);
    const greedy = { temperature: 0 };
    const last = answer.slice(-1);
    const before = answer.slice(0, answer.indexOf(last));
    for (const stop of [last, [last], ['x', 'y', 'z', last]]) {
      const reply = await chat(prompt, { ...greedy, stop });
      expect(reply).toMatchObject({ text: before, finish: 'stop' });
      expect(reply.usage.completion_tokens).toBe(before.length + 1);
    }
    const pair = answer.slice(1, 3);
    expect((await chat(prompt, { ...greedy, stop: pair })).text).toBe(answer.slice(0, answer.indexOf(pair)));
    expect(await chat(prompt, { ...greedy, stop: ['x'] })).toMatchObject({ text: answer, finish: 'stop' });
    expect(await chat(prompt, { ...greedy, stop: [] })).toMatchObject({ text: answer, finish: 'stop' });
  });

  test.each<[string, object, string | null]>([
    ['n 2', { n: 2 }, 'unsupported_value'],
    ['logprobs', { logprobs: true }, 'unsupported_value'],
    ['a penalty', { repetition_penalty: 1.1 }, 'unsupported_value'],
    ['a negative temperature', { temperature: -1 }, 'invalid_value'],
    ['temperature text', { temperature: '1' }, 'invalid_value'],
    ['top_p 0', { top_p: 0 }, 'invalid_value'],
    ['top_p above 1', { top_p: 1.1 }, 'invalid_value'],
    ['top_k -2', { top_k: -2 }, 'invalid_value'],
    ['top_k 1.5', { top_k: 1.5 }, 'invalid_value'],
    ['min_p above 1', { min_p: 2 }, 'invalid_value'],
    ['max_tokens 0', { max_tokens: 0 }, 'invalid_value'],
    ['five stops', { stop: ['a', 'b', 'c', 'd', 'e'] }, 'invalid_value'],
    ['an empty stop', { stop: '' }, 'invalid_value'],
    ['a seed that JSON rounds', { seed: 2 ** 53 }, 'invalid_value'],
    ['a fractional seed', { seed: 0.5 }, 'invalid_value'],
    ['a prompt that is no text', { prompt: 5 }, 'invalid_value'],
    ['an empty prompt', { prompt: '' }, 'invalid_prompt'],
    ['a letter in the prompt', { prompt: '12a+456=' }, 'invalid_prompt'],
    ['a prompt of 13 tokens', { prompt: '1234567890123' }, 'context_length_exceeded'],
    ['an answer beyond the end', { max_tokens: 6 }, 'context_length_exceeded'],
  ])('%s is refused with 400', async (_what, fields, code) => {
    expect(await refused(fields)).toMatchObject({ status: 400, type: 'invalid_request_error', code });
  });

  test('values that ask for nothing are accepted', async () => {
    const { prompt, answer } = taskNear(1);
    const fields = { n: 1, stream: false, logprobs: false, frequency_penalty: 0, seed: null, top_p: null };
    expect((await chat(prompt, { ...fields, temperature: 0 })).text).toBe(answer);
  });

  test.each(['chat', 'completions'] as const)(
    '%s: a stream says the same, with its cost in the last chunk',
    async (endpoint) => {
      const { prompt, answer } = taskNear(1);
      const path = endpoint === 'chat' ? '/v1/chat/completions' : '/v1/completions';
      const asked = endpoint === 'chat' ? { messages: [{ role: 'user', content: prompt }] } : { prompt };
      const fields = { temperature: 0, stream: true, stream_options: { include_usage: true } };
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method: 'POST',
        body: JSON.stringify({ ...asked, ...fields }),
      });
      const body = Buffer.from(await response.arrayBuffer());
      const [{ model = '' } = {}] = [...body.toString().matchAll(/^data: (\{.*)$/gm)].map(
        ([, chunk]) => JSON.parse(chunk ?? '') as { model?: string },
      );
      const question = { endpoint, model, stream: true, loopStop: null, settings: {} };
      expect(readResponse(body, question).answer).toEqual({
        ok: true,
        text: answer,
        finishReason: 'stop',
        usage: { prompt_tokens: prompt.length, completion_tokens: answer.length + 1 },
      });
      expect(body.toString()).toMatch(/data: \[DONE\]\n\n$/);
    },
  );

  test('messages that hold no prompt are refused with 400', async () => {
    for (const messages of [
      [],
      'x',
      [{ role: 'system', content: '1' }],
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }],
    ]) {
      expect((await refused({ messages }, '/v1/chat/completions')).status).toBe(400);
    }
  });

  test('malformed bodies, paths, methods', async () => {
    for (const body of ['', '{', '[]', 'null', '5', Buffer.from([0x22, 0xff, 0x22])]) {
      expect((await call(port, 'POST', '/v1/completions', body)).status).toBe(400);
    }
    expect((await call(port, 'GET', '/v1/nothing')).status).toBe(404);
    expect((await call(port, 'POST', '/', '{}')).status).toBe(404);
    const wrong = await call(port, 'GET', '/v1/completions');
    expect(wrong).toMatchObject({ status: 405, headers: { allow: 'POST' } });
    expect(errorSchema.parse(wrong.body).error.code).toBe('method_not_allowed');
    expect(await call(port, 'DELETE', '/health')).toMatchObject({ status: 405, headers: { allow: 'GET' } });
  });

  test('a body of one MiB is read, one byte more is refused with 413', async () => {
    const { prompt } = taskNear(1);
    const padded = (size: number) => JSON.stringify({ prompt }).padEnd(size);
    expect((await call(port, 'POST', '/v1/completions', padded(MAX_BODY))).status).toBe(200);
    for (const size of [MAX_BODY + 1, 8 * MAX_BODY]) {
      const reply = await call(port, 'POST', '/v1/completions', padded(size));
      expect(reply.status).toBe(413);
      expect(errorSchema.parse(reply.body).error.code).toBe('body_too_large');
    }
    expect((await call(port, 'GET', '/health')).status).toBe(200);
  });

  test('requests at the same time get what they get one by one', async () => {
    const { prompt } = taskNear(0.5);
    const seeds = Array.from({ length: 20 }, (_, seed) => seed);
    const post = async (seed: number) => {
      const response = await fetch(`http://127.0.0.1:${port}/v1/completions`, {
        method: 'POST',
        body: JSON.stringify({ prompt, seed }),
      });
      return completionSchema.parse(await response.json()).choices[0]?.text;
    };
    const together = await Promise.all(seeds.map(post));
    for (const seed of seeds) expect((await plain(prompt, { seed })).text).toBe(together[seed]);
  });
});

describe('command', () => {
  let scratch: string;
  let main: string;
  const children: ChildProcess[] = [];

  beforeAll(() => {
    // Below node_modules, so that the compiled server finds its packages.
    scratch = mkdtempSync(join(ROOT, 'node_modules', '.server-test-'));
    mkdirSync(join(scratch, 'out'));
    writeFileSync(join(scratch, 'package.json'), '{"type":"module"}');
    writeFileSync(
      join(scratch, 'tsconfig.json'),
      JSON.stringify({
        extends: '../../demo/tsconfig.json',
        compilerOptions: { rootDir: '../../demo', outDir: 'out', typeRoots: ['../@types'] },
        files: ['../../demo/server/main.ts'],
        include: [],
      }),
    );
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    execFileSync(process.execPath, [tsc, '-p', scratch], { stdio: 'pipe' });
    main = join(scratch, 'out/server/main.js');
  }, 120_000);
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL');
    rmSync(scratch, { recursive: true, force: true });
  });

  function start(...args: string[]) {
    const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    children.push(child);
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk) => {
      stdout += String(chunk);
    });
    child.stderr.on('data', (chunk) => {
      stderr += String(chunk);
    });
    const exit = new Promise<{ code: number | null; stderr: string }>((done) => {
      child.on('close', (code) => done({ code, stderr }));
    });
    const listening = new Promise<number>((done, failed) => {
      child.stdout.on('data', () => {
        const found = /http:\/\/127\.0\.0\.1:(\d+)\n/.exec(stdout);
        if (found !== null) done(Number(found[1]));
      });
      exit.then(({ code }) => failed(new Error(`ended with ${code}: ${stderr}`))).catch(failed);
    });
    // A command that is meant to fail never listens.
    listening.catch(() => undefined);
    return { child, exit, listening };
  }
  const model = join(MODELS, 'base');
  const body = JSON.stringify({ prompt: '123+456=', seed: 1 });

  test('serves under its name, ends with 0 on SIGTERM and SIGINT though a connection is open', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const { child, exit, listening } = start('--model', model, '--port', '0', '--served-model-name', 'x');
      const port = await listening;
      expect((await call(port, 'GET', '/v1/models')).body).toMatchObject({
        data: [{ id: 'x', root: model }],
      });
      child.kill(signal);
      expect(await exit).toEqual({ code: 0, stderr: '' });
    }
  });

  test('the name is the directory by default', async () => {
    const { listening } = start('--model', model, '--host', '127.0.0.1', '--port', '0');
    const port = await listening;
    expect((await call(port, 'GET', '/v1/models')).body).toMatchObject({ data: [{ id: model }] });
  });

  test('a port that is taken: a line on stderr, status 1', async () => {
    const port = await start('--model', model, '--port', '0').listening;
    const { code, stderr } = await start('--model', model, '--port', String(port)).exit;
    expect(code).toBe(1);
    expect(stderr).toBe(`can't listen on 127.0.0.1:${port}: EADDRINUSE\n`);
  });

  test('a bad directory: one line on stderr, status 2', async () => {
    const { code, stderr } = await start('--model', scratch, '--port', '0').exit;
    expect(code).toBe(2);
    expect(stderr).toMatch(/^[^\n]*config\.json: [^\n]*\n$/);
  });

  test.each([
    [['--port', '0'], /--model is missing/],
    [['--model', 'x'], /--port is missing/],
    [['--model', 'x', '--port', '70000'], /isn't a port/],
    [['--model', 'x', '--port', '0x10'], /isn't a port/],
    [['--model', 'x', '--port', '0', '--verbose'], /--verbose/],
  ])('bad arguments %j: status 2 and the usage', async (args, message) => {
    const { code, stderr } = await start(...args).exit;
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/\nusage: /);
    expect(stderr).not.toMatch(/ at /);
  });

  async function afterSignal(...flags: string[]): Promise<unknown[]> {
    const { child, listening } = start('--model', model, '--port', '0', ...flags);
    const port = await listening;
    const before = await call(port, 'POST', '/v1/completions', body);
    expect(before.status).toBe(200);
    child.kill('SIGUSR2');
    // The signal has no answer to wait for.
    await new Promise((done) => setTimeout(done, 300));
    const replies: unknown[] = [];
    for (let i = 0; i < 6; i++) {
      expect((await call(port, 'GET', '/health')).status).toBe(200);
      const reply = await call(port, 'POST', '/v1/completions', body);
      expect(reply.status).toBe(200);
      replies.push(reply.body);
    }
    expect(child.exitCode).toBeNull();
    return replies;
  }
  const drill = { error: { message: 'drill: no completion', type: 'server_error' } };

  test('SIGUSR2 with --allow-drills: four answers without a completion', async () => {
    const replies = await afterSignal('--allow-drills');
    expect(replies.slice(0, 4)).toEqual([drill, drill, drill, drill]);
    for (const reply of replies.slice(4)) expect(completionSchema.safeParse(reply).success).toBe(true);
  });

  test('SIGUSR2 without the flag: nothing', async () => {
    for (const reply of await afterSignal()) expect(completionSchema.safeParse(reply).success).toBe(true);
  });
});
