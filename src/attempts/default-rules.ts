import type { AttributionRule } from '../protocol/schema/attempts.js';

function infrastructure(id: string, when: AttributionRule['when']): AttributionRule {
  return { id, when, attribute: 'infrastructure', sufficient: true };
}

/** Gives a failure its name in the ledger without saying whose fault it was. */
function named(id: string, when: AttributionRule['when']): AttributionRule {
  return { id, when, attribute: 'undetermined', sufficient: false };
}

/**
 * The rule set that `boundbook init` writes and `docs/attribution.md` explains. It calls infrastructure what no text
 * of an answer can bring about (a request that kills its server can), and leaves everything else undetermined: a wider bound, never a 0 and never a retry (P12 to P14). It
 * calls nothing a model failure, since what makes one depends on the harness.
 */
export const DEFAULT_RULES: readonly AttributionRule[] = [
  infrastructure('connection-broken', { cause: ['connection_refused', 'connection_lost'] }),
  infrastructure('queue-limit', { cause: 'queue_limit' }),
  infrastructure('server-error', { http_status: [429, '5xx'] }),
  infrastructure('server-error-in-body', { cause: 'body_error', embedded_status: [429, '5xx'] }),
  infrastructure('time-limit-dead-service', { cause: 'time_limit', service_alive: false }),
  infrastructure('trial-gone', { cause: 'process_gone' }),
  infrastructure('not-started', { cause: 'spawn_failed' }),
  infrastructure('before-agent', { phase: ['environment_setup', 'agent_setup'], cause: 'trial_exception' }),
  named('reward-file-missing', { exception: 'RewardFileNotFoundError' }),
  named('verifier-timeout', { exception: 'VerifierTimeoutError' }),
  named('environment-dead', { exception: 'EnvironmentDead' }),
  named('context-overflow', {
    http_status: 400,
    text: 'context.{0,20}length|too many tokens|maximum context',
  }),
  named('request-refused', { http_status: '4xx' }),
  named('error-without-status', { cause: 'body_error' }),
  named('no-answer', {
    cause: [
      'body_not_json',
      'body_no_choice',
      'body_malformed',
      'body_too_large',
      'stream_cut',
      'model_differs',
      'settings_differ',
    ],
  }),
  named('time-limit', { cause: 'time_limit' }),
  named('idle-limit', { cause: 'idle_limit' }),
  named('out-of-memory', { cause: ['killed_by_signal', 'exit_status'], oom_kill: true }),
  named('killed', { cause: 'killed_by_signal' }),
  named('exit-status', { cause: 'exit_status' }),
  named('nothing-made', { cause: ['candidate_missing', 'report_missing'] }),
  named('room-damaged', { cause: 'room_damaged' }),
  named('report-invalid', { cause: 'report_invalid' }),
  named('grader', { cause: 'grader_fault' }),
  named('trial-exception', { cause: 'trial_exception' }),
  named('trial-of-no-use', { cause: ['trial_mismatch', 'trial_unreadable'] }),
];
