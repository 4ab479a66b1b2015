import { BoundbookError } from '../core/errors.js';
import type { OptionValue } from './command.js';

/** A whole-number flag, or the fallback when it is absent. @throws {BoundbookError} USAGE */
export function integerOption(
  value: OptionValue,
  flag: string,
  range: { readonly min: number; readonly max: number },
): number | undefined {
  if (value === undefined) return undefined;
  const number = typeof value === 'string' && /^[0-9]+$/.test(value) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(number) || number < range.min || number > range.max) {
    throw new BoundbookError(
      'USAGE',
      `${flag} takes a whole number from ${range.min} to ${range.max}, not ${JSON.stringify(value)}`,
      {
        hint: `Write ${flag} ${range.min}, for example.`,
      },
    );
  }
  return number;
}

/** A text flag. @throws {BoundbookError} USAGE when it came without a value */
export function textOption(value: OptionValue, flag: string): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'string' || value === '') {
    throw new BoundbookError('USAGE', `${flag} needs a value`, { hint: 'See --help for its form.' });
  }
  return value;
}

/** A repeatable text flag; empty when it was not given. @throws {BoundbookError} USAGE for an empty value */
export function listOption(value: OptionValue, flag: string): readonly string[] {
  const values = Array.isArray(value) ? value : [value];
  return values.flatMap((one: OptionValue) => textOption(one, flag) ?? []);
}

/** `i/n` with 0 ≤ i < n. @throws {BoundbookError} USAGE */
export function shardOption(value: OptionValue): { index: number; count: number } | undefined {
  if (value === undefined) return undefined;
  const match = typeof value === 'string' ? /^(\d{1,6})\/(\d{1,6})$/.exec(value) : null;
  const index = Number(match?.[1] ?? Number.NaN);
  const count = Number(match?.[2] ?? Number.NaN);
  if (!(index < count)) {
    throw new BoundbookError('USAGE', `--shard takes i/n with 0 ≤ i < n, not ${JSON.stringify(value)}`, {
      hint: 'The first of four shards is --shard 0/4.',
    });
  }
  return { index, count };
}

/** What a command line asks for that does not fit together. */
export function usageError(message: string, hint: string): BoundbookError {
  return new BoundbookError('USAGE', message, { hint });
}

/**
 * Which of the things that a verb can do is asked for; null for what it does without such a flag.
 *
 * @param modes for each flag that asks for something, and for `plain`, the further flags that go with it
 * @throws {BoundbookError} USAGE for two of them, and for a flag that does not go with it
 */
export function modeOf(
  options: Readonly<Record<string, OptionValue>>,
  modes: Readonly<Record<string, readonly string[]>>,
): string | null {
  const isGiven = (flag: string) => options[flag] !== undefined;
  const [mode = null, other] = Object.keys(modes).filter(isGiven);
  if (other !== undefined) throw usageError(`--${mode} and --${other} are two things`, 'Give one of them.');
  const taken = modes[mode ?? 'plain'] ?? [];
  const further = new Set(Object.values(modes).flat());
  const surplus = [...further].find((flag) => isGiven(flag) && !taken.includes(flag));
  if (surplus === undefined) return mode;
  throw usageError(
    `--${surplus} does not go with ${mode === null ? 'this' : `--${mode}`}`,
    '--help says what it goes with.',
  );
}
