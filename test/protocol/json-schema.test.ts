import { Ajv2020 } from 'ajv/dist/2020.js';
import { load } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { knownKeys, knownWords, protocolJsonSchema } from '../../src/protocol/json-schema.js';
import { spoil, VALID } from './support.js';

// The formats are strings that the schema also holds as patterns.
const ajv = new Ajv2020({ strict: true, strictTypes: false, formats: { date: true } });
const validate = ajv.compile(protocolJsonSchema());

describe('the published JSON Schema', () => {
  test('accepts a valid protocol, by an independent validator', () => {
    expect(validate(load(VALID))).toBe(true);
  });

  test.each([
    [['revision: 1', 'revision: one']],
    [['blinding: masked', 'blinding: open']],
    [['  replacements: 1\n', '']],
    [['replacements: 1', 'replacements: 1\n  extra: 1']],
    [['kind: exact', 'kind: fuzzy']],
  ] as const)('refuses a protocol with %o', (edit) => {
    expect(validate(load(spoil(edit)))).toBe(false);
  });

  test('names 2020-12', () => {
    expect(protocolJsonSchema().$schema).toBe('https://json-schema.org/draft/2020-12/schema');
  });
});

describe('known keys and words', () => {
  test('of one form where the value says which', () => {
    expect(knownKeys(['runner'], { adapter: 'command' })).toContain('generate');
    expect(knownKeys(['runner'], { adapter: 'command' })).not.toContain('service');
    expect(knownKeys(['task_sets', 'x'], {})).toEqual([
      'file',
      'id',
      'count',
      'subset_of',
      'ids',
      'union_of',
    ]);
  });

  test('are found through maps, lists and unions', () => {
    expect(knownWords(['conditions', 'any', 'reasoning'])).toEqual(['on', 'off']);
    expect(knownWords(['attempts', 'rules', 3, 'when', 'stage', 0])).toEqual(['generate', 'grade']);
    expect(knownWords(['constructor'])).toEqual([]);
  });
});
