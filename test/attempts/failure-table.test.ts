import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { DEFAULT_RULES } from '../../src/attempts/default-rules.js';
import { decide } from '../../src/attempts/failure-decision.js';
import { KNOWN_FAILURES } from '../../src/attempts/known-failures/all.js';
import { classify } from '../../src/attempts/rules.js';
import { command as check } from '../../src/commands/check.js';
import { STARTERS } from '../../src/planning/starter.js';
import type { AttributionRule } from '../../src/protocol/schema/attempts.js';
import { CAUSES } from '../../src/protocol/schema/signals.js';
import { commandContext } from '../commands/context.js';

const SHIPPED = { replacements: 1, regrades: 1, breaker: 10, rules: [...DEFAULT_RULES] };

/** A fault of the disk pauses the run, so that no attempt ends with it. */
const NEVER_MET = 'storage_fault';

describe('the shipped rules', () => {
  test.each<readonly [string, string, string | null, string]>([
    ['refused', 'infrastructure', 'connection-broken', 'replacement'],
    ['cut-before-first-token', 'infrastructure', 'connection-broken', 'replacement'],
    ['cut-in-answer', 'infrastructure', 'connection-broken', 'replacement'],
    ['busy-too-long', 'infrastructure', 'queue-limit', 'replacement'],
    ['server-500', 'infrastructure', 'server-error', 'replacement'],
    ['error-in-200', 'infrastructure', 'server-error-in-body', 'replacement'],
    ['context-overflow', 'undetermined', 'context-overflow', 'unresolved'],
    ['unknown-model', 'undetermined', 'request-refused', 'unresolved'],
    ['no-choice', 'undetermined', 'no-answer', 'unresolved'],
    ['endless-answer', 'undetermined', 'time-limit', 'unresolved'],
    ['dead-service', 'infrastructure', 'time-limit-dead-service', 'replacement'],
    ['generate-not-started', 'infrastructure', 'not-started', 'replacement'],
    ['generate-exit-1', 'undetermined', 'exit-status', 'unresolved'],
    ['generate-killed', 'undetermined', 'killed', 'unresolved'],
    // P14: that its own group ran out is not yet that the candidate is to blame for it.
    ['generate-out-of-memory', 'undetermined', 'out-of-memory', 'unresolved'],
    ['generate-idle-limit', 'undetermined', 'idle-limit', 'unresolved'],
    ['generate-shut-down', 'undetermined', 'killed', 'unresolved'],
    ['generate-time-limit', 'undetermined', 'time-limit', 'unresolved'],
    ['no-candidate', 'undetermined', 'nothing-made', 'unresolved'],
    // P13: who broke its own environment has no second try.
    ['room-damaged', 'undetermined', 'room-damaged', 'unresolved'],
    // P14: these names alone do not settle who is at fault.
    ['RewardFileNotFoundError', 'undetermined', 'reward-file-missing', 'unresolved'],
    ['VerifierTimeoutError', 'undetermined', 'verifier-timeout', 'unresolved'],
    ['EnvironmentDead', 'undetermined', 'environment-dead', 'unresolved'],
    ['grade-killed', 'undetermined', 'killed', 'unresolved'],
    ['grade-not-started', 'infrastructure', 'not-started', 'regrade'],
    ['no-report', 'undetermined', 'nothing-made', 'unresolved'],
    ['false-report', 'undetermined', 'report-invalid', 'unresolved'],
    ['trial-lost', 'infrastructure', 'trial-gone', 'regrade'],
    // No rule is asked: the next run recovers it.
    ['runner-gone', 'infrastructure', null, 'replacement'],
    ['disk-full', 'infrastructure', null, 'replacement'],
  ])('%s: %s by %s, then %s', (id, attribution, rule, next) => {
    const failure = KNOWN_FAILURES.find((each) => each.id === id);
    if (failure === undefined) throw new Error(`no failure ${id}`);
    expect(decide(failure, SHIPPED)).toEqual({ attribution, rule, next });
  });

  test('every rule fires for some cause, and every cause has a rule', () => {
    const named = CAUSES.filter(
      (cause) =>
        !KNOWN_FAILURES.some(({ signals }) => signals.cause === cause) &&
        !['body_not_json', 'body_malformed', 'body_too_large', 'grader_fault', NEVER_MET].includes(cause),
    );
    expect(named).toEqual([]);
    for (const cause of CAUSES.filter((each) => each !== NEVER_MET)) {
      const signals = { ...(KNOWN_FAILURES[0] as (typeof KNOWN_FAILURES)[0]).signals, cause };
      const http_status = cause === 'http_status' ? 418 : null;
      expect(classify(DEFAULT_RULES, { ...signals, http_status }).rule, cause).not.toBeNull();
    }
  });

  test('stand in docs/attribution.md and in the starting protocol as they are', () => {
    const page = readFileSync(new URL('../../docs/attribution.md', import.meta.url), 'utf8');
    const block = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
    expect((load(block) as { rules: AttributionRule[] }).rules).toEqual(DEFAULT_RULES);
    const starter = load(STARTERS.openai.protocol) as { attempts: { rules: AttributionRule[] } };
    expect(starter.attempts.rules).toEqual(DEFAULT_RULES);
  });
});

test('limits of 0 leave unresolved what would be repeated', () => {
  const next = KNOWN_FAILURES.map(
    (failure) => decide(failure, { ...SHIPPED, replacements: 0, regrades: 0 }).next,
  );
  expect(new Set(next)).toEqual(new Set(['unresolved']));
});

test("a rule that calls a failure the model's settles it as 0", () => {
  const rules: AttributionRule[] = [
    {
      id: 'nothing',
      when: { cause: 'candidate_missing', exit_status: 0 },
      attribute: 'model',
      sufficient: true,
    },
  ];
  const failure = KNOWN_FAILURES.find(({ id }) => id === 'no-candidate');
  if (failure === undefined) throw new Error('no such failure');
  expect(decide(failure, { ...SHIPPED, rules })).toEqual({
    attribution: 'model',
    rule: 'nothing',
    next: 'settled as 0',
  });
});

test('check --failures explains a plan beside the shipped rules, for its adapter', async () => {
  const root = new URL('../../', import.meta.url).pathname;
  const { text, json } = await check.run(['protocol/demo.yaml'], { failures: true }, commandContext(root));
  expect(text).toMatch(/^the time limit, the service lives {2,}time-limit {2,}undetermined {2,}same$/m);
  expect(text).toMatch(/^cut before the first token {2,}connection-broken {2,}infra: replacement {2,}same$/m);
  for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(110);
  const { failures } = json as { failures: { failure: string; plan: unknown }[] };
  expect(failures.map(({ failure }) => failure)).not.toContain('no-report');
  expect(failures.find(({ failure }) => failure === 'disk-full')?.plan).toEqual({
    attribution: 'infrastructure',
    rule: null,
    next: 'replacement',
  });
});
