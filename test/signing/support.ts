import { BoundbookError } from '../../src/core/errors.js';

/** The typed error that a call throws; anything else fails the test. */
export function errorOf(act: () => unknown): BoundbookError {
  try {
    act();
  } catch (error) {
    if (error instanceof BoundbookError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

/** {@link errorOf} for a promise. */
export async function rejectionOf(promise: Promise<unknown>): Promise<BoundbookError> {
  const outcome = await promise.then(
    () => new Error('nothing was thrown'),
    (error: unknown) => error,
  );
  if (outcome instanceof BoundbookError) return outcome;
  throw outcome;
}
