import fc from 'fast-check';
import {
  boolYaml11Tag,
  floatYaml11Tag,
  intYaml11Tag,
  load,
  mergeTag,
  NOT_RESOLVED,
  nullYaml11Tag,
  timestampTag,
} from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { plainDecimal, readPlain, yaml11Reading } from '../../src/protocol/yaml-scalar.js';

/** Plain scalars made of the characters that types are made of. */
const scalars = fc
  .oneof(
    fc.string({
      unit: fc.constantFrom(...'0123456789+-._:eExXoObBnNaAiIfFtTzZ'),
      minLength: 1,
      maxLength: 8,
    }),
    fc.constantFrom(
      'y',
      'Yes',
      'NO',
      'on',
      'Off',
      '~',
      'null',
      'Null',
      'True',
      'FALSE',
      '.inf',
      '-.INF',
      '.NaN',
      '<<',
    ),
    fc.constantFrom(
      '2026-09-27',
      '2026-9-7 1:02:03',
      '2026-09-27T01:02:03Z',
      '1:30',
      '190:20:30',
      '0b11',
      '0x1F',
      '010',
    ),
  )
  .filter((text) => !/^[-?:](?:\s|$)|^[-.]{3}$|: |:$|^-+$/.test(text));

describe('plain scalars', () => {
  test('are read as js-yaml reads them by the core schema', () => {
    fc.assert(
      fc.property(scalars, (text) => {
        const value = load(`- ${text}\n`) as readonly unknown[];
        const reading = readPlain(text);
        if (reading.kind === 'number' && reading.fault !== null) return;
        const own = reading.kind === 'string' ? text : reading.kind === 'null' ? null : reading.value;
        expect(own).toEqual(value[0]);
      }),
      { seed: 1, numRuns: 5000 },
    );
  });

  test('that any tag of YAML 1.1 takes for another type are known as such', () => {
    const tags = [boolYaml11Tag, floatYaml11Tag, intYaml11Tag, nullYaml11Tag, timestampTag, mergeTag];
    fc.assert(
      fc.property(scalars, (text) => {
        const resolved = tags.some((tag) => tag.resolve(text, false, tag.tagName) !== NOT_RESOLVED);
        if (resolved) expect(yaml11Reading(text), text).not.toBeNull();
      }),
      { seed: 2, numRuns: 5000 },
    );
  });

  test('that are numbers without fault are numbers of the same value to YAML 1.1', () => {
    fc.assert(
      fc.property(scalars, (text) => {
        const reading = readPlain(text);
        if (reading.kind !== 'number' || reading.fault !== null) return;
        const values = [intYaml11Tag, floatYaml11Tag].map((tag) => tag.resolve(text, false, tag.tagName));
        expect(values).toContain(reading.value);
      }),
      { seed: 3, numRuns: 5000 },
    );
  });

  test.each([
    'v1.2.3',
    '1.2.3',
    'gpt-4',
    'a:b',
    'holdout100x16',
    '5xx',
    'nope',
    'yes-man',
    '-',
    'O',
    'B',
    'M',
    'e5',
    '12h',
    '2026-09',
  ])('%s is text to everybody', (text) => {
    expect(readPlain(text).kind).toBe('string');
    expect(yaml11Reading(text)).toBeNull();
  });
});

describe('the shortest decimal form', () => {
  test('has no exponent and reads back as the number', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const text = plainDecimal(value);
        expect(text).toMatch(/^-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?$/);
        expect(Number(text)).toBe(value === 0 ? 0 : value);
      }),
      { seed: 4, numRuns: 3000 },
    );
  });

  test.each([
    [1e21, '1000000000000000000000'],
    [1.5e-7, '0.00000015'],
    [5e-324, `0.${'0'.repeat(323)}5`],
    [-2.5, '-2.5'],
    [-0, '0'],
    [123456.789, '123456.789'],
  ])('%d', (value, text) => {
    expect(plainDecimal(value)).toBe(text);
  });

  test('is accepted for every number that JSON can hold exactly', () => {
    fc.assert(
      fc.property(fc.double({ min: -(2 ** 53) + 1, max: 2 ** 53 - 1, noNaN: true }), (value) => {
        expect(readPlain(plainDecimal(value))).toEqual({
          kind: 'number',
          value: value === 0 ? 0 : value,
          fault: null,
        });
      }),
      { seed: 5, numRuns: 2000 },
    );
  });
});
