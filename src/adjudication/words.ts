import type { Attribution } from '../attempts/rules.js';
import { BoundbookError } from '../core/errors.js';

/** What a person says for a verdict. */
export const VERDICT_WORDS = {
  infrastructure: 'infrastructure',
  model: 'model',
  'cannot-tell': 'undetermined',
} as const satisfies Readonly<Record<string, Attribution>>;

/** @throws {BoundbookError} USAGE for any other word. */
export function verdictOf(word: string): Attribution {
  for (const [known, verdict] of Object.entries(VERDICT_WORDS)) if (known === word) return verdict;
  throw new BoundbookError('USAGE', `${JSON.stringify(word)} is no verdict`, {
    hint: `A verdict is one of ${Object.keys(VERDICT_WORDS).join(', ')}.`,
  });
}
