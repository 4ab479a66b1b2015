import type { Digest } from '../core/digest.js';
import type { AttemptLimits } from '../protocol/schema/attempts.js';
import type { Runner } from '../protocol/schema/runner.js';
import type { Phase } from '../protocol/schema/signals.js';
import { attemptId, nextAction, PLANNED, type SlotState } from './machine.js';
import { type Classification, classify } from './rules.js';
import { type FailureSignals, failureSignals } from './signals.js';

/** A failure as it is met in practice, and what is observed of it. */
export interface KnownFailure {
  readonly id: string;
  readonly what: string;
  /** The adapters that can meet it. */
  readonly adapters: readonly Runner['adapter'][];
  readonly signals: FailureSignals;
}

const SERVED = ['openai'] as const;
const COMMANDS = ['command'] as const;
const TRIALS = ['harbor'] as const;
const ALL = [...SERVED, ...COMMANDS, ...TRIALS];

function failure(
  id: string,
  what: string,
  adapters: KnownFailure['adapters'],
  signals: Parameters<typeof failureSignals>[0],
): KnownFailure {
  return { id, what, adapters, signals: failureSignals(signals) };
}

const generate = { stage: 'generate' } as const;
const grade = { stage: 'grade' } as const;
const exited = { phase: 'running', cause: 'exit_status' } as const;
const raised = (phase: Phase, exception: string) =>
  ({ phase, cause: 'trial_exception', exit_status: 0, exception }) as const;
const killed = { phase: 'running', cause: 'killed_by_signal', signal: 'SIGKILL' } as const;

/**
 * Failures that a rule set is explained by. Names of exceptions are those that agent harnesses report; `text` is what
 * servers and programs say, which a candidate could have written as well.
 */
export const KNOWN_FAILURES: readonly KnownFailure[] = [
  failure('refused', 'the server takes no connection', SERVED, {
    ...generate,
    phase: 'connect',
    cause: 'connection_refused',
    service_alive: false,
  }),
  failure('cut-before-first-token', 'cut before the first token', SERVED, {
    ...generate,
    phase: 'headers',
    cause: 'connection_lost',
    service_alive: false,
  }),
  failure('cut-in-answer', 'cut in mid-answer, the service lives', SERVED, {
    ...generate,
    phase: 'body',
    cause: 'connection_lost',
    service_alive: true,
  }),
  failure('busy-too-long', '429 or 503 until the queue limit', SERVED, {
    ...generate,
    phase: 'queue',
    cause: 'queue_limit',
    http_status: 503,
    service_alive: true,
  }),
  failure('server-500', 'the server answers 500', SERVED, {
    ...generate,
    phase: 'headers',
    cause: 'http_status',
    http_status: 500,
    service_alive: true,
  }),
  failure('error-in-200', 'an error body with 503 under 200', SERVED, {
    ...generate,
    phase: 'body',
    cause: 'body_error',
    http_status: 200,
    embedded_status: 503,
    service_alive: true,
  }),
  failure('context-overflow', 'the prompt exceeds the context', SERVED, {
    ...generate,
    phase: 'headers',
    cause: 'http_status',
    http_status: 400,
    service_alive: true,
    text: "This model's maximum context length is 4096 tokens",
  }),
  failure('unknown-model', 'the server does not know the model', SERVED, {
    ...generate,
    phase: 'headers',
    cause: 'http_status',
    http_status: 404,
    service_alive: true,
    text: 'The model `M` does not exist.',
  }),
  failure('no-choice', 'an answer without a choice', SERVED, {
    ...generate,
    phase: 'body',
    cause: 'body_no_choice',
    http_status: 200,
    service_alive: true,
  }),
  failure('stream-ended', 'a stream ends without a finish reason', SERVED, {
    ...generate,
    phase: 'body',
    cause: 'stream_cut',
    http_status: 200,
    service_alive: true,
    first_token: true,
  }),
  failure('other-model', 'a streamed answer of another model', SERVED, {
    ...generate,
    phase: 'body',
    cause: 'model_differs',
    http_status: 200,
    service_alive: true,
    first_token: false,
  }),
  failure('other-settings', 'a server that says it took other settings', SERVED, {
    ...generate,
    phase: 'body',
    cause: 'settings_differ',
    http_status: 200,
    service_alive: true,
    first_token: true,
  }),
  failure('endless-answer', 'the time limit, the service lives', SERVED, {
    ...generate,
    phase: 'body',
    cause: 'time_limit',
    service_alive: true,
  }),
  failure('dead-service', 'the time limit, the service is dead', SERVED, {
    ...generate,
    phase: 'body',
    cause: 'time_limit',
    service_alive: false,
  }),
  failure('generate-not-started', 'generate: the program does not start', COMMANDS, {
    ...generate,
    phase: 'spawn',
    cause: 'spawn_failed',
    text: 'spawn ENOENT',
  }),
  failure('generate-exit-1', 'generate: it exits with 1', COMMANDS, {
    ...generate,
    ...exited,
    exit_status: 1,
  }),
  failure('generate-killed', 'generate: it is killed (137)', COMMANDS, {
    ...generate,
    ...killed,
  }),
  failure('generate-out-of-memory', 'generate: its group ran out of memory', COMMANDS, {
    ...generate,
    ...killed,
    oom_kill: true,
  }),
  failure('generate-idle-limit', 'generate: the idle limit', COMMANDS, {
    ...generate,
    phase: 'running',
    cause: 'idle_limit',
    signal: 'SIGTERM',
  }),
  failure('generate-shut-down', 'generate: SIGTERM, then a new boot', COMMANDS, {
    ...generate,
    ...killed,
    signal: 'SIGTERM',
    host_event: 'boot_changed',
  }),
  failure('generate-time-limit', 'generate: the time limit', COMMANDS, {
    ...generate,
    phase: 'running',
    cause: 'time_limit',
    signal: 'SIGKILL',
  }),
  failure('no-candidate', 'generate: exit 0 without a candidate', COMMANDS, {
    ...generate,
    phase: 'collect',
    cause: 'candidate_missing',
    exit_status: 0,
  }),
  failure('RewardFileNotFoundError', 'grade: RewardFileNotFoundError', COMMANDS, {
    ...grade,
    ...exited,
    exit_status: 1,
    exception: 'RewardFileNotFoundError',
    text: 'RewardFileNotFoundError: no reward file',
  }),
  failure('VerifierTimeoutError', 'grade: VerifierTimeoutError', COMMANDS, {
    ...grade,
    ...exited,
    exit_status: 1,
    exception: 'VerifierTimeoutError',
    text: 'VerifierTimeoutError: verifier timed out',
  }),
  failure('EnvironmentDead', 'grade: EnvironmentDead', COMMANDS, {
    ...grade,
    ...exited,
    exit_status: 1,
    exception: 'EnvironmentDead',
    text: 'EnvironmentDead: the container is gone',
  }),
  failure('grade-killed', 'grade: it is killed (137)', COMMANDS, { ...grade, ...killed }),
  failure('grade-not-started', 'grade: the program does not start', COMMANDS, {
    ...grade,
    phase: 'spawn',
    cause: 'spawn_failed',
    text: 'spawn EAGAIN',
  }),
  failure('no-report', 'grade: exit 0 without a report', COMMANDS, {
    ...grade,
    phase: 'collect',
    cause: 'report_missing',
    exit_status: 0,
  }),
  failure('false-report', 'grade: an invalid report', COMMANDS, {
    ...grade,
    phase: 'collect',
    cause: 'report_invalid',
    exit_status: 0,
  }),
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
  failure('runner-gone', 'a power cut, or Boundbook was killed', ALL, {
    ...generate,
    phase: 'running',
    cause: 'process_gone',
  }),
  failure('disk-full', 'the disk is full, or fails', ALL, {
    ...generate,
    phase: 'collect',
    cause: 'storage_fault',
    text: 'ENOSPC',
  }),
];

/** What a rule set makes of a failure that is a slot's first. */
export interface FailureDecision extends Classification {
  /** What follows for the slot. */
  readonly next: 'replacement' | 'regrade' | 'settled as 0' | 'unresolved';
}

const SLOT = '0'.repeat(32);
const CANDIDATE: Digest = `sha256:${'0'.repeat(64)}`;

/** Asks the rules for the attribution and the state machine for what follows, as a run does. */
export function decide({ signals }: KnownFailure, limits: AttemptLimits): FailureDecision {
  const classification = classify(limits.rules, signals);
  const state: SlotState = {
    ...PLANNED,
    phase: 'attributed',
    attempt: attemptId(SLOT, 1),
    stage: signals.stage,
    signals,
    candidate: signals.stage === 'grade' ? CANDIDATE : null,
    attribution: classification.attribution,
    by: 'rule',
    finished: true,
  };
  const action = nextAction(state, {
    ...limits,
    slot: SLOT,
    samplingSeed: 0,
    reward: { min: 0, max: 1 },
  });
  const next =
    action?.do === 'settle'
      ? 'settled as 0'
      : action?.do === 'start' && action.kind !== 'first'
        ? action.kind
        : 'unresolved';
  return { ...classification, next };
}
