import { describe, expect, it } from 'vitest';
import { call, hasPython, NO_PYTHON } from './python.js';

/** Patterns of the common part of docs/formats/attempts.md. */
const PATTERNS = [
  'context.{0,20}length',
  '^out of memory$',
  '\\bs\\w+k\\b',
  '\\B7',
  '[^a-f\\d]{2,3}?x',
  '(?:a|b(c|d)*)+e',
  '\\.\\*\\/ \\[\\]',
  'a{3}|b{2,}|c{1,2}$',
  '[\\w-]+@[\\]x]',
  '\\S\\s\\D',
  '(a*)*b',
  '',
  'x|',
  '[]',
  '[^]',
  '[k]',
  's',
  '\\W',
  '^.$',
  '題.?',
];

/** Patterns beyond it, which stay unchecked. */
const BEYOND = [
  '(?=a)',
  '(?<n>a)',
  '(a)\\1',
  '\\p{L}',
  '\\u0041',
  '\\n',
  'é',
  '[à-ü]',
  '(?<!a)b',
  '\\x41',
  '[\\b]',
];

const SUBJECTS = [
  'This model has a maximum CONTEXT and length',
  'Out Of Memory',
  'out of memory\n',
  'a desk, a \u017fac\u212a',
  '17 x7',
  'zz x  ~x',
  'bcdcde abe AE',
  './*/ [] .*/ []',
  'aaa bb cc',
  'me-too@]',
  'a\u00a0b c\ufeffd \u2028',
  '',
  '\n',
  '\u{1F600}',
  '\u017f',
  '\u212a',
  '\u0130\u0131',
  '題\r',
];

describe.skipIf(!hasPython)(`second verifier: patterns of rules (${NO_PYTHON})`, () => {
  it('finds what the regular expressions of this engine find', () => {
    const answers = call(PATTERNS.map((pattern) => ['find_pattern', [pattern, SUBJECTS]] as const));
    const expected = PATTERNS.map((pattern) =>
      SUBJECTS.map((subject) => new RegExp(pattern, 'iu').test(subject)),
    );
    expect(answers.map((answer) => answer.value)).toEqual(expected);
  });

  it('says where a pattern is beyond the common part', () => {
    const answers = call(BEYOND.map((pattern) => ['find_pattern', [pattern, SUBJECTS]] as const));
    expect(answers.map((answer) => answer.value)).toEqual(BEYOND.map(() => null));
  });

  it('takes no time that grows out of hand', () => {
    const subject = 'a'.repeat(5000);
    const answers = call([['find_pattern', ['(a*)*(a|aa)+$b', [subject]]]]);
    expect(answers[0]?.value).toEqual([false]);
  });
});
