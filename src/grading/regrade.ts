import { type Digest, digestOf } from '../core/digest.js';
import type { JsonObject } from '../core/json.js';
import { type AnswerGrader, gradeAnswer } from './answer.js';
import { answerReport } from './report.js';

/** Finish reasons of an output that a limit ended, and not the model. */
const CUT = new Set(['length', 'loop_stop']);

export type Regrade =
  | { readonly kind: 'graded'; readonly value: number; readonly report: Buffer }
  | { readonly kind: 'truncated' };

export interface RegradeInput {
  readonly grader: AnswerGrader;
  readonly task: string;
  readonly fields: JsonObject;
  readonly candidate: Buffer;
  /** How its generation ended. */
  readonly finishReason: string | null;
}

/**
 * Grades an output that was graded before. One that a limit cut is too truncated to be graded again unless it holds a whole
 * answer all the same, which only a closed box can show (B6).
 *
 * @throws {BoundbookError} TASKS_INVALID when the reference is missing or unusable
 */
export function regradeAnswer({ grader, task, fields, candidate, finishReason }: RegradeInput): Regrade {
  const grade = gradeAnswer(grader, fields, candidate.toString('utf8'));
  const isWhole = grader.kind === 'boxed' && grade.extracted !== null;
  if (isCut(finishReason) && !isWhole) return { kind: 'truncated' };
  const digest: Digest = digestOf(candidate);
  return { kind: 'graded', value: grade.value, report: answerReport(grader, task, digest, grade) };
}

/** Whether a limit ended an output. */
export function isCut(finishReason: string | null): boolean {
  return finishReason !== null && CUT.has(finishReason);
}
