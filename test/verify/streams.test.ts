import { expect, test } from 'vitest';
import { digestOf } from '../../src/core/digest.js';
import type { Question } from '../../src/runner/adapters/openai-answer.js';
import { readResponse, StreamReader } from '../../src/runner/adapters/openai-stream.js';
import { randomNumbers } from '../support/random-numbers.js';
import { bytes, call, hasPython, NO_PYTHON } from './python.js';

/** Streams of all sorts, whole and broken: what they come to must depend on neither the pieces nor the reader. */
const { below, pick } = randomNumbers(4);
const ROUNDS = 600;

const LOOP_STOP = { unit: 'words', length: 1, repeats: 3, window: 6 } as const;

function randomQuestion(): Question {
  return {
    endpoint: pick(['chat', 'completions']),
    model: 'M',
    stream: true,
    settings: { temperature: 0.7, seed: 5, top_k: 40 },
    loopStop: pick([null, LOOP_STOP, { ...LOOP_STOP, unit: 'characters' }]),
  };
}

const texts = ['7', ' so', ' it', ' is', ' so so', '', '😀', '\n', '\ud83d', 'ä'];
const odd = [null, 0, 'x', {}, [], true, -1, 1.5];

function randomChunk({ endpoint }: Question): unknown {
  const text = pick(texts);
  const delta = { [pick(['content', 'content', 'content', 'reasoning_content', 'reasoning'])]: text };
  const choice: Record<string, unknown> = {
    index: 0,
    ...(endpoint === 'chat' ? { delta } : { text }),
    finish_reason: below(14) === 0 ? pick(['stop', 'length', 'abort', 'tool_calls', 'loop_stop']) : null,
  };
  const chunk: Record<string, unknown> = { model: 'M', choices: [choice] };
  if (below(10) === 0)
    chunk.usage = { prompt_tokens: pick([3, null, -1]), completion_tokens: pick([2, null]) };
  if (below(30) === 0) Object.assign(chunk, { choices: pick([[], null, [choice, choice], 'x']) });
  if (below(20) === 0) {
    const generation_settings = {
      temperature: pick([0.7, 0.699999988079071, 0.8, 1e300, null]),
      seed: pick([5, 5, 6]),
      top_k: pick([40, 40, '40', -1]),
      other: 1,
    };
    chunk[pick(['generation_settings', '__verbose'])] = pick([{ generation_settings }, generation_settings]);
  }
  if (below(40) === 0) chunk.model = pick(odd);
  if (below(40) === 0) choice[pick(['index', 'delta', 'text', 'finish_reason'])] = pick(odd);
  if (below(60) === 0) chunk.error = pick([{ code: 503, type: 'Busy' }, 'no', null]);
  return chunk;
}

function randomStream(question: Question): Buffer {
  const end = pick(['\n', '\n', '\r\n']);
  let text = pick(['', '', '\ufeff', ': ping\n\n']);
  for (let i = below(12); i > 0; i--) {
    const json = JSON.stringify(randomChunk(question));
    const lines = below(15) === 0 ? [json.slice(0, 1), json.slice(1)] : [json];
    if (below(15) === 0)
      text += pick(['event: x\n', ': c\n', 'data\n\n', 'data:\n\n', 'id:7\n', '\r\n', '\r']);
    text += lines.map((line) => `data:${pick([' ', ''])}${line}${end}`).join('') + end;
  }
  const finish = { model: 'M', choices: [{ index: 0, delta: {}, text: '', finish_reason: 'stop' }] };
  if (below(3) > 0) text += `data: ${JSON.stringify(finish)}${end}${end}`;
  if (below(2) > 0) text += `data: [DONE]${end}${end}`;
  const whole = Buffer.from(text);
  const broken = below(8) === 0 ? Buffer.concat([whole, Buffer.of(0xc3, 0x28, 0x0a, 0x0a)]) : whole;
  return below(4) === 0 ? broken.subarray(0, below(broken.length + 1)) : broken;
}

function summary(body: Buffer, question: Question) {
  const { answer, firstToken, stoppedAt } = readResponse(body, question);
  return answer.ok
    ? {
        cause: null,
        candidate: digestOf(answer.text),
        finish: answer.finishReason,
        usage: answer.usage,
        firstToken,
        stoppedAt,
      }
    : { cause: answer.cause, error: [answer.embeddedStatus, answer.exception], firstToken, stoppedAt };
}

const CASES = Array.from({ length: ROUNDS }, () => {
  const question = randomQuestion();
  const body = randomStream(question);
  return { question, body, summary: summary(body, question) };
});

test('every sort of end is among them', () => {
  const ends = new Set(
    CASES.map(({ summary: { cause, stoppedAt } }) => cause ?? (stoppedAt === null ? 'answer' : 'stopped')),
  );
  expect([...ends].sort()).toEqual([
    'answer',
    'body_error',
    'body_malformed',
    'body_not_json',
    'model_differs',
    'settings_differ',
    'stopped',
    'stream_cut',
  ]);
});

test('a stream comes to the same in whatever pieces it comes', () => {
  for (const { question, body } of CASES) {
    const reader = new StreamReader(question);
    let fired = false;
    for (let at = 0; at < body.length && !fired; ) {
      const size = 1 + below(pick([3, 40, 4000]));
      fired = reader.feed(body.subarray(at, at + size));
      at += size;
    }
    expect(reader.end(body), body.toString('latin1')).toEqual(readResponse(body, question));
  }
});

test.skipIf(!hasPython)(`a stream comes to the same for the second verifier (${NO_PYTHON})`, () => {
  const answers = call(
    CASES.map(({ question, body }) => [
      'read_stream',
      [bytes(body), question.endpoint, question.model, question.loopStop, question.settings],
    ]),
  );
  for (const [i, { body, summary: expected }] of CASES.entries()) {
    expect(answers[i]?.value, body.toString('latin1')).toEqual(expected);
  }
});
