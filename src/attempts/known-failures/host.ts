import { failure, generate, type KnownFailure } from './known-failure.js';

const ALL = ['openai', 'command', 'harbor'] as const;

/** Of the host, under any adapter. */
export const HOST_FAILURES: readonly KnownFailure[] = [
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
