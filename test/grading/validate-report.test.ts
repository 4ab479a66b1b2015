import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/core/digest.js';
import { BoundbookError } from '../../src/core/errors.js';
import { compileReportSchema } from '../../src/grading/report-schema.js';
import { faultText, type ReportExpectations, validateReport } from '../../src/grading/validate-report.js';

const candidate = digestOf('patch');
const expected: ReportExpectations = {
  task: 'django-7530',
  candidate,
  tests: ['a', 'b'],
  reward: { min: 0, max: 1 },
  schema: null,
};

function report(change: Record<string, unknown>): string {
  const value = { task: 'django-7530', candidate, tests: { a: 'pass', b: 'pass' }, reward: 1, ...change };
  return JSON.stringify(value);
}

function kinds(text: string | Uint8Array, expectations = expected): readonly string[] {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  const verdict = validateReport(bytes, expectations);
  return verdict.ok ? ['ok', String(verdict.value)] : verdict.faults.map((fault) => fault.kind);
}

describe('validateReport', () => {
  it.each([
    ['all pass', report({}), ['ok', '1']],
    ['one fails', report({ tests: { a: 'pass', b: 'fail' }, reward: 0 }), ['ok', '0']],
    ['partial credit', report({ tests: { a: 'pass', b: 'fail' }, reward: 0.5 }), ['ok', '0.5']],
    [
      'minus zero',
      report({ tests: { a: 'error', b: 'timeout' }, reward: 0 }).replace(':0}', ':-0}'),
      ['ok', '0'],
    ],
    ['further keys', report({ log: 'x' }), ['ok', '1']],
    ['other task', report({ task: 'django-7531' }), ['other_task']],
    ['other candidate', report({ candidate: digestOf('other') }), ['other_candidate']],
    ['test missing', report({ tests: { a: 'pass' } }), ['other_tests', 'reward_disagrees']],
    ['test surplus', report({ tests: { a: 'pass', b: 'pass', c: 'pass' } }), ['other_tests']],
    ['no tests', report({ tests: undefined }), ['other_tests', 'reward_disagrees']],
    ['tests a list', report({ tests: ['a', 'b'] }), ['form']],
    ['unknown result', report({ tests: { a: 'pass', b: 'passed' } }), ['form']],
    ['all pass, reward 0', report({ reward: 0 }), ['reward_disagrees']],
    ['all pass, reward below', report({ reward: 0.99 }), ['reward_disagrees']],
    ['one fails, reward 1', report({ tests: { a: 'pass', b: 'skip' } }), ['reward_disagrees']],
    [
      'none passes, reward above',
      report({ tests: { a: 'fail', b: 'fail' }, reward: 0.1 }),
      ['reward_disagrees'],
    ],
    ['reward missing', report({ reward: undefined }), ['form']],
    ['reward null', report({ reward: null }), ['form']],
    ['reward as text', report({ reward: '1' }), ['form']],
    ['reward true', report({ reward: true }), ['form']],
    // F-81: 10 is not 1, 1e-1 is a tenth, nothing is clipped.
    ['reward 10', report({ reward: 10 }), ['reward_out_of_range']],
    ['reward -0.5', report({ reward: -0.5 }), ['reward_out_of_range']],
    ['reward 1e-1', report({}).replace('"reward":1', '"reward":1e-1'), ['reward_disagrees']],
    ['reward 1.0abc', report({}).replace('"reward":1', '"reward":1.0abc'), ['not_json']],
    ['reward 1,0', report({}).replace('"reward":1', '"reward":1,0'), ['not_json']],
    ['reward NaN', report({}).replace('"reward":1', '"reward":NaN'), ['not_json']],
    ['reward 1e999', report({}).replace('"reward":1', '"reward":1e999'), ['not_json']],
    // F-85
    ['key twice', report({}).replace('"reward":1', '"reward":1,"reward":0'), ['not_json']],
    ['test twice', report({}).replace('"a":"pass"', '"a":"pass","a":"fail"'), ['not_json']],
    ['byte-order mark', `\ufeff${report({})}`, ['not_json']],
    ['empty', '', ['not_json']],
    ['cut short', report({}).slice(0, -3), ['not_json']],
    ['a list', '[]', ['form']],
    ['null', 'null', ['form']],
    ['html', '<html>502</html>', ['not_json']],
  ] as const)('%s', (_name, text, outcome) => {
    expect(kinds(text)).toEqual(outcome);
  });

  it('takes bytes that are not UTF-8 as a fault, not an exception', () => {
    expect(kinds(Uint8Array.from([0x7b, 0xff, 0x7d]))).toEqual(['not_json']);
  });

  it('knows a test called __proto__ or constructor only when it is listed', () => {
    const names = { ...expected, tests: ['constructor'] };
    expect(kinds(report({ tests: {} }), names)).toEqual(['other_tests', 'reward_disagrees']);
    expect(kinds(report({ tests: { constructor: 'pass' } }), names)).toEqual(['ok', '1']);
  });

  it('leaves the reward to the grader where no tests are expected', () => {
    const free = { ...expected, tests: null, reward: { min: -1, max: 2 } };
    expect(kinds(report({ tests: {}, reward: 1.25 }), free)).toEqual(['ok', '1.25']);
    expect(kinds(report({ tests: {}, reward: 2.25 }), free)).toEqual(['reward_out_of_range']);
  });

  it('keeps its complaints short', () => {
    const tests = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`t${i}`, 'x'.repeat(500)]));
    const verdict = validateReport(Buffer.from(report({ tests })), expected);
    expect(verdict.ok).toBe(false);
    if (!verdict.ok) expect(faultText(verdict.faults).length).toBeLessThan(4_000);
  });

  it('never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string({ unit: 'binary' })), (text) => {
        expect(validateReport(Buffer.from(text), expected).ok).toBe(false);
      }),
    );
  });
});

describe('report schema', () => {
  const compile = (schema: unknown) =>
    compileReportSchema(Buffer.from(JSON.stringify(schema)), 'report.json');

  it('adds its own demands', () => {
    const schema = compile({ type: 'object', required: ['runner'], properties: { runner: { const: 'r1' } } });
    expect(kinds(report({}), { ...expected, schema })).toEqual(['schema']);
    expect(kinds(report({ runner: 'r1' }), { ...expected, schema })).toEqual(['ok', '1']);
    expect(kinds(report({}), { ...expected, schema: compile(false) })).toEqual(['schema']);
  });

  it.each([
    ['an unknown keyword', { type: 'object', requird: ['x'] }],
    ['an unknown format', { type: 'string', format: 'no-such-format' }],
    ['another draft', { $schema: 'http://json-schema.org/draft-07/schema#' }],
    ['a foreign reference', { $ref: 'https://example.org/other.json' }],
    ['an asynchronous schema', { $async: true, type: 'object' }],
    ['a wrong type', { type: 'objekt' }],
    ['a list', []],
    ['null', null],
  ])('refuses %s', (_name, schema) => {
    expect(() => compile(schema)).toThrow(BoundbookError);
    expect(() => compile(schema)).toThrow(expect.objectContaining({ code: 'PROTOCOL_INVALID' }));
  });
});
