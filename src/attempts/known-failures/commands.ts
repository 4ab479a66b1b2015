import { failure, generate, grade, type KnownFailure } from './known-failure.js';

const COMMANDS = ['command'] as const;
const exited = { phase: 'running', cause: 'exit_status' } as const;
const killed = { phase: 'running', cause: 'killed_by_signal', signal: 'SIGKILL' } as const;

/** Of programs that generate and grade. */
export const COMMAND_FAILURES: readonly KnownFailure[] = [
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
  failure('room-damaged', 'generate: it destroyed its own folder', COMMANDS, {
    ...generate,
    phase: 'collect',
    cause: 'room_damaged',
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
];
