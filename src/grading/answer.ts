import type { JsonObject } from '../core/json.js';
import { trimAscii } from '../core/trim.js';
import type { Grader } from '../protocol/schema.js';
import { canonicalInteger } from './integer.js';
import { referenceAnswer } from './reference.js';

/** Graders that work on the text of an answer, without a command. */
export type AnswerGrader = Extract<Grader, { kind: 'exact' | 'integer' }>;

export function isAnswerGrader(grader: Grader): grader is AnswerGrader {
  return grader.kind === 'exact' || grader.kind === 'integer';
}

export interface AnswerGrade {
  readonly value: 0 | 1;
  /** What was compared with the reference; null when the text holds no answer of the grader's kind. */
  readonly extracted: string | null;
  readonly outcome: 'correct' | 'wrong' | 'empty' | 'not_an_integer';
}

/**
 * Grades the whole text of an answer. Nothing is searched for inside it: a text with anything beside the answer is
 * wrong. `exact` compares code unit by code unit after trimming ASCII white space on both sides; `integer` compares
 * values, see {@link canonicalInteger}.
 *
 * @param fields the task's fields, among them the reference
 * @throws {BoundbookError} TASKS_INVALID when the reference is missing or unusable
 */
export function gradeAnswer(grader: AnswerGrader, fields: JsonObject, answer: string): AnswerGrade {
  const reference = referenceAnswer(grader, fields);
  const text = trimAscii(answer.toWellFormed());
  if (text === '') return { value: 0, extracted: null, outcome: 'empty' };
  const extracted = grader.kind === 'integer' ? canonicalInteger(text) : text;
  if (extracted === null) return { value: 0, extracted: null, outcome: 'not_an_integer' };
  return extracted === reference
    ? { value: 1, extracted, outcome: 'correct' }
    : { value: 0, extracted, outcome: 'wrong' };
}
