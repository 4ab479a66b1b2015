import type { JsonObject } from '../core/json.js';
import { trimAscii } from '../core/trim.js';
import type { Grader } from '../protocol/schema/grader.js';
import { lastBoxed } from './boxed.js';
import { canonicalInteger } from './integer.js';
import { referenceAnswer } from './reference.js';

/** Graders that work on the text of an answer, without a command. */
export type AnswerGrader = Extract<Grader, { kind: 'exact' | 'integer' | 'boxed' }>;

export function isAnswerGrader(grader: Grader): grader is AnswerGrader {
  return grader.kind === 'exact' || grader.kind === 'integer' || grader.kind === 'boxed';
}

export interface AnswerGrade {
  readonly value: 0 | 1;
  /** What was compared with the reference; null when the text holds no answer of the grader's kind. */
  readonly extracted: string | null;
  readonly outcome: 'correct' | 'wrong' | 'empty' | 'not_an_integer' | 'no_box' | 'incomplete_box';
}

/**
 * Grades the text of an answer. `exact` and `integer` take it whole: a text with anything beside the answer is wrong.
 * `boxed` takes what stands in its last box, see {@link lastBoxed}. Texts are compared code unit by code unit after trimming
 * ASCII white space on both sides, integers by value, see {@link canonicalInteger}.
 *
 * @param fields the task's fields, among them the reference
 * @throws {BoundbookError} TASKS_INVALID when the reference is missing or unusable
 */
export function gradeAnswer(grader: AnswerGrader, fields: JsonObject, answer: string): AnswerGrade {
  const reference = referenceAnswer(grader, fields);
  const text = trimAscii(answer.toWellFormed());
  if (text === '') return unanswered('empty');
  if (grader.kind !== 'boxed') return compare(text, reference, grader.kind);
  const box = lastBoxed(text);
  if (box === 'none') return unanswered('no_box');
  if (box === 'incomplete') return unanswered('incomplete_box');
  const content = trimAscii(box.content);
  return content === '' ? unanswered('empty') : compare(content, reference, grader.compare);
}

function compare(text: string, reference: string, kind: 'exact' | 'integer'): AnswerGrade {
  const extracted = kind === 'integer' ? canonicalInteger(text) : text;
  if (extracted === null) return unanswered('not_an_integer');
  return extracted === reference
    ? { value: 1, extracted, outcome: 'correct' }
    : { value: 0, extracted, outcome: 'wrong' };
}

function unanswered(outcome: AnswerGrade['outcome']): AnswerGrade {
  return { value: 0, extracted: null, outcome };
}
