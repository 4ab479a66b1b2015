import { describe, expect, test } from 'vitest';
import { DEFAULT_RULES } from '../../src/attempts/default-rules.js';
import { explain } from '../../src/attempts/explain.js';
import { KNOWN_FAILURES } from '../../src/attempts/known-failures/all.js';
import { classify } from '../../src/attempts/rules.js';
import { failureSignals } from '../../src/attempts/signals.js';
import { explainFailures, failuresJson, failuresText } from '../../src/commands/show-failures.js';
import { MASK } from '../../src/ledger/mask.js';
import type { AttributionRule } from '../../src/protocol/schema/attempts.js';

const dead = failureSignals({
  stage: 'generate',
  phase: 'body',
  cause: 'time_limit',
  service_alive: false,
});

describe('explain', () => {
  test('agrees with the classification of every known failure', () => {
    for (const { signals } of KNOWN_FAILURES) {
      const { attribution, rule, decides } = explain(DEFAULT_RULES, signals);
      expect({ attribution, rule }).toEqual(classify(DEFAULT_RULES, signals));
      expect(decides === 'yes').toBe(attribution === 'infrastructure');
    }
  });

  test('gives the signals that a rule fired on, and why those before it did not', () => {
    expect(explain(DEFAULT_RULES, dead)).toEqual({
      attribution: 'infrastructure',
      rule: 'time-limit-dead-service',
      decides: 'yes',
      evidence: [
        { condition: 'cause', wanted: 'time_limit', observed: 'time_limit' },
        { condition: 'service_alive', wanted: false, observed: false },
      ],
      passed: [
        {
          rule: 'connection-broken',
          condition: 'cause',
          wanted: ['connection_refused', 'connection_lost'],
          observed: 'time_limit',
        },
        { rule: 'queue-limit', condition: 'cause', wanted: 'queue_limit', observed: 'time_limit' },
        { rule: 'server-error', condition: 'http_status', wanted: [429, '5xx'], observed: null },
        { rule: 'server-error-in-body', condition: 'cause', wanted: 'body_error', observed: 'time_limit' },
      ],
    });
  });

  test('a rule on a name alone does not decide, whatever it declares', () => {
    const rules: AttributionRule[] = [
      { id: 'name', when: { exception: 'EnvironmentDead' }, attribute: 'infrastructure', sufficient: true },
    ];
    const signals = { ...dead, exception: 'EnvironmentDead' };
    expect(explain(rules, signals)).toMatchObject({ attribution: 'undetermined', decides: 'names_only' });
    expect(explain([], signals)).toMatchObject({ attribution: 'undetermined', decides: 'no_rule' });
  });
});

test('a failure in words, without control characters of the program that failed', () => {
  const entries = [
    { type: 'stage.finished', attempt: 'a'.repeat(32), result: { kind: 'failure', signals: { ...dead } } },
    {
      type: 'attribution.recorded',
      attempt: 'a'.repeat(32),
      by: 'rule',
      attribution: 'infrastructure',
      rule: 'time-limit-dead-service',
    },
    // Masked entries and verdicts of people have no rule to explain.
    { type: '(masked until unblinding)', masked: true },
    { type: 'attribution.recorded', attempt: 'b'.repeat(32), by: 'rule' },
  ];
  const rules = DEFAULT_RULES.filter(({ id }) => ['server-error', 'time-limit-dead-service'].includes(id));
  expect(failuresText(explainFailures(rules, entries, true))).toEqual([
    [
      'Attempt aaaaaaaa: infrastructure. The rule time-limit-dead-service fired on these signals, which suffices:',
      '  cause is time_limit; time-limit-dead-service asks for time_limit',
      '  service_alive is false; time-limit-dead-service asks for false',
      '  passed over server-error: http_status is not observed, not 429 or 5xx',
    ].join('\n'),
  ]);
  expect(failuresText(explainFailures(rules, entries, false)).join('')).not.toContain('passed over');
});

describe('before unblinding, of masked signals', () => {
  const attempt = 'a'.repeat(32);
  const rules: AttributionRule[] = [
    {
      id: 'disk',
      when: { cause: 'exit_status', text: 'No space left' },
      attribute: 'infrastructure',
      sufficient: true,
    },
    { id: 'exit', when: { cause: 'exit_status' }, attribute: 'model', sufficient: true },
  ];
  const signals = failureSignals({ stage: 'generate', phase: 'running', cause: 'exit_status' });
  const told = (attribution: string, rule: string | null, text: string | null) =>
    explainFailures(
      rules,
      [
        { type: 'stage.finished', attempt, result: { kind: 'failure', signals: { ...signals, text } } },
        { type: 'attribution.recorded', attempt, by: 'rule', attribution, rule },
      ],
      false,
    );

  test('the recorded rule and attribution are told, and the text is told as masked', () => {
    const failures = told('infrastructure', 'disk', MASK);
    expect(failuresText(failures)).toEqual([
      [
        'Attempt aaaaaaaa: infrastructure. The rule disk fired on these signals, which suffices:',
        '  cause is exit_status; disk asks for exit_status',
        '  text (masked until unblinding); disk asks for a text like /No space left/',
      ].join('\n'),
    ]);
    expect(failuresJson(failures)).toEqual([
      {
        attempt,
        attribution: 'infrastructure',
        rule: 'disk',
        decides: 'yes',
        evidence: [
          { condition: 'cause', wanted: 'exit_status', observed: 'exit_status' },
          { condition: 'text', wanted: 'No space left', observed: MASK },
        ],
        passed: [],
      },
    ]);
  });

  test('nothing is decided again: neither by a rule that would fire on what is left, nor by one that would not', () => {
    expect(told('undetermined', null, MASK)).toMatchObject([
      { explanation: { attribution: 'undetermined', rule: null, decides: 'no_rule', evidence: [] } },
    ]);
    expect(told('model', 'exit', MASK)).toMatchObject([
      { explanation: { attribution: 'model', rule: 'exit', decides: 'yes' } },
    ]);
  });
});
