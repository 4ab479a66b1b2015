import type { Phase } from '../../protocol/schema/signals.js';
import { failure, generate, grade, type KnownFailure } from './known-failure.js';

const TRIALS = ['harbor'] as const;
const raised = (phase: Phase, exception: string) =>
  ({ phase, cause: 'trial_exception', exit_status: 0, exception }) as const;

/** Of Harbor's trials. */
export const TRIAL_FAILURES: readonly KnownFailure[] = [
  failure('trial-not-started', 'Harbor does not start', TRIALS, {
    ...generate,
    phase: 'spawn',
    cause: 'spawn_failed',
    text: 'spawn ENOENT',
  }),
  failure('trial-environment', 'the environment does not start', TRIALS, {
    ...generate,
    ...raised('environment_setup', 'EnvironmentStartTimeoutError'),
  }),
  failure('trial-agent-setup', 'the agent is not set up', TRIALS, {
    ...generate,
    ...raised('agent_setup', 'AgentSetupTimeoutError'),
  }),
  failure('trial-agent', 'the agent raises, the verifier does not begin', TRIALS, {
    ...generate,
    ...raised('agent_execution', 'EnvironmentDead'),
  }),
  failure('trial-agent-no-reward', 'the agent timed out, and no reward came', TRIALS, {
    ...grade,
    ...raised('verifier', 'AgentTimeoutError'),
  }),
  failure('trial-reward-file', 'verifier: RewardFileNotFoundError', TRIALS, {
    ...grade,
    ...raised('verifier', 'RewardFileNotFoundError'),
  }),
  failure('trial-verifier-timeout', 'verifier: VerifierTimeoutError', TRIALS, {
    ...grade,
    ...raised('verifier', 'VerifierTimeoutError'),
  }),
  failure('trial-tests', 'verifier: AddTestsDirError', TRIALS, {
    ...grade,
    ...raised('verifier', 'AddTestsDirError'),
  }),
  failure('trial-reward', 'a reward that is null, or planted', TRIALS, {
    ...grade,
    phase: 'verifier',
    cause: 'report_invalid',
    exit_status: 0,
  }),
  failure('trial-mismatch', 'config or lock are not those of the plan', TRIALS, {
    ...generate,
    phase: 'collect',
    cause: 'trial_mismatch',
    exit_status: 0,
  }),
  failure('trial-no-result', 'exit 0 without a result', TRIALS, {
    ...generate,
    phase: 'collect',
    cause: 'trial_unreadable',
    exit_status: 0,
  }),
  failure('trial-deadline', 'the outer deadline', TRIALS, {
    ...generate,
    phase: 'running',
    cause: 'time_limit',
    signal: 'SIGKILL',
  }),
  failure('trial-lost', 'a trial that made a candidate is gone', TRIALS, {
    ...grade,
    phase: 'between',
    cause: 'process_gone',
  }),
];
