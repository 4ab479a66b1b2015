import { COMMAND_FAILURES } from './commands.js';
import { HOST_FAILURES } from './host.js';
import type { KnownFailure } from './known-failure.js';
import { SERVED_FAILURES } from './served.js';
import { TRIAL_FAILURES } from './trials.js';

/**
 * Failures that a rule set is explained by. Names of exceptions are those that agent harnesses report; `text` is what
 * servers and programs say, which a candidate could have written as well.
 */
export const KNOWN_FAILURES: readonly KnownFailure[] = [
  ...SERVED_FAILURES,
  ...COMMAND_FAILURES,
  ...TRIAL_FAILURES,
  ...HOST_FAILURES,
];
