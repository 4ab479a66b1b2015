import { type KnownFailure, recovered } from './known-failure.js';

const ALL = ['openai', 'command', 'harbor'] as const;

/** Of the host, under any adapter. */
export const HOST_FAILURES: readonly KnownFailure[] = [
  recovered('runner-gone', 'a power cut, or Boundbook was killed', ALL),
  recovered('disk-full', 'the disk is full: the run pauses', ALL),
];
