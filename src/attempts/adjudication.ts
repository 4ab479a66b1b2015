import { createHmac } from 'node:crypto';
import { canonicalText } from '../core/canonical-json.js';
import { type Digest, digestOfJson } from '../core/digest.js';
import type { Attribution } from './rules.js';

/**
 * What follows from the secret of a round of adjudication (docs/formats/attempts.md): aliases, the order in which items
 * are put, and which are put twice. Pure, so that an auditor derives the same when the secret is published.
 */

/** One question to the adjudicator: a failed attempt, put for the first (copy 0) or the second time (copy 1). */
export interface PutItem {
  /** 16 hexadecimal digits. */
  readonly alias: string;
  readonly attempt: string;
  readonly copy: 0 | 1;
}

export interface RoundSecret {
  /** 32 hexadecimal digits, public. */
  readonly round: string;
  /** 64 hexadecimal digits. */
  readonly secret: string;
}

/** What is committed to under an alias. */
export interface Verdict {
  readonly verdict: Attribution;
  readonly reason: string;
  /** 64 hexadecimal digits, drawn at random for this verdict. */
  readonly nonce: string;
}

/** Stands in the ledger from the opening of a round on. */
export function secretCommitment({ round, secret }: RoundSecret): Digest {
  return digestOfJson(['adjudication', round, secret]);
}

export function verdictCommitment(round: string, alias: string, { verdict, reason, nonce }: Verdict): Digest {
  return digestOfJson(['verdict', round, alias, verdict, reason, nonce]);
}

/**
 * The items of a round in the order in which they are put.
 *
 * @param attempts ids of the attempts that wait for a verdict, in any order
 * @param duplicates how many of them are put twice; at most all
 */
export function putItems(
  { secret }: Pick<RoundSecret, 'secret'>,
  attempts: readonly string[],
  duplicates: number,
): readonly PutItem[] {
  const key = Buffer.from(secret, 'hex');
  const derive = (...parts: readonly (string | number)[]) =>
    createHmac('sha256', key).update(canonicalText(parts)).digest('hex');
  const twice = sortedBy(attempts, (attempt) => derive('duplicate', attempt)).slice(0, duplicates);
  const put = (attempt: string, copy: 0 | 1): PutItem => ({
    alias: derive('alias', attempt, copy).slice(0, 16),
    attempt,
    copy,
  });
  const items = [...attempts.map((attempt) => put(attempt, 0)), ...twice.map((attempt) => put(attempt, 1))];
  return sortedBy(items, ({ attempt, copy }) => derive('order', attempt, copy));
}

function sortedBy<T>(items: readonly T[], keyOf: (item: T) => string): readonly T[] {
  return items
    .map((item) => [keyOf(item), item] as const)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, item]) => item);
}
