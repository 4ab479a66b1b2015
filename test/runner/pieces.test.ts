import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { failureSignals } from '../../src/attempts/signals.js';
import type { Condition } from '../../src/protocol/schema/conditions.js';
import { collectFile } from '../../src/runner/adapters/collect.js';
import { readAnswer } from '../../src/runner/adapters/openai-answer.js';
import { buildRequest } from '../../src/runner/adapters/openai-request.js';
import { fillArgv } from '../../src/runner/argv.js';
import { Breaker } from '../../src/runner/breaker.js';
import { fateOf, ownIdentity } from '../../src/runner/process-identity.js';
import { Progress } from '../../src/runner/progress.js';
import { parseFilters } from '../../src/slots/selector.js';
import { put, temporaryFolder } from './fixture.js';

describe('the breaker', () => {
  const failed = (
    breaker: Breaker,
    cause: 'http_status' | 'connection_lost',
    alive = true,
    service = 's#0',
  ) =>
    breaker.failed(
      failureSignals({ stage: 'generate', phase: 'body', cause, service_alive: alive }),
      'infrastructure',
      service,
    );

  test('opens at the declared count of equal failures in a row', () => {
    const breaker = new Breaker(3);
    expect([1, 2, 3].map(() => failed(breaker, 'http_status'))).toEqual([false, false, true]);
  });

  test('starts over after a success, another cause, or a failure that is not infrastructure', () => {
    const breaker = new Breaker(2);
    failed(breaker, 'http_status');
    breaker.succeeded();
    expect(failed(breaker, 'http_status')).toBe(false);
    expect(failed(breaker, 'connection_lost')).toBe(false);
    const signals = failureSignals({ stage: 'generate', phase: 'body', cause: 'connection_lost' });
    expect(breaker.failed(signals, 'undetermined', 's#0')).toBe(false);
    expect(failed(breaker, 'connection_lost')).toBe(false);
    expect(failed(breaker, 'connection_lost')).toBe(true);
  });

  test('counts all attempts that died with one service as one', () => {
    const breaker = new Breaker(2);
    expect([1, 2, 3, 4].map(() => failed(breaker, 'connection_lost', false))).toEqual(Array(4).fill(false));
    expect(failed(breaker, 'connection_lost', false, 's#1')).toBe(true);
  });
});

describe('the breaker, where a service is silent', () => {
  const silence = failureSignals({
    stage: 'generate',
    phase: 'headers',
    cause: 'time_limit',
    service_alive: true,
  });
  const streamed = { ...silence, phase: 'body', http_status: 200, first_token: false } as const;
  const ends = (breaker: Breaker, ...signals: readonly (typeof silence | null)[]) =>
    signals.map((one) => {
      if (one !== null) return breaker.failed(one, 'undetermined', 's#0');
      breaker.succeeded();
      return false;
    });

  test('opens at the declared count whatever the rules call it, and says so', () => {
    for (const attribution of ['undetermined', 'model', 'infrastructure'] as const) {
      const breaker = new Breaker(3);
      const open = [silence, streamed, silence].map((one) => breaker.failed(one, attribution, 's#0'));
      expect(open).toEqual([false, false, true]);
      if (attribution !== 'infrastructure')
        expect(breaker.describe()).toBe(
          '3 attempts in a row at s#0 reached their time limit or were turned away, and no answer came in between',
        );
    }
  });

  test('starts over after an answer, a token, a graded candidate, or with another service', () => {
    const token = { ...streamed, first_token: true };
    const malformed = { ...silence, phase: 'body', cause: 'body_malformed', http_status: 200 } as const;
    const grade = failureSignals({ stage: 'grade', phase: 'running', cause: 'exit_status' });
    for (const between of [null, token, malformed, grade])
      expect(ends(new Breaker(2), silence, between, silence, silence)).toEqual([false, false, false, true]);
    const breaker = new Breaker(2);
    expect(breaker.failed(silence, 'undetermined', 's#0')).toBe(false);
    expect(breaker.failed(silence, 'undetermined', 's#1')).toBe(false);
    expect(breaker.failed(silence, 'undetermined', 's#1')).toBe(true);
  });

  test('goes on counting past what a front end says by itself', () => {
    const refused = { ...silence, cause: 'http_status', http_status: 400 } as const;
    const error = { ...silence, phase: 'body', cause: 'body_error', http_status: 200 } as const;
    expect(ends(new Breaker(2), silence, refused, error, silence).at(-1)).toBe(true);
    const breaker = new Breaker(2);
    const server = { ...silence, cause: 'http_status', http_status: 500 } as const;
    const mixed = [server, silence, server].map((one) =>
      breaker.failed(one, one === server ? 'infrastructure' : 'undetermined', 's#0'),
    );
    expect(mixed).toEqual([false, false, true]);
  });

  test('opens when every question is turned away: an expired key, a wrong name', () => {
    for (const http_status of [401, 403, 404]) {
      const away = failureSignals({ stage: 'generate', phase: 'headers', cause: 'http_status', http_status });
      expect(ends(new Breaker(3), away, away, away)).toEqual([false, false, true]);
      expect(ends(new Breaker(2), away, null, away, away)).toEqual([false, false, false, true]);
    }
  });

  test('does not speak of time limits of programs', () => {
    const breaker = new Breaker(1);
    const limit = failureSignals({ stage: 'generate', phase: 'running', cause: 'time_limit' });
    expect(breaker.failed(limit, 'undetermined', null)).toBe(false);
  });
});

describe('an argv', () => {
  const sources = new Map([
    ['runner', '/verified/runner'],
    ['./bin/tool', '/verified/tool'],
  ]);

  test('has its placeholders filled in once, and bound sources replaced by their verified paths', () => {
    const values = { port: '80', weights: '/w/{port}', tokenizer: undefined };
    const argv = [
      'node',
      'runner/a.js',
      './runner',
      'runners/a.js',
      'bin/tool',
      '--port={port}',
      '{weights}',
      '{{x}}',
    ];
    expect(fillArgv(argv, values, sources)).toEqual([
      'node',
      '/verified/runner/a.js',
      '/verified/runner',
      'runners/a.js',
      '/verified/tool',
      '--port=80',
      '/w/{port}',
      '{x}',
    ]);
    const refused = expect.objectContaining({ code: 'PROTOCOL_INVALID' });
    expect(() => fillArgv(['{tokenizer}'], values, sources)).toThrowError(refused);
    expect(() => fillArgv(['{constructor}'], values, sources)).toThrowError(refused);
  });
});

describe('an answer', () => {
  const frame = { model: 'M', usage: { prompt_tokens: 1, completion_tokens: 2 } };
  const read = (choice: object, more: object = {}, endpoint: 'chat' | 'completions' = 'chat') =>
    readAnswer(Buffer.from(JSON.stringify({ ...frame, ...more, choices: [choice] })), endpoint, 'M');
  const message = (fields: object, finish_reason: string | null = 'stop') => ({
    message: fields,
    finish_reason,
  });

  test.each<[string, object, object]>([
    ['text', message({ content: 'x' }), { ok: true, text: 'x', finishReason: 'stop' }],
    ['an empty text, which is an answer', message({ content: '' }), { ok: true, text: '' }],
    [
      'null after reasoning: the model said nothing',
      message({ content: null, reasoning_content: 'hm' }),
      { ok: true, text: '' },
    ],
    [
      'null at the end of the budget',
      message({ content: null }, 'length'),
      { ok: true, text: '', finishReason: 'length' },
    ],
    ['null for no reason', message({ content: null }), { ok: false, cause: 'body_malformed' }],
    ['a number for text', message({ content: 7 }), { ok: false, cause: 'body_malformed' }],
    [
      'an end by error',
      message({ content: 'x' }, 'error'),
      { ok: false, cause: 'body_error', exception: 'error' },
    ],
    ['no finish reason beside a count', message({ content: 'x' }, null), { ok: true, finishReason: null }],
  ])('%s', (_what, choice, expected) => {
    expect(read(choice)).toMatchObject(expected);
  });

  test('of the completions endpoint has its text in the choice', () => {
    expect(read({ text: 'x', finish_reason: 'stop' }, {}, 'completions')).toMatchObject({
      ok: true,
      text: 'x',
    });
    expect(read(message({ content: 'x' }), {}, 'completions')).toMatchObject({ ok: false });
  });

  test.each<[string, number | null]>([
    ['{"error":{"code":429}}', 429],
    ['{"error":{"code":"503","message":"x"}}', 503],
    ['{"error":{"code":"rate_limit_exceeded","status":429}}', 429],
    ['{"error":"no"}', null],
    ['{"error":{"code":99999}}', null],
    ['{"object":"error","message":"x","code":500,"error":true}', 500],
  ])('that is an error: %s', (body, status) => {
    expect(readAnswer(Buffer.from(body), 'chat', 'M')).toMatchObject({
      ok: false,
      cause: 'body_error',
      embeddedStatus: status,
    });
  });

  test.each<[string, string]>([
    ['', 'body_not_json'],
    ['<html>', 'body_not_json'],
    ['NaN', 'body_not_json'],
    ['{"choices":[', 'body_malformed'],
    ['{"choices":[{"text":NaN}]}', 'body_malformed'],
    ['{"model":"M","model":"N","choices":[]}', 'body_malformed'],
    ['null', 'body_no_choice'],
    ['[]', 'body_malformed'],
    ['"text"', 'body_malformed'],
    ['{"model":"M"}', 'body_no_choice'],
    [`${'['.repeat(5000)}`, 'body_malformed'],
  ])('that is none: %s', (body, cause) => {
    expect(readAnswer(Buffer.from(body), 'chat', 'M')).toMatchObject({ ok: false, cause });
  });
});

test('a request states penalties, stops and the reasoning flag when they are declared, and nothing else', () => {
  const condition: Condition = {
    prompt: { system: 'Be {{brief}}.', user: '{q} {list}' },
    decoding: {
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      min_p: 0.05,
      max_tokens: 16,
      stop: ['\n'],
      presence_penalty: 0,
    },
    reasoning: 'off',
    grader: { kind: 'exact', answer: 'a' },
  };
  const fields = { q: 'What is {q}?', list: [1, 2] };
  const common = {
    model: 'M@42',
    temperature: 0.5,
    top_p: 0.9,
    top_k: 40,
    min_p: 0.05,
    max_tokens: 16,
    stop: ['\n'],
    presence_penalty: 0,
    seed: 5,
    n: 1,
    stream: false,
    chat_template_kwargs: { enable_thinking: false },
  };
  expect(JSON.parse(buildRequest('chat', condition, 'M@42', fields, 5).toString())).toEqual({
    ...common,
    messages: [
      { role: 'system', content: 'Be {brief}.' },
      { role: 'user', content: 'What is {q}? [1,2]' },
    ],
  });
  expect(JSON.parse(buildRequest('completions', condition, 'M@42', fields, 5).toString())).toEqual({
    ...common,
    prompt: 'Be {brief}.What is {q}? [1,2]',
  });
});

test('a file is collected only when no link leads to it', () => {
  const folder = temporaryFolder();
  put(folder, 'a/b.txt', 'x');
  put(folder, 'empty', '');
  symlinkSync(join(folder, 'a'), join(folder, 'link'));
  mkdirSync(join(folder, 'folder'));
  writeFileSync(join(folder, 'large'), Buffer.alloc(101));
  expect(collectFile(folder, 'a/b.txt', 100)).toMatchObject({ kind: 'file', bytes: Buffer.from('x') });
  expect(collectFile(folder, 'empty', 100)).toMatchObject({ kind: 'file', bytes: Buffer.alloc(0) });
  expect(collectFile(folder, 'link/b.txt', 100)).toMatchObject({ kind: 'refused' });
  expect(collectFile(folder, 'folder', 100)).toMatchObject({ kind: 'refused' });
  expect(collectFile(folder, 'a/c.txt', 100)).toEqual({ kind: 'absent' });
  expect(collectFile(folder, 'no/c.txt', 100)).toEqual({ kind: 'absent' });
  expect(collectFile(folder, 'large', 100)).toEqual({ kind: 'too_large', size: 101 });
});

test('a process is told from a later one of its number, and from one before a restart of the host', () => {
  const own = ownIdentity();
  expect(fateOf(own)).toBe('alive');
  expect(fateOf({ ...own, started: '1' })).toBe('pid_reused');
  expect(fateOf({ ...own, boot_id: 'another' })).toBe('boot_changed');
  expect(fateOf({ ...own, pid: 2 ** 22 })).toBe('process_gone');
});

test('filters: alternatives in a field, all fields together', () => {
  expect(parseFilters(['arm=O,M,queue=main', 'task=a=b'])).toEqual(
    new Map([
      ['arm', new Set(['O', 'M'])],
      ['queue', new Set(['main'])],
      ['task', new Set(['a=b'])],
    ]),
  );
});

test('elsewhere than on a terminal, progress is plain lines', async () => {
  const lines: string[] = [];
  const progress = new Progress({
    terminal: false,
    line: (text) => lines.push(text),
    done: () => 3,
    total: 9,
  });
  await progress.start();
  progress.line('service up');
  progress.stop();
  expect(lines).toEqual(['service up']);
});
