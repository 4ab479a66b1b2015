import { expect, test } from 'vitest';
import { BoundbookError } from '../../src/core/errors.js';
import { readProtocol } from '../../src/protocol/read.js';
import { PROTOCOL } from '../support/small-book.js';

function faults(rule: string, stream: string): readonly string[] {
  const text = PROTOCOL.replace('answer: answer }', `answer: answer }\n    loop_stop: ${rule}`).replace(
    'endpoint: chat',
    `endpoint: chat${stream}`,
  );
  try {
    readProtocol(Buffer.from(text), 'small.yaml');
    return [];
  } catch (error) {
    if (!(error instanceof BoundbookError)) throw error;
    return (error.faults ?? []).map(({ where, message }) => `${where} ${message}`);
  }
}

const STREAM = '\n  stream: true';

test.each([
  ['{ unit: words, length: 8, repeats: 6, window: 512 }', STREAM, []],
  // The least window that can hold them, overlapping
  ['{ unit: characters, length: 8, repeats: 6, window: 13 }', STREAM, []],
  [
    '{ unit: characters, length: 8, repeats: 6, window: 12 }',
    STREAM,
    [/loop_stop\/window a window of 12 units never holds 6 sequences of 8/],
  ],
  [
    '{ unit: words, length: 8, repeats: 6, window: 512 }',
    '',
    [/loop_stop a stop rule is declared for answers that are not streamed/],
  ],
  ['{ unit: words, length: 8, repeats: 1, window: 512 }', STREAM, [/repeats/]],
  ['{ unit: lines, length: 8, repeats: 6, window: 512 }', STREAM, [/unit/]],
  ['{ unit: words, length: 8, repeats: 6 }', STREAM, [/window/]],
] as const)('%s%s', (rule, stream, expected) => {
  const found = faults(rule, stream);
  expect(found).toHaveLength(expected.length);
  for (const [i, pattern] of expected.entries()) expect(found[i]).toMatch(pattern);
});
