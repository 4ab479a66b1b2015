import { describe, expect, test } from 'vitest';
import {
  type CanaryReading,
  canaryRequests,
  compareCanaries,
  readCanary,
} from '../../src/runner/canary-reading.js';
import { descriptionChanges, modelsIn, versionIn } from '../../src/runner/self-description.js';

const SETTING = { prompts: ['one', 'two'], max_tokens: 3, logprobs: 2, logprob_tolerance: 0.5 };

const body = (choice: object, rest: object = {}) =>
  Buffer.from(JSON.stringify({ model: 'M@42', choices: [choice], ...rest }));
const content = (...items: object[]) => ({ logprobs: { content: items } });

describe('the requests of a canary', () => {
  test('are greedy and name every field, for either endpoint', () => {
    const common = {
      model: 'M@42',
      temperature: 0,
      top_p: 1,
      top_k: -1,
      min_p: 0,
      max_tokens: 3,
      seed: 0,
      n: 1,
    };
    expect(canaryRequests('completions', SETTING, 'M@42')).toEqual([
      { ...common, prompt: 'one', logprobs: 2, stream: false, return_token_ids: true },
      { ...common, prompt: 'two', logprobs: 2, stream: false, return_token_ids: true },
    ]);
    expect(canaryRequests('chat', SETTING, 'M@42')[0]).toEqual({
      ...common,
      messages: [{ role: 'user', content: 'one' }],
      logprobs: true,
      top_logprobs: 2,
      stream: false,
      return_token_ids: true,
    });
  });
});

describe('an answer to a canary', () => {
  test.each([
    [
      'vLLM, completions: numbers beside lists',
      body({
        logprobs: { tokens: ['a', 'b'], token_logprobs: [-1, null] },
        token_ids: [5, 6],
        prompt_token_ids: [1, 2],
      }),
      { form: 'ids', tokens: [5, 6], logprobs: [-1, null], prompt_ids: [1, 2] },
    ],
    [
      'vLLM, chat: the numbers of the prompt stand beside the choices',
      body({ ...content({ token: 'a', logprob: -1 }), token_ids: [5] }, { prompt_token_ids: [1] }),
      { form: 'ids', tokens: [5], logprobs: [-1], prompt_ids: [1] },
    ],
    [
      'llama.cpp: each token has its number',
      body(content({ id: 5, token: 'a', bytes: [97], logprob: -1 })),
      { form: 'ids', tokens: [5], logprobs: [-1], prompt_ids: null },
    ],
    [
      'SGLang and others: bytes, which tell apart what looks alike',
      body(content({ token: '\ufffd', bytes: [0xe2, 0x82], logprob: -1 })),
      { form: 'bytes', tokens: ['e282'], logprobs: [-1], prompt_ids: null },
    ],
    [
      'texts, when one token has no bytes',
      body(content({ token: 'a', bytes: [97], logprob: -1 }, { token: '</s>', bytes: null })),
      { form: 'text', tokens: ['a', '</s>'], logprobs: [-1, null], prompt_ids: null },
    ],
    ['no token at all', body(content()), { form: 'ids', tokens: [], logprobs: [], prompt_ids: null }],
  ])('%s', (_, bytes, reading) => {
    expect(readCanary(bytes, 'M@42')).toEqual(reading);
  });

  test.each([
    ['no JSON', Buffer.from('<html>'), 'the answer is no JSON object'],
    ['a lone surrogate', Buffer.from('{"model":"\\ud800"}'), 'the answer is no JSON object'],
    ['an error', body(content(), { error: { message: 'busy' } }), 'the answer is an error'],
    ['another model', Buffer.from('{"model":"X"}'), 'the answer is from "X"'],
    ['no choice', Buffer.from('{"model":"M@42","choices":[]}'), 'the answer has not one choice'],
    ['no log-probabilities', body({ logprobs: null }), 'the answer has no log-probabilities of its tokens'],
    [
      'fewer log-probabilities than tokens',
      body({ logprobs: { tokens: ['a', 'b'], token_logprobs: [-1] } }),
      'the answer has no log-probabilities of its tokens',
    ],
    [
      'a token that is no text',
      body(content({ token: 5, logprob: -1 })),
      'the answer has no log-probabilities of its tokens',
    ],
  ])('%s is none', (_, bytes, reason) => {
    expect(readCanary(bytes, 'M@42')).toBe(reason);
  });
});

describe('two canaries', () => {
  const one: CanaryReading = { form: 'ids', tokens: [5, 6], logprobs: [-1, -2], prompt_ids: [1] };
  test.each([
    ['the same', one, { verdict: 'same', largest: 0 }],
    ['at the tolerance', { ...one, logprobs: [-1.5, -2] }, { verdict: 'same', largest: 0.5 }],
    ['beyond it', { ...one, logprobs: [-1, -2.75] }, { verdict: 'differs', largest: 0.75 }],
    ['another token', { ...one, tokens: [5, 7] }, { verdict: 'differs', largest: 0 }],
    [
      'tokens in another form',
      { ...one, form: 'text', tokens: ['5', '6'] },
      { verdict: 'differs', largest: 0 },
    ],
    [
      'a prompt cut otherwise: the template changed',
      { ...one, prompt_ids: [1, 1] },
      { verdict: 'differs', largest: 0 },
    ],
    ['shorter', { ...one, logprobs: [-1] }, { verdict: 'differs', largest: 0 }],
    ['a value that is missing', { ...one, logprobs: [-1, null] }, { verdict: 'differs', largest: 0 }],
  ] as const)('%s', (_, other, verdict) => {
    expect(compareCanaries([one], [other as CanaryReading], 0.5)).toEqual(verdict);
  });

  test('of another number of answers differ', () => {
    expect(compareCanaries([one, one], [one], 9)).toEqual({ verdict: 'differs', largest: 0 });
    expect(compareCanaries([], [], 0)).toEqual({ verdict: 'same', largest: null });
  });
});

describe('two descriptions', () => {
  const said = (value: object) => Buffer.from(JSON.stringify(value));
  const changes = (before: object, after: object, at: 'start' | 'end' = 'end') =>
    descriptionChanges(said(before), said(after), at).changed;

  test('differ where a stable member does, by pointer in sorted order', () => {
    const before = { '/v1/models': { data: [{ id: 'M', created: 1, max_model_len: 9 }] }, '/version': null };
    const after = {
      '/v1/models': { data: [{ id: 'N', created: 2, parent: 'M' }] },
      '/version': { version: '1' },
    };
    expect(changes(before, after)).toEqual([
      '/~1v1~1models/data/0/id',
      '/~1v1~1models/data/0/max_model_len',
      '/~1v1~1models/data/0/parent',
      '/~1version',
    ]);
    expect(changes({ '/props': { a: [1, 2] } }, { '/props': { a: [1] } })).toEqual(['/~1props/a']);
  });

  test('do not differ by clocks, states of slots, or paths that one was not asked for', () => {
    const slot = (id: number) => ({
      default_generation_settings: { id, prompt: `${id}`, next_token: [id], params: {} },
    });
    expect(changes({ '/props': slot(1) }, { '/props': slot(2), '/server_info': {} })).toEqual([]);
    expect(
      changes({ '/server_info': { uptime: 1, internal_states: [1] } }, { '/server_info': { uptime: 2 } }),
    ).toEqual([]);
  });

  test('of two starts do not differ by ports and places; within one start they do', () => {
    const [one, two] = [
      { '/server_info': { port: 1, model_path: '/a' } },
      { '/server_info': { port: 2, model_path: '/b' } },
    ];
    expect(changes(one, two, 'start')).toEqual([]);
    expect(changes(one, two, 'end')).toEqual(['/~1server_info/model_path', '/~1server_info/port']);
  });

  test('list fifty places, count all, and cut long pointers', () => {
    const many = Object.fromEntries(Array.from({ length: 70 }, (_, i) => [`${'k'.repeat(200)}${i}`, i]));
    const { changed, total } = descriptionChanges(said({ '/props': many }), said({ '/props': {} }), 'end');
    expect([changed.length, total, Math.max(...changed.map((each) => each.length))]).toEqual([50, 70, 150]);
  });

  test('tell models and version', () => {
    expect(modelsIn(said({ '/v1/models': { data: [{ id: 'M@42' }, { id: 'lora' }] } }))).toEqual([
      'M@42',
      'lora',
    ]);
    expect(modelsIn(said({ '/v1/models': null }))).toBeNull();
    expect(versionIn(said({ '/version': null, '/props': { build_info: 'b6000-abc' } }))).toBe('b6000-abc');
    expect(versionIn(Buffer.from('no JSON'))).toBeNull();
  });
});
