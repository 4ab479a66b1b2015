export const STAGES = ['generate', 'grade'] as const;

export const PHASES = [
  'queue',
  'connect',
  'headers',
  'body',
  'spawn',
  'running',
  'collect',
  'between',
  'environment_setup',
  'agent_setup',
  'agent_execution',
  'verifier',
] as const;

export const CAUSES = [
  'connection_refused',
  'connection_lost',
  'time_limit',
  'queue_limit',
  'http_status',
  'body_not_json',
  'body_error',
  'body_no_choice',
  'body_malformed',
  'body_too_large',
  'spawn_failed',
  'exit_status',
  'killed_by_signal',
  'candidate_missing',
  'report_missing',
  'report_invalid',
  'process_gone',
  'grader_fault',
  'storage_fault',
  'stream_cut',
  'model_differs',
  'idle_limit',
  'settings_differ',
  'trial_exception',
  'trial_mismatch',
  'trial_unreadable',
  'room_damaged',
] as const;

/** What befell the host of an attempt. */
export const HOST_EVENTS = ['boot_changed'] as const;

export type Stage = (typeof STAGES)[number];

export type Phase = (typeof PHASES)[number];

export type Cause = (typeof CAUSES)[number];

export type HostEvent = (typeof HOST_EVENTS)[number];
