import type { z } from 'zod';
import { BoundbookError } from '../core/errors.js';
import { type AnswerGrader, isAnswerGrader } from '../grading/answer.js';
import { graderSchema } from '../protocol/schema/grader.js';
import { parseYaml, YamlSyntaxFault } from '../protocol/yaml.js';

export const MAX_GRADER_BYTES = 65_536;

/**
 * A corrected grader as a person writes it: the value of a condition's `grader`, in YAML or JSON.
 *
 * @throws {BoundbookError} GRADER_INVALID
 */
export function readGraderFile(bytes: Buffer, path: string): AnswerGrader {
  const document = parseYaml(bytes.toString('utf8'));
  if (document instanceof YamlSyntaxFault) throw refuse(path, document.message);
  const [fault] = document.faults;
  if (fault !== undefined) throw refuse(path, fault.message);
  const reading = graderSchema.safeParse(document.value);
  if (!reading.success) throw refuse(path, issueText(reading.error));
  if (!isAnswerGrader(reading.data)) {
    throw refuse(path, 'a grade command is not run again: only exact, integer and boxed graders regrade');
  }
  return reading.data;
}

function issueText(error: z.ZodError): string {
  return error.issues
    .slice(0, 3)
    .map(({ path, message }) => `${path.length === 0 ? 'the whole' : path.join('.')}: ${message}`)
    .join('; ');
}

function refuse(path: string, what: string): BoundbookError {
  return new BoundbookError('GRADER_INVALID', `${path} holds no grader that can regrade: ${what}`, {
    hint: "Write the value of a condition's grader, for example { kind: boxed, answer: answer, compare: integer }.",
  });
}
