import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Attribution, classify, isNameOnly } from '../../src/attempts/rules.js';
import { type FailureSignals, failureSignals } from '../../src/attempts/signals.js';
import type { AttributionRule } from '../../src/protocol/schema/attempts.js';

type When = AttributionRule['when'];

function rule(when: When, attribute: Attribution = 'infrastructure', sufficient = true): AttributionRule {
  return { id: 'r', when, attribute, sufficient };
}

const FULL = failureSignals({
  stage: 'grade',
  phase: 'running',
  cause: 'exit_status',
  http_status: 503,
  embedded_status: 429,
  exit_status: 137,
  signal: 'SIGKILL',
  service_alive: false,
  exception: 'VerifierTimeoutError',
  text: 'Connection reset by peer',
});
const BARE = failureSignals({ stage: 'generate', phase: 'body', cause: 'time_limit' });

const UNDETERMINED = { attribution: 'undetermined', rule: null };

describe('conditions', () => {
  test.each<[When, boolean]>([
    [{ stage: 'grade' }, true],
    [{ stage: 'generate' }, false],
    [{ stage: ['generate', 'grade'] }, true],
    [{ phase: 'running' }, true],
    [{ phase: ['spawn', 'collect'] }, false],
    [{ cause: 'exit_status' }, true],
    [{ cause: ['killed_by_signal'] }, false],
    [{ http_status: 503 }, true],
    [{ http_status: 502 }, false],
    [{ http_status: '5xx' }, true],
    [{ http_status: '4xx' }, false],
    [{ http_status: ['4xx', 503] }, true],
    [{ http_status: [400, 404] }, false],
    [{ embedded_status: '4xx' }, true],
    [{ embedded_status: '5xx' }, false],
    [{ exit_status: 137 }, true],
    [{ exit_status: [0, 1] }, false],
    [{ signal: 'SIGKILL' }, true],
    [{ signal: ['SIGTERM', 'SIGSEGV'] }, false],
    [{ service_alive: false }, true],
    [{ service_alive: true }, false],
    [{ cause: 'exit_status', exception: 'VerifierTimeoutError' }, true],
    [{ cause: 'exit_status', exception: 'EnvironmentDead' }, false],
    [{ cause: 'exit_status', text: 'RESET by' }, true],
    [{ cause: 'exit_status', text: '^reset' }, false],
    [{ cause: 'exit_status', exit_status: 137, signal: 'SIGTERM' }, false],
  ])('%j matches: %s', (when, matches) => {
    expect(classify([rule(when)], FULL)).toEqual(
      matches ? { attribution: 'infrastructure', rule: 'r' } : UNDETERMINED,
    );
  });

  test.each<[When]>([
    [{ http_status: '5xx' }],
    [{ embedded_status: 429 }],
    [{ exit_status: 0 }],
    [{ signal: 'SIGKILL' }],
    [{ service_alive: false }],
    [{ service_alive: true }],
    [{ cause: 'time_limit', exception: 'null' }],
    [{ cause: 'time_limit', text: '' }],
    [{ cause: 'time_limit', text: 'null' }],
  ])('what was not observed matches nothing: %j', (when) => {
    expect(classify([rule(when)], BARE)).toEqual(UNDETERMINED);
  });

  test.each([
    [399, '4xx', false],
    [400, '4xx', true],
    [499, '4xx', true],
    [500, '4xx', false],
    [499, '5xx', false],
    [500, '5xx', true],
    [599, '5xx', true],
  ] as const)('status %d in %s: %s', (status, family, matches) => {
    const signals = { ...BARE, http_status: status };
    expect(classify([rule({ http_status: family })], signals).rule).toBe(matches ? 'r' : null);
  });
});

describe('order and sufficiency (P14)', () => {
  const rules: AttributionRule[] = [
    { id: 'oom', when: { exit_status: 137 }, attribute: 'infrastructure', sufficient: false },
    { id: 'killed', when: { signal: 'SIGKILL' }, attribute: 'infrastructure', sufficient: true },
    { id: 'exit', when: { cause: 'exit_status' }, attribute: 'model', sufficient: true },
  ];

  test('the first rule that matches decides, and a later sufficient one does not rescue it', () => {
    expect(classify(rules, FULL)).toEqual({ attribution: 'undetermined', rule: 'oom' });
    expect(classify(rules, { ...FULL, exit_status: 1 })).toEqual({
      attribution: 'infrastructure',
      rule: 'killed',
    });
    expect(classify(rules, { ...FULL, exit_status: 1, signal: null })).toEqual({
      attribution: 'model',
      rule: 'exit',
    });
    expect(classify(rules.toReversed(), FULL)).toEqual({ attribution: 'model', rule: 'exit' });
  });

  test('no rule, no attribution', () => {
    expect(classify([], FULL)).toEqual(UNDETERMINED);
  });

  test('a sufficient rule may itself say undetermined', () => {
    expect(classify([rule({ cause: 'exit_status' }, 'undetermined')], FULL)).toEqual({
      attribution: 'undetermined',
      rule: 'r',
    });
  });
});

describe('a name is not a cause (law 7)', () => {
  test.each<[When, boolean]>([
    [{ exception: 'VerifierTimeoutError' }, true],
    [{ text: 'reset' }, true],
    [{ exception: 'VerifierTimeoutError', text: 'reset' }, true],
    [{ exception: 'VerifierTimeoutError', stage: 'grade' }, true],
    [{ text: 'reset', stage: ['grade', 'generate'] }, true],
    [{ stage: 'grade' }, false],
    [{ exception: 'VerifierTimeoutError', cause: 'exit_status' }, false],
    [{ text: 'reset', signal: 'SIGKILL' }, false],
    [{ text: 'reset', service_alive: false }, false],
  ])('%j rests on names alone: %s', (when, expected) => {
    expect(isNameOnly(rule(when))).toBe(expected);
    expect(classify([rule(when)], FULL)).toEqual({
      attribution: expected ? 'undetermined' : 'infrastructure',
      rule: 'r',
    });
  });

  test.each(['RewardFileNotFoundError', 'VerifierTimeoutError', 'EnvironmentDead'])(
    '%s alone settles nothing, whatever the rule claims (P14)',
    (exception) => {
      const rules = [rule({ exception }, 'model'), rule({ exception, stage: 'grade' }, 'infrastructure')];
      for (const list of [rules, rules.toReversed()])
        expect(classify(list, { ...FULL, exception }).attribution).toBe('undetermined');
    },
  );

  test('property: names and texts never change an attribution that does not ask for them', () => {
    const rules = [rule({ cause: ['exit_status', 'time_limit'], http_status: '5xx' })];
    fc.assert(
      fc.property(
        fc.option(fc.string()),
        fc.option(fc.string()),
        fc.constantFrom(FULL, BARE),
        (exception, text, base) => {
          const signals: FailureSignals = { ...base, exception, text };
          expect(classify(rules, signals)).toEqual(classify(rules, base));
        },
      ),
      { seed: 1 },
    );
  });

  test('property: no rule of names and text attributes any failure', () => {
    const weak = fc.record(
      {
        exception: fc.constant('EnvironmentDead'),
        text: fc.constant('.*'),
        stage: fc.constant('grade' as const),
      },
      { requiredKeys: ['exception'] },
    );
    fc.assert(
      fc.property(
        fc.array(weak, { maxLength: 5 }),
        fc.constantFrom<Attribution>('infrastructure', 'model'),
        (whens, attribute) => {
          const signals = { ...FULL, exception: 'EnvironmentDead' };
          expect(
            classify(
              whens.map((when) => rule(when, attribute)),
              signals,
            ).attribution,
          ).toBe('undetermined');
        },
      ),
      { seed: 2 },
    );
  });
});

describe('text', () => {
  test('a pattern that is none is a typed error', () => {
    expect(() => classify([rule({ cause: 'exit_status', text: '(' })], FULL)).toThrowError(
      expect.objectContaining({ code: 'PROTOCOL_INVALID' }),
    );
  });

  test('signals keep 500 code units and no broken character', () => {
    const text = `${'x'.repeat(499)}😀`;
    const signals = failureSignals({ stage: 'grade', phase: 'collect', cause: 'report_missing', text });
    expect(signals.text).toHaveLength(500);
    expect(signals.text?.isWellFormed()).toBe(true);
  });

  test('unobserved signals are null', () => {
    expect(failureSignals({ stage: 'grade', phase: 'collect', cause: 'report_missing' })).toEqual({
      stage: 'grade',
      phase: 'collect',
      cause: 'report_missing',
      http_status: null,
      embedded_status: null,
      exit_status: null,
      signal: null,
      service_alive: null,
      exception: null,
      text: null,
    });
  });
});
