import { failureSignals } from '../../attempts/signals.js';
import type { Digest } from '../../core/digest.js';
import { digestOf } from '../../core/digest.js';
import { type AnswerGrader, gradeAnswer } from '../../grading/answer.js';
import { answerReport } from '../../grading/report.js';
import { type GradeEnd, NOTHING_MORE, secondsSince, type Work } from './adapter.js';

/**
 * Grades the text of a candidate in this process. The candidate is read as UTF-8 with replacement characters, so that
 * no byte that a model can write costs its slot (F-87).
 */
export function gradeText(grader: AnswerGrader, work: Work, candidate: Buffer): GradeEnd {
  const start = performance.now();
  const digest: Digest = digestOf(candidate);
  try {
    const grade = gradeAnswer(grader, work.fields, candidate.toString('utf8'));
    const bytes = answerReport(grader, work.slot.task, digest, grade);
    return { kind: 'report', bytes, value: grade.value, ...NOTHING_MORE, seconds: secondsSince(start) };
  } catch (error) {
    const signals = failureSignals({
      stage: 'grade',
      phase: 'running',
      cause: 'grader_fault',
      exception: error instanceof Error ? error.name : null,
      text: error instanceof Error ? error.message : String(error),
    });
    return { kind: 'failure', signals, ...NOTHING_MORE, seconds: secondsSince(start) };
  }
}
