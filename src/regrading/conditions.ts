import { BoundbookError } from '../core/errors.js';
import { isAnswerGrader } from '../grading/answer.js';
import type { Protocol } from '../protocol/schema/protocol.js';
import type { CorrectedGrader } from './grader-file.js';

/**
 * The conditions whose outputs are graded again, by name. A grader that reads answers takes the place of one that reads
 * answers, a command that of a command.
 *
 * @param named null: all that fit
 * @throws {BoundbookError} REGRADE_REFUSED
 */
export function conditionsOf(
  { conditions: declared }: Protocol,
  grader: CorrectedGrader,
  named: readonly string[] | null,
): readonly string[] {
  const fits = (name: string) => {
    const before = declared[name]?.grader;
    if (before === undefined || before.kind === 'reward') return false;
    return isAnswerGrader(before) === isAnswerGrader(grader);
  };
  const names = named === null ? Object.keys(declared).sort() : [...new Set(named)].sort();
  const unknown = names.find((name) => !Object.hasOwn(declared, name));
  if (unknown !== undefined) {
    throw refused(
      `the plan has no condition ${JSON.stringify(unknown)}`,
      `It has ${Object.keys(declared).join(', ')}.`,
    );
  }
  const fitting = names.filter(fits);
  const other = names.find((name) => !fits(name));
  if (other === undefined || (named === null && fitting.length > 0)) return fitting;
  const kind = declared[other]?.grader.kind;
  throw refused(
    `the grader of ${JSON.stringify(other)} is of the kind ${kind}, which one of the kind ${grader.kind} does not replace`,
    kind === 'reward'
      ? 'Trials of Harbor are not run again: their reward is that of the verifier in the task.'
      : 'A command (kind: report) takes the place of a command; exact, integer and boxed that of one another.',
  );
}

/** What cannot be graded again. */
export function refused(message: string, hint?: string): BoundbookError {
  return new BoundbookError('REGRADE_REFUSED', message, hint === undefined ? {} : { hint });
}
