import fc from 'fast-check';
import { load } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { canonicalText } from '../../src/core/canonical-json.js';
import { digestOf } from '../../src/core/digest.js';
import { faults, positionOf, read, refusal, spoil, VALID } from './support.js';

describe('a valid protocol', () => {
  test('is read to its value, with raw digest, parser and places', () => {
    const document = read(VALID);
    expect(document.rawDigest).toBe(digestOf(VALID));
    expect(document.parser).toEqual({ name: 'js-yaml', version: '5.5.0' });
    expect(document.protocol.queues.main).toEqual({
      tasks: 'all',
      reps: 4,
      arms: ['O', 'base'],
      role: 'confirmatory',
    });
    expect(document.locate('/queues/main/reps')).toEqual(positionOf(VALID, '4, arms: [O, base]'));
    expect(document.locate('/nowhere')).toBeNull();
  });

  test('agrees with what js-yaml loads by its core schema', () => {
    expect(canonicalText(read(VALID).protocol)).toBe(canonicalText(load(VALID)));
  });

  test('has the same value as its JSON form, which is YAML too', () => {
    const json = JSON.stringify(load(VALID));
    expect(canonicalText(read(json).protocol)).toBe(canonicalText(read(VALID).protocol));
  });

  test('is frozen all through and has no prototype to fall through to (F-21)', () => {
    const { protocol } = read(VALID);
    const open: unknown[] = [protocol];
    for (let value = open.pop(); value !== undefined; value = open.pop()) {
      if (typeof value !== 'object' || value === null) continue;
      expect(Object.isFrozen(value)).toBe(true);
      if (!Array.isArray(value)) expect(Object.getPrototypeOf(value)).toBeNull();
      open.push(...Object.values(value));
    }
    expect(protocol.arms.constructor).toBeUndefined();
  });

  test('may use ids that are names of Object.prototype', () => {
    const text = VALID.replaceAll('base: { model', 'constructor: { model')
      .replaceAll('arms: [O, base]', 'arms: [O, constructor]')
      .replaceAll('subtrahend: base', 'subtrahend: constructor');
    expect(read(text).protocol.arms.constructor).toEqual({ model: 'base', condition: 'default' });
  });
});

/** name, edits, the piece at which the fault is reported, message, hint */
type Refused = readonly [string, readonly (readonly [string, string])[], string, RegExp, RegExp];

const REFUSED: readonly Refused[] = [
  [
    'equal keys',
    [['revision: 1', 'revision: 1\nrevision: 2']],
    'revision: 2',
    /"revision" occurs twice/,
    /Keep one/,
  ],
  ['an anchor', [['[42, 7]', '&seeds [42, 7]']], '[42, 7]', /anchor/, /Remove/],
  [
    'an alias',
    [
      ['[42, 7]', '&s [42, 7]'],
      ['base: { weights: models/base }', 'base: { training_seeds: *s, weights: "b-{seed}" }'],
    ],
    's, weights',
    /alias/,
    /Write the value out/,
  ],
  ['a tag', [['title: A', 'title: !!str A']], 'A small', /tag !!str/, /Remove/],
  ['a tag of one’s own', [['revision: 1', 'revision: !int 1']], '1\ntitle', /tag !int/, /Remove/],
  [
    'a merge key',
    [['  O: { model', '  <<: { base: { model: O, condition: default } }\n  O: { model']],
    '<<',
    /merge key/,
    /out/,
  ],
  ['a number as key', [['  half:', '  10:']], '10:', /the key 10 is a number/, /Quote it: "10"/],
  ['a boolean as key', [['  half:', '  true:']], 'true:', /the key true is a boolean/, /Quote/],
  ['null as key', [['  half:', '  ~:']], '~:', /the key ~ is a null/, /Quote/],
  ['an empty key', [['  half:', '  :']], ': { subset_of', /\(empty\)/, /Quote/],
  ['a list as key', [['  half:', '  ? [a]\n  :']], '[a]', /not a text/, /text/],
  ['__proto__ as key', [['  half:', '  __proto__:']], '__proto__', /__proto__/, /Rename/],
  [
    'two documents',
    [['pending: []\n', 'pending: []\n---\nsecond: 1\n']],
    'second: 1',
    /more than one document/,
    /one/,
  ],
  ['.nan', [['temperature: 0.7', 'temperature: .nan']], '.nan', /not a finite number/, /number/],
  ['.inf', [['temperature: 0.7', 'temperature: -.inf']], '-.inf', /not a finite number/, /number/],
  ['overflow', [['temperature: 0.7', 'temperature: 1e400']], '1e400', /not a finite number/, /number/],
  [
    'integer beyond 2^53 (F-01)',
    [['seed: 1,', 'seed: 9007199254740993,']],
    '9007199254740993',
    /exactly/,
    /Quote it/,
  ],
  [
    'integer below -2^53 (F-01)',
    [['[42, 7]', '[42, -9223372036854775808]']],
    '-92233',
    /exactly/,
    /Quote it/,
  ],
  [
    'exponent (F-03)',
    [['max_tokens: 16', 'max_tokens: 1e5']],
    '1e5',
    /shortest decimal form, 100000/,
    /Write 100000/,
  ],
  [
    'exponent with dot (F-03)',
    [['temperature: 0.7', 'temperature: 7e-1']],
    '7e-1',
    /form, 0\.7/,
    /Write 0\.7/,
  ],
  ['small exponent', [['temperature: 0.7', 'temperature: 2e-5']], '2e-5', /form, 0\.00002/, /quote/],
  ['hexadecimal', [['max_tokens: 16', 'max_tokens: 0x10']], '0x10', /form, 16/, /Write 16/],
  ['octal of YAML 1.2', [['max_tokens: 16', 'max_tokens: 0o17']], '0o17', /form, 15/, /Write 15/],
  ['octal of YAML 1.1', [['max_tokens: 16', 'max_tokens: 007']], '007', /form, 7/, /Write 7/],
  ['plus sign', [['max_tokens: 16', 'max_tokens: +1']], '+1', /form, 1/, /Write 1/],
  ['trailing zero', [['temperature: 0.7', 'temperature: 1.0']], '1.0,', /form, 1/, /Write 1/],
  ['trailing zeros', [['temperature: 0.7', 'temperature: 1.50']], '1.50', /form, 1\.5/, /Write/],
  ['no leading zero', [['temperature: 0.7', 'temperature: .5']], '.5', /form, 0\.5/, /Write/],
  ['trailing dot', [['temperature: 0.7', 'temperature: 1.']], '1.,', /form, 1/, /Write/],
  ['minus zero', [['min_p: 0', 'min_p: -0']], '-0', /form, 0/, /Write/],
  ['more digits than a double holds', [['0.7', '0.70000000000000001']], '0.70000', /form, 0\.7/, /Write/],
  ['underscores', [['max_tokens: 16', 'max_tokens: 1_000']], '1_000', /a number to YAML 1\.1/, /Quote/],
  ['binary', [['max_tokens: 16', 'max_tokens: 0b11']], '0b11', /a number to YAML 1\.1/, /Quote/],
  ['base 60', [['title: A small protocol', 'title: 1:30']], '1:30', /base 60/, /Quote it: "1:30"/],
  [
    'an unquoted date (F-09)',
    [['revision: 1', 'revision: 1\ndue: 2026-12-31']],
    '2026-12-31',
    /a date/,
    /Quote/,
  ],
  ['an id "no" (F-05)', [['  half:', '  no:']], 'no:', /false to YAML 1\.1/, /Quote it: "no"/],
  [
    'an id "on" in a list (F-05)',
    [['partitions: [half]', 'partitions: [on]']],
    'on]',
    /true to YAML 1\.1/,
    /Quote/,
  ],
  ['an id "y" (F-05)', [['namespace: small-study', 'namespace: y']], 'y,', /true to YAML 1\.1/, /Quote/],
  ['an id NULL (F-05)', [['namespace: small-study', 'namespace: NULL']], 'NULL', /expected a text/, /quote/i],
  [
    'an id True (F-05)',
    [['namespace: small-study', 'namespace: True']],
    'True',
    /expected a text, got the boolean/,
    /Quote/,
  ],
  ['an id .nan (F-05)', [['namespace: small-study', 'namespace: .nan']], '.nan', /not a finite/, /quote/],
  [
    'a number for a text (F-07)',
    [['namespace: small-study', 'namespace: 12']],
    '12',
    /expected a text, got the number/,
    /Quote it: "12"/,
  ],
  [
    'a revision like 0e12345 (F-07)',
    [['title: A small protocol', 'title: 0e12345']],
    '0e12345',
    /form, 0/,
    /quote/,
  ],
  [
    'a revision like 1234567e8 (F-07)',
    [['title: A small protocol', 'title: 1234567e8']],
    '1234567e8',
    /form, 123456700000000/,
    /quote/,
  ],
  [
    'a lone surrogate',
    [['title: A small protocol', 'title: "a\\ud800"']],
    '"a',
    /surrogate/,
    /character itself/,
  ],
  [
    'a surrogate pair as escapes',
    [['title: A small protocol', 'title: "\\ud83d\\ude00"']],
    '"\\ud83d',
    /surrogate/,
    /U0001F600/,
  ],
  ['a decomposed id (F-17)', [['  half:', '  cafe\u0301:']], 'cafe', /not in normal form NFC/, /composed/],
  [
    'a compatibility ideograph (F-17)',
    [['  half:', '  \ufa19:']],
    '\ufa19',
    /not in normal form NFC/,
    /\u795e/,
  ],
  ['a control character in an id', [['  half:', '  "h\\tx":']], '"h', /U\+0009/, /Remove/],
  ['an invisible character in an id', [['  half:', '  "h\\u200bx":']], '"h', /U\+200B/, /Remove/],
  ['white space around an id', [['  half:', '  " h":']], '" h"', /white space/, /Remove/],
  ['an empty id', [['  half:', '  "":']], '""', /empty/, /name/],
  ['an id of 300 characters (F-93)', [['  half:', `  ${'a'.repeat(300)}:`]], 'aaa', /300 characters/, /200/],
  ['an id with NUL (F-93)', [['  half:', '  "a\\0b":']], '"a', /U\+0000/, /Remove/],
  [
    'ids that differ in case only',
    [['  half:', '  ALL:']],
    'ALL',
    /"ALL" and "all" differ in case/,
    /own name/,
  ],
  [
    'ids equal after case folding',
    [
      ['  half:', '  strasse: { subset_of: all, ids: x, count: 1 }\n  half:'],
      ['  half:', '  straße: { subset_of: all, ids: y, count: 1 }\n  half:'],
    ],
    'straße',
    /differ in case/,
    /own name/,
  ],
  ['a rule id twice', [['id: busy', 'id: broken']], 'broken, when: { http', /declared twice/, /own name/],
  [
    'an unknown key (F-23)',
    [['  replacements: 1', '  max_retires: 0\n  replacements: 1']],
    'max_retires',
    /unknown key "max_retires"/,
    /Known here: replacements, regrades, breaker, rules/,
  ],
  [
    'a misspelt key (F-23)',
    [['replacements: 1', 'replacments: 1']],
    'replacments',
    /unknown key/,
    /"replacements"/,
  ],
  ['a misspelt top-level key', [['blinding', 'bliding']], 'bliding', /unknown key/, /"blinding"/],
  [
    'a misspelt word',
    [['role: confirmatory', 'role: confirmatry']],
    'confirmatry',
    /none of: confirmatory/,
    /"confirmatory"/,
  ],
  ['a missing key', [['    gpus: 0\n', '']], 'service:', /"gpus" is missing/, /default/],
  [
    'a key without value',
    [['title: A small protocol', 'title:']],
    'title:',
    /expected a text, got nothing/,
    /value/,
  ],
  [
    'a version that is not known',
    [['boundbook: 1', 'boundbook: 2']],
    '2\nname',
    /version the number 2/,
    /boundbook: 1/,
  ],
  [
    'reasoning as a boolean (F-151)',
    [['reasoning: on', 'reasoning: false']],
    'false',
    /none of: on, off/,
    /on, off/,
  ],
  [
    'reasoning as the text "false" (F-151)',
    [['reasoning: on', 'reasoning: "false"']],
    '"false"',
    /none of: on, off/,
    /off/,
  ],
  [
    'a byte-order mark (F-13)',
    [['boundbook: 1', '\ufeffboundbook: 1']],
    '\ufeff',
    /byte-order mark/,
    /without/,
  ],
  [
    'two byte-order marks (F-13)',
    [['boundbook: 1', '\ufeff\ufeffboundbook: 1']],
    '\ufeff',
    /2 times/,
    /without/,
  ],
  [
    'a mark before --- (F-13)',
    [['boundbook: 1', '\ufeff---\nboundbook: 1']],
    '\ufeff',
    /byte-order mark/,
    /without/,
  ],
  [
    'a line separator in a comment',
    [['revision: 1', 'revision: 1 # x\u2028y']],
    '\u2028',
    /U\+2028/,
    /Remove/,
  ],
  ['no line break at the end', [['pending: []\n', 'pending: []']], '', /line break/, /cut short/],
];

describe('DESIGN §5 refuses', () => {
  test.each(REFUSED)('%s', (_name, edits, piece, message, hint) => {
    const text = spoil(...edits);
    const found = faults(text);
    const place = piece === '' ? positionOf(`${text}$`, '[]$') : positionOf(text, piece);
    const fault = found.find((each) => message.test(each.message));
    expect(fault, JSON.stringify(found)).toBeDefined();
    expect(fault?.hint).toMatch(hint);
    expect(fault?.line).toBe(place.line);
    if (piece !== '' && !/missing|nothing|anchor|alias|tag |not a text/.test(fault?.message ?? '')) {
      expect(fault?.column).toBe(place.column);
    }
  });

  test('a directive', () => {
    expect(faults(`%YAML 1.2\n---\n${VALID}`)[0]?.message).toMatch(/directive/);
  });

  test('everything at once, in the order of the text', () => {
    const text = spoil(
      ['revision: 1', 'revision: 1\nrevision: 2'],
      ['temperature: 0.7', 'temperature: 1e0'],
      ['blinding: masked', 'bliding: masked'],
      ['count: 4', 'count: 0'],
    );
    const found = faults(text);
    expect(found.map((fault) => fault.where)).toEqual([
      '/blinding',
      '/revision',
      '/task_sets/all/count',
      '/conditions/default/decoding/temperature',
      '/bliding',
    ]);
    expect(refusal(text).message).toBe('p.yaml has 5 faults');
  });

  test('a value with several faults is reported once', () => {
    expect(faults(spoil(['max_tokens: 16', 'max_tokens: 1_000']))).toHaveLength(1);
  });
});

describe('text that is no protocol', () => {
  test.each([
    ['tab indentation (F-15)', 'queues:\n\tmain: 1\n', /tab/, { line: 2, column: 1 }, /spaces/],
    ['an unclosed bracket', 'a: {b: 1\n', /deficient indentation/, { line: 2, column: 1 }, /cut short/],
    ['an unclosed quote', 'a: "abc\n', /deficient indentation/, { line: 2, column: 1 }, /cut short/],
    ['zeros (F-95)', '\0\0\0\0', /null byte/, { line: 1, column: 1 }, /power cut/],
    ['nesting', `${'- '.repeat(500)}a\n`, /maxDepth/, { line: 1, column: 121 }, /60 levels/],
    ['comments only', '# nothing\n', /no YAML document/, { line: 1, column: 1 }, /blank/],
    ['blank', '\n\n', /no YAML document/, { line: 1, column: 1 }, /blank/],
  ])('%s', (_name, text, message, place, hint) => {
    const [fault] = faults(text);
    expect(fault?.message).toMatch(message);
    expect(fault?.hint).toMatch(hint);
    expect({ line: fault?.line, column: fault?.column }).toEqual(place);
  });

  test.each([
    ['empty', new Uint8Array(0), 'FILE_EMPTY'],
    ['UTF-16', Buffer.from(`\ufeff${VALID}`, 'utf16le'), 'TEXT_NOT_UTF8'],
    ['Latin-1', Buffer.from('title: caf\u00e9\n', 'latin1'), 'TEXT_NOT_UTF8'],
    [
      'a lone surrogate in UTF-8 form',
      Buffer.from([0x61, 0x3a, 0x20, 0xed, 0xa0, 0x80, 0x0a]),
      'TEXT_NOT_UTF8',
    ],
    ['5 MB', Buffer.alloc(5 << 20, 0x23), 'FILE_TOO_LARGE'],
  ])('%s', (_name, bytes, code) => {
    expect(refusal(bytes).code).toBe(code);
  });

  test.each([
    ['a list', '- 1\n', /expected a mapping, got a list/],
    ['a text', 'hello\n', /expected a mapping, got the text/],
    ['a bare ---', '---\n', /expected a mapping, got nothing/],
  ])('%s instead of a mapping', (_name, text, message) => {
    expect(faults(text)[0]?.message).toMatch(message);
  });

  test('every truncation of a protocol is refused', () => {
    const bytes = Buffer.from(VALID, 'utf8');
    for (let length = 0; length < bytes.length; length++) {
      expect(() => read(bytes.subarray(0, length)), `${length} bytes`).toThrow();
    }
  });

  test('any bytes end in a typed error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(['PROTOCOL_INVALID', 'TEXT_NOT_UTF8', 'FILE_EMPTY']).toContain(refusal(bytes).code);
      }),
      { seed: 1, numRuns: 500 },
    );
  });

  test('any edit of one character is read to the same value, or refused with a typed error', () => {
    const value = canonicalText(read(VALID).protocol);
    const characters = fc.constantFrom(...'{}[]:,#&*!|>\'"%@`~- \t\n\r01aé\u2028\ufeff\0');
    fc.assert(
      fc.property(fc.nat({ max: VALID.length - 1 }), characters, fc.boolean(), (at, character, insert) => {
        const text = VALID.slice(0, at) + character + VALID.slice(insert ? at : at + 1);
        try {
          expect(typeof canonicalText(read(text).protocol)).toBe(typeof value);
        } catch (error) {
          expect(error).toMatchObject({ name: 'BoundbookError', code: 'PROTOCOL_INVALID' });
        }
      }),
      { seed: 2, numRuns: 600 },
    );
  });
});

describe('allowed', () => {
  test.each([
    [
      'quoted ids that look like something else',
      [
        ['  half:', '  "no":'],
        ['partitions: [half]', 'partitions: ["no"]'],
        ['tasks: half', 'tasks: "no"'],
      ],
    ],
    ['words of an enumeration', [['reasoning: on', 'reasoning: off']]],
    ['a tab as separator (F-15)', [['title: A', 'title:\tA']]],
    ['a quoted date (F-09)', [['revision: 1', 'revision: 1\ndue: "2026-12-31"']]],
    ['numbers in shortest form', [['temperature: 0.7', 'temperature: 0.0000001']]],
    ['the largest exact integer', [['seed: 1,', 'seed: 9007199254740991,']]],
    [
      'document markers',
      [
        ['boundbook: 1', '---\nboundbook: 1'],
        ['pending: []\n', 'pending: []\n...\n'],
      ],
    ],
    [
      'ids that are paths or device names (F-93)',
      [
        ['id: O-base', 'id: ../../x'],
        ['contrast: O-base', 'contrast: ../../x'],
        ['id: parts', 'id: con'],
      ],
    ],
  ] as const)('%s', (_name, edits) => {
    expect(read(spoil(...edits)).protocol.name).toBe('small');
  });

  test('a tab and a space as separator give one value (F-15)', () => {
    const tabbed = read(spoil(['title: A', 'title:\tA']));
    expect(canonicalText(tabbed.protocol)).toBe(canonicalText(read(VALID).protocol));
  });

  test('CR LF gives the same value, and another raw digest', () => {
    const document = read(VALID.replaceAll('\n', '\r\n'));
    expect(canonicalText(document.protocol)).toBe(canonicalText(read(VALID).protocol));
    expect(document.rawDigest).not.toBe(read(VALID).rawDigest);
    expect(document.locate('/pending')).toEqual(read(VALID).locate('/pending'));
  });

  test('F-09: a date stays text whatever the time zone', () => {
    const before = process.env.TZ;
    const values = ['UTC', 'Asia/Shanghai'].map((zone) => {
      process.env.TZ = zone;
      return canonicalText(read(spoil(['revision: 1', 'revision: 1\ndue: "2026-09-27"'])).protocol);
    });
    process.env.TZ = before;
    expect(values[0]).toBe(values[1]);
    expect(values[0]).toContain('"due":"2026-09-27"');
  });
});
