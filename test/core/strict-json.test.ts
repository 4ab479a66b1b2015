import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseStrictJson } from '../../src/core/strict-json.js';

const parse = (text: string | Uint8Array) => parseStrictJson(Buffer.from(text as string), 'x.json');

describe('strict JSON', () => {
  test('reads what JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        // Integers beyond 2^53 and the key __proto__ are refused by rule; anything else must come back.
        if (text.includes('__proto__') || /\d{16}/.test(text) || /e\+/.test(text)) return;
        expect(parse(text)).toEqual(JSON.parse(text));
      }),
      { seed: 1, numRuns: 2000 },
    );
  });

  test.each([
    ['a key twice', '{"a":1,"a":2}', /"a" occurs twice/],
    ['a key twice by escape', '{"a":1,"\\u0061":2}', /"a" occurs twice/],
    ['a key twice inside a list', '[{"b":{"c":1,"c":1}}]', /"c" occurs twice/],
    ['__proto__', '{"__proto__":{"x":1}}', /__proto__/],
    ['an inexact integer (F-01)', '{"seed":9007199254740993}', /9007199254740993 cannot be held/],
    ['a number out of range', '[1e400]', /out of range/],
    ['a byte-order mark (F-13)', '\ufeff{}', /byte-order mark/],
    ['NaN', '{"reward":NaN}', /not JSON/],
    ['a trailing comma', '[1,]', /not JSON/],
    ['a comment', '{} // x', /not JSON/],
    ['HTML', '<html>', /not JSON/],
    ['nothing', '', /not JSON/],
    ['a cut', '{"a":', /not JSON/],
    ['depth', '['.repeat(300) + ']'.repeat(300), /200 levels/],
  ])('refuses %s', (_name, text, message) => {
    expect(() => parse(text)).toThrow(message);
  });

  test('refuses bytes that are not UTF-8 with their offset', () => {
    expect(() => parse(Buffer.from([0x22, 0xc3, 0x28, 0x22]))).toThrow(
      expect.objectContaining({ code: 'TEXT_NOT_UTF8', evidence: { offset: 2 } }),
    );
  });

  test('keeps equal keys of different objects apart', () => {
    expect(parse('[{"a":1},{"a":[{"a":2}]}]')).toEqual([{ a: 1 }, { a: [{ a: 2 }] }]);
  });

  test.each([
    ['a key inside a text', '{"a":"\\"a\\":1","b":2}'],
    ['the largest exact integers', '[9007199254740991,-9007199254740991]'],
    ['fractions and exponents', '[1.5,2e-5,1E+5]'],
  ])('accepts %s', (_name, text) => {
    expect(parse(text)).toEqual(JSON.parse(text));
  });

  test('any text is read as JSON.parse reads it, or refused with a typed error', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}[]",:01-.eE\\u a') }), (text) => {
        try {
          expect(parse(text)).toEqual(JSON.parse(text));
        } catch (error) {
          expect(error).toMatchObject({ code: 'JSON_INVALID' });
        }
      }),
      { seed: 2, numRuns: 5000 },
    );
  });
});
