import { existsSync, readdirSync, readFileSync } from 'node:fs';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalBytes, canonicalText } from '../../src/core/canonical-json.js';
import { digestOf, digestOfJson, hexOf, isDigest } from '../../src/core/digest.js';
import type { BoundbookError } from '../../src/core/errors.js';

const JCS = new URL('../../../shared/vectors/jcs/', import.meta.url);

/** Vectors of cyberphone/json-canonicalization, the RFC author's. */
describe.skipIf(!existsSync(JCS))('RFC 8785 vectors (skipped: ../shared is not there)', () => {
  const names = existsSync(JCS) ? readdirSync(new URL('input/', JCS)) : [];
  test.each(names)('%s', (name) => {
    const input: unknown = JSON.parse(readFileSync(new URL(`input/${name}`, JCS), 'utf8'));
    expect(canonicalBytes(input)).toEqual(readFileSync(new URL(`output/${name}`, JCS)));
  });
});

describe('canonical JSON', () => {
  test('agrees with an independent implementation on any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        expect(canonicalText(value)).toBe(canonicalize(value));
      }),
      { seed: 1, numRuns: 2000 },
    );
  });

  test('does not depend on the order of insertion, and reads back', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (record) => {
        const turned = Object.fromEntries(Object.entries(record).reverse());
        expect(canonicalText(turned)).toBe(canonicalText(record));
        expect(canonicalText(JSON.parse(canonicalText(record)))).toBe(canonicalText(record));
      }),
      { seed: 2, numRuns: 500 },
    );
  });

  test.each([
    [
      'keys by UTF-16 units, not code points (F-25)',
      { '\ufffd': 1, '\u{1f600}': 2 },
      '{"\u{1f600}":2,"\ufffd":1}',
    ],
    ['minus zero', -0, '0'],
    ['1.0', 1.0, '1'],
    ['1e21', 1e21, '1e+21'],
    ['the least positive double', 5e-324, '5e-324'],
    ['U+2028 as it is', '\u2028', '"\u2028"'],
    ['short escapes', '\b\f\n\r\t"\\/\u001f\u007f', '"\\b\\f\\n\\r\\t\\"\\\\/\\u001f\u007f"'],
    ['integer-like keys as texts', { 10: 1, 9: 2, '01': 3 }, '{"01":3,"10":1,"9":2}'],
    ['an object without prototype', Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    ['an own key named like a prototype member', { constructor: 1 }, '{"constructor":1}'],
  ])('%s', (_name, value, text) => {
    expect(canonicalText(value)).toBe(text);
  });

  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  // biome-ignore lint/suspicious/noSparseArray: the hole is what is tested
  const sparse = [1, , 3];
  test.each([
    ['NaN', { a: [Number.NaN] }, '/a/0'],
    ['infinity', [Number.POSITIVE_INFINITY], '/0'],
    ['undefined', { a: undefined }, '/a'],
    ['a big integer', { a: 1n }, '/a'],
    ['a function', { a: () => 1 }, '/a'],
    ['a symbol', [Symbol('x')], '/0'],
    ['a lone surrogate', { 'a/b~c': '\ud800' }, '/a~1b~0c'],
    ['a lone surrogate in a key', { '\udc00': 1 }, '/\udc00'],
    ['a hole', sparse, '/1'],
    ['a Date (F-09)', { when: new Date(0) }, '/when'],
    ['a Map', { m: new Map() }, '/m'],
    ['a typed array', [new Uint8Array(2)], '/0'],
    ['a class instance', [new (class Thing {})()], '/0'],
    ['symbol keys', [{ [Symbol('x')]: 1 }], '/0'],
    ['a boxed text', [Object('x')], '/0'],
  ])('refuses %s with its pointer', (_name, value, pointer) => {
    try {
      canonicalText(value);
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({ code: 'VALUE_NOT_CANONICAL', exitCode: 2, evidence: { pointer } });
      expect((error as BoundbookError).hint).toBeDefined();
    }
  });

  test('refuses cycles and depth without overflowing the stack', () => {
    expect(() => canonicalText(cyclic)).toThrow(/200 levels/);
    const deep: unknown = JSON.parse('['.repeat(5000) + ']'.repeat(5000));
    expect(() => canonicalText(deep)).toThrow(/200 levels/);
  });
});

describe('digests', () => {
  // printf abc | sha256sum; printf '{"a":1}' | sha256sum
  test('are SHA-256 with a prefix', () => {
    expect(digestOf('abc')).toBe('sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(digestOf(Buffer.from('abc'))).toBe(digestOf('abc'));
    expect(digestOfJson({ a: 1 })).toBe(
      'sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862',
    );
    expect(hexOf(digestOf(''))).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  });

  test.each([
    ['sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad', true],
    ['sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD', false],
    ['ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad', false],
    ['sha256:ba78', false],
    [`sha256:${'0'.repeat(64)}\n`, false],
    [7, false],
  ])('have one form: %s', (value, valid) => {
    expect(isDigest(value)).toBe(valid);
  });
});
