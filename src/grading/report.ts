import { canonicalBytes } from '../core/canonical-json.js';
import type { Digest } from '../core/digest.js';
import type { AnswerGrade, AnswerGrader } from './answer.js';

/** What a test can come to. A closed set: `passed` or `PASS` must not silently count as a failure. */
export const TEST_RESULTS = ['pass', 'fail', 'error', 'skip', 'timeout'] as const;
export type TestResult = (typeof TEST_RESULTS)[number];

/** The part of a report that Boundbook reads. A report may hold more. */
export interface GradingReport {
  readonly task: string;
  readonly candidate: Digest;
  readonly tests: Readonly<Record<string, TestResult>>;
  readonly reward: number;
}

/** How much of an extracted answer a report repeats; the candidate itself is kept whole as an object. */
const EXTRACT_LIMIT = 200;

/**
 * The report of an answer that was graded in this process: canonical JSON of the same form as a grade command's, so
 * that every settlement rests on a report object. Its one test is `answer`.
 *
 * @param candidate digest of the answer's UTF-8 bytes
 */
export function answerReport(
  grader: AnswerGrader,
  task: string,
  candidate: Digest,
  grade: AnswerGrade,
): Buffer {
  const { value, extracted, outcome } = grade;
  return canonicalBytes({
    task,
    candidate,
    tests: { answer: value === 1 ? 'pass' : 'fail' },
    reward: value,
    grader: { ...grader },
    extracted: extracted === null ? null : extracted.slice(0, EXTRACT_LIMIT).toWellFormed(),
    outcome,
  });
}
