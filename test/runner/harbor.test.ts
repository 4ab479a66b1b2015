import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exportBundle } from '../../src/audit/bundle/export.js';
import { hasPython, python, VERIFIER } from '../verify/python.js';
import { trial } from './fixture.js';
import { ends } from './harbor-ends.js';
import { harborPlan } from './harbor-plan.js';

const open = (signals: string) => `${signals}, undetermined, unresolved undetermined`;
const unread = open('generate collect trial_unreadable');
const mismatched = open('generate collect trial_mismatch');
const invalid = open('grade verifier report_invalid');
const replaced = (failure: string) => `generate ${failure}, infrastructure, replacement`;
const regraded = 'grade verifier trial_exception AddTestsDirError, infrastructure, regrade';

const ENDS: Readonly<Record<string, string>> = {
  pass: 'settled 1',
  fail: 'settled 0',
  json: 'settled 0.5',
  'json-coerced': 'settled 1',
  'both-agree': 'settled 1',
  // A valid reward counts whatever stands beside it (P14).
  AgentTimeoutError: 'settled 1',
  NonZeroAgentExitCodeError: 'settled 1',
  ApiRateLimitError: 'settled 1',
  ContextWindowExceededError: 'settled 1',
  'stop-failed': 'settled 1',
  'exit-3-rewarded': 'settled 1',
  'planted-elsewhere': 'settled 0',
  'long-log': 'settled 1',
  // An agent that changed nothing made an empty patch.
  'no-patch': 'settled 1',
  // Before the agent began there was no candidate to blame.
  EnvironmentStartTimeoutError: `${replaced('environment_setup trial_exception EnvironmentStartTimeoutError')}, settled 1`,
  HealthcheckError: `${replaced('environment_setup trial_exception HealthcheckError')}, settled 1`,
  AgentSetupTimeoutError: `${replaced('agent_setup trial_exception AgentSetupTimeoutError')}, settled 1`,
  'AgentSetupTimeoutError.always':
    `${replaced('agent_setup trial_exception AgentSetupTimeoutError')}, ` +
    'generate agent_setup trial_exception AgentSetupTimeoutError, infrastructure, unresolved limit_reached',
  // From the agent on, a name is no cause (law 7).
  'agent-crash': open('generate agent_execution trial_exception RuntimeError'),
  'agent-cancelled': open('generate agent_execution trial_exception CancelledError'),
  'EnvironmentDead.agent': open('generate agent_execution trial_exception EnvironmentDead'),
  'idle-nothing': open('generate environment_setup trial_unreadable'),
  VerifierTimeoutError: open('grade verifier trial_exception VerifierTimeoutError'),
  RewardFileNotFoundError: open('grade verifier trial_exception RewardFileNotFoundError'),
  RewardFileEmptyError: open('grade verifier trial_exception RewardFileEmptyError'),
  VerifierOutputParseError: open('grade verifier trial_exception VerifierOutputParseError'),
  DownloadVerifierDirError: open('grade verifier trial_exception DownloadVerifierDirError'),
  ValidationError: open('grade verifier trial_exception ValidationError'),
  'EnvironmentDead.verifier': open('grade verifier trial_exception EnvironmentDead'),
  hidden: open('grade verifier trial_exception AgentTimeoutError'),
  // The same patch again, at most once (P12).
  'regrade-passes': `${regraded}, settled 1`,
  'regrade-fails': `${regraded}, grade verifier trial_exception AddTestsDirError, infrastructure, unresolved limit_reached`,
  'regrade-of-another': `${regraded}, ${open('grade collect trial_mismatch')}`,
  'regrade-without-environment': `${regraded}, grade environment_setup trial_exception EnvironmentStartTimeoutError, infrastructure, unresolved limit_reached`,
  // null is no 0, and no prefix is a number.
  'null-reward': invalid,
  'null-rewards': open('grade verifier report_missing'),
  'no-key': invalid,
  'too-high': invalid,
  'as-text': invalid,
  'not-whole': invalid,
  'no-file': invalid,
  disagree: invalid,
  'json-twice': invalid,
  planted: invalid,
  'planted-for-later': invalid,
  stale: invalid,
  naive: invalid,
  steps: invalid,
  'link-reward': invalid,
  'linked-verifier': invalid,
  // Phases that follow one another cannot have begun before those ahead of them ended.
  'verifier-before-agent': invalid,
  // What is not said of a phase contradicts nothing.
  'no-end-of-verifier': 'settled 1',
  'no-times-of-agent': 'settled 1',
  'half-a-character': 'settled 1',
  'rewarded-with-exception-as-text': 'settled 1',
  'exception-as-text': open('grade verifier trial_exception unnamed'),
  'exception-without-type': `${replaced('environment_setup trial_exception unnamed')}, generate environment_setup trial_exception unnamed, infrastructure, unresolved limit_reached`,
  'link-patch': open('generate collect candidate_missing'),
  // What ran was not what was planned.
  'of-another-trial': mismatched,
  'another-agent': mismatched,
  'another-model': mismatched,
  'another-lock': mismatched,
  'another-task': mismatched,
  'another-seed': mismatched,
  'another-multiplier': mismatched,
  derived: mismatched,
  'no-lock': mismatched,
  // No end that can be read.
  'nan-result': unread,
  'torn-result': unread,
  'twice-result': unread,
  'bytes-result': unread,
  'array-result': unread,
  'link-result': unread,
  'no-result': unread,
  'no-folder': unread,
  'no-home': unread,
  'linked-folder': unread,
  'huge-result': unread,
  'no-end': unread,
  'exit-3': open('generate running exit_status'),
  killed: open('generate running killed_by_signal'),
};

test('every documented end of a trial has its one consequence', async () => {
  const { run, entries, findings, root } = await trial(harborPlan(Object.keys(ENDS)));
  await run();
  expect(ends(await entries())).toEqual(ENDS);
  expect(await findings()).toEqual([]);
  const trials = readFileSync(join(root, 'trials.log'), 'utf8').trim().split('\n');
  expect(new Set(trials).size).toBe(trials.length);
  if (!hasPython) return;
  const { folder } = await exportBundle(root, undefined, { out: 'bundle', beforeUnblinding: true });
  const { status, stdout } = python([VERIFIER, folder]);
  expect(stdout).toContain('verified');
  expect(status).toBe(0);
}, 120_000);

test('a trial that ignores SIGTERM past the outer deadline is ended, and its containers with it', async () => {
  const { run, entries, findings, root } = await trial(harborPlan(['hang'], { wall: 0.6, stop: 'noted' }));
  await run();
  expect(ends(await entries())).toEqual({ hang: open('generate running time_limit') });
  expect(await findings()).toEqual([]);
  expect(readFileSync(join(root, 'stopped.log'), 'utf8')).toMatch(/^bb-[0-9a-f]{12}-[0-9a-f]{32}\n$/);
}, 30_000);
