import { failure, generate, type KnownFailure } from './known-failure.js';

const SERVED = ['openai'] as const;

/** Of servers that answer requests. */
export const SERVED_FAILURES: readonly KnownFailure[] = [
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
];
