import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/core/digest.js';
import { BoundbookError } from '../../src/core/errors.js';
import { gradeAnswer } from '../../src/grading/answer.js';
import { canonicalInteger } from '../../src/grading/integer.js';
import { expectedTests, rewardRange } from '../../src/grading/reference.js';
import { regradeAnswer } from '../../src/grading/regrade.js';
import { answerReport } from '../../src/grading/report.js';
import { validateReport } from '../../src/grading/validate-report.js';

const integer = { kind: 'integer', answer: 'sum' } as const;
const boxed = { kind: 'boxed', answer: 'sum', compare: 'integer' } as const;
const boxedText = { kind: 'boxed', answer: 'word', compare: 'exact' } as const;
const exact = { kind: 'exact', answer: 'word' } as const;

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return error instanceof BoundbookError ? error.code : 'untyped';
  }
  return 'none';
}

describe('boxed grader (B6)', () => {
  const cases: readonly (readonly [string, 0 | 1, string])[] = [
    ['so \\boxed{579}.', 1, 'correct'],
    ['\\boxed{ +0579 }', 1, 'correct'],
    ['\\boxed{1} and then \\boxed{579}', 1, 'correct'],
    ['\\boxed{579} and then \\boxed{1}', 0, 'wrong'],
    ['\\boxed{\\boxed{579}}', 1, 'correct'],
    // An incomplete final box is not accepted, whatever stands before it.
    ['\\boxed{579} and then \\boxed{57', 0, 'incomplete_box'],
    ['\\boxed{579', 0, 'incomplete_box'],
    ['\\boxed{{579}', 0, 'incomplete_box'],
    ['\\boxed{579\\}', 0, 'incomplete_box'],
    ['\\boxed{579\\', 0, 'incomplete_box'],
    ['\\boxed{579 apples}', 0, 'not_an_integer'],
    ['\\boxed{}', 0, 'empty'],
    ['\\boxed{ }', 0, 'empty'],
    ['579', 0, 'no_box'],
    ['\\boxed 579', 0, 'no_box'],
    [' ', 0, 'empty'],
  ];
  it.each(cases)('%j', (answer, value, outcome) => {
    expect(gradeAnswer(boxed, { sum: '579' }, answer)).toMatchObject({ value, outcome });
  });

  it.each([
    ['\\boxed{\\frac{1}{2}}', 1],
    ['\\boxed{ \\frac{1}{2} }', 1],
    ['\\boxed{\\frac{1}{3}}', 0],
  ] as const)('compares texts as they stand: %j', (answer, value) => {
    expect(gradeAnswer(boxedText, { word: '\\frac{1}{2}' }, answer).value).toBe(value);
  });

  it('reads on behind signs that are no braces', () => {
    expect(gradeAnswer(boxedText, { word: '\\{1\\}' }, 'x \\boxed{\\{1\\}} y')).toMatchObject({ value: 1 });
  });
});

describe('grading again (B6)', () => {
  const again = (
    text: string,
    finishReason: string | null,
    grader: Parameters<typeof gradeAnswer>[0] = boxed,
  ) =>
    regradeAnswer({ grader, task: 't', fields: { sum: '579' }, candidate: Buffer.from(text), finishReason });
  it.each([
    ['\\boxed{579}', 'stop', 1],
    ['\\boxed{579', 'stop', 0],
    // A limit cut it, but its box is whole.
    ['\\boxed{579} and', 'length', 1],
    ['\\boxed{580} and', 'length', 0],
    ['\\boxed{579} and \\boxed{5', 'length', null],
    ['I think', 'length', null],
    ['I think I think', 'loop_stop', null],
    ['\\boxed{579}', null, 1],
  ] as const)('%j, ended by %s', (text, finishReason, value) => {
    const result = again(text, finishReason);
    expect(result.kind === 'truncated' ? null : result.value).toBe(value);
  });

  it('takes no cut text for a whole one', () => {
    expect(again('57', 'length', integer)).toEqual({ kind: 'truncated' });
    expect(again('579', 'length', integer)).toEqual({ kind: 'truncated' });
    expect(again('579', 'stop', integer)).toMatchObject({ kind: 'graded', value: 1 });
  });
});

describe('integer grader', () => {
  // F-81 and F-157: the whole text or nothing.
  const cases: readonly (readonly [string, 0 | 1, string])[] = [
    ['579', 1, 'correct'],
    ['  579\r\n', 1, 'correct'],
    ['+579', 1, 'correct'],
    ['0579', 1, 'correct'],
    [`${'0'.repeat(100_000)}579`, 1, 'correct'],
    ['-579', 0, 'wrong'],
    ['580', 0, 'wrong'],
    ['', 0, 'empty'],
    [' \t\n', 0, 'empty'],
    ['579.0', 0, 'not_an_integer'],
    ['5,79', 0, 'not_an_integer'],
    ['５７９', 0, 'not_an_integer'],
    ['0x243', 0, 'not_an_integer'],
    ['5.79e2', 0, 'not_an_integer'],
    ['579 apples', 0, 'not_an_integer'],
    ['5 79', 0, 'not_an_integer'],
    ['\u00a0579', 0, 'not_an_integer'],
    ['+-579', 0, 'not_an_integer'],
    ['+', 0, 'not_an_integer'],
    ['579\n579', 0, 'not_an_integer'],
    ['\ud800579', 0, 'not_an_integer'],
  ];
  it.each(cases)('%j', (answer, value, outcome) => {
    expect(gradeAnswer(integer, { sum: '579' }, answer)).toMatchObject({ value, outcome });
    expect(gradeAnswer(integer, { sum: 579 }, answer)).toMatchObject({ value, outcome });
  });

  it('agrees with BigInt on every decimal text', () => {
    const decimal = fc.stringMatching(/^[+-]?[0-9]{1,40}$/);
    fc.assert(
      fc.property(decimal, (text) => {
        const plain = text.startsWith('+') ? text.slice(1) : text;
        expect(canonicalInteger(text)).toBe(BigInt(plain).toString());
      }),
    );
  });

  it('never throws on any answer and credits only the value', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const grade = gradeAnswer(integer, { sum: '7' }, text);
        expect(grade.value).toBe(/^[ \t\n\v\f\r]*\+?0*7[ \t\n\v\f\r]*$/.test(text) ? 1 : 0);
      }),
    );
  });

  it('-0 is 0', () => {
    expect(gradeAnswer(integer, { sum: '-0' }, '0').value).toBe(1);
  });

  it('is fast on a long row of digits and spaces', () => {
    const started = performance.now();
    expect(gradeAnswer(integer, { sum: '1' }, '9'.repeat(20_000_000)).value).toBe(0);
    expect(gradeAnswer(integer, { sum: '1' }, `${' '.repeat(20_000_000)}x`).value).toBe(0);
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});

describe('exact grader', () => {
  it.each([
    ['yes', 1],
    [' yes\n', 1],
    ['Yes', 0],
    ['yes.', 0],
    ['', 0],
    ['ye\u0073', 1],
  ] as const)('%j', (answer, value) => {
    expect(gradeAnswer(exact, { word: 'yes' }, answer).value).toBe(value);
  });

  it('does not treat two normal forms as equal', () => {
    expect(gradeAnswer(exact, { word: '\u00e9' }, 'e\u0301').value).toBe(0);
  });
});

describe('references', () => {
  it.each([
    ['missing', integer, {}],
    ['null', integer, { sum: null }],
    ['empty', integer, { sum: '' }],
    ['a decimal', integer, { sum: '1.0' }],
    ['a fraction', integer, { sum: 1.5 }],
    ['a list', integer, { sum: [1] }],
    ['inherited only', { kind: 'integer', answer: 'toString' } as const, {}],
    ['blank text', exact, { word: ' ' }],
    ['a truth value', exact, { word: true }],
  ])('%s is a data error', (_name, grader, fields) => {
    for (const answer of ['', 'null', 'undefined', '1']) {
      expect(codeOf(() => gradeAnswer(grader, fields, answer))).toBe('TASKS_INVALID');
    }
  });

  it('reads expected tests strictly', () => {
    const grader = { kind: 'report', expected_tests: 'tests', reward: { min: 0, max: 1 } } as const;
    expect(expectedTests(grader, { tests: ['a', 'b'] })).toEqual(['a', 'b']);
    expect(expectedTests({ kind: 'report', reward: { min: 0, max: 2 } }, {})).toBeNull();
    for (const tests of [[], ['a', 'a'], [''], [1], 'a', null]) {
      expect(codeOf(() => expectedTests(grader, { tests }))).toBe('TASKS_INVALID');
    }
    expect(rewardRange(grader)).toEqual({ min: 0, max: 1 });
    expect(rewardRange(integer)).toEqual({ min: 0, max: 1 });
  });
});

describe('answerReport', () => {
  it('has the form of a grade command report and is canonical', () => {
    const candidate = digestOf('5 79\ud83d\ude00');
    const grade = gradeAnswer(exact, { word: 'x' }, `${'y'.repeat(199)}\ud83d\ude00`);
    const bytes = answerReport(exact, 't|1', candidate, grade);
    const verdict = validateReport(bytes, {
      task: 't|1',
      candidate,
      tests: ['answer'],
      reward: { min: 0, max: 1 },
      schema: null,
    });
    expect(verdict).toMatchObject({ ok: true, value: 0, report: { tests: { answer: 'fail' } } });
    expect(answerReport(integer, 't', candidate, gradeAnswer(integer, { sum: '12' }, '012')).toString()).toBe(
      `{"candidate":"${candidate}","extracted":"12","grader":{"answer":"sum","kind":"integer"},` +
        '"outcome":"correct","reward":1,"task":"t","tests":{"answer":"pass"}}',
    );
  });
});
