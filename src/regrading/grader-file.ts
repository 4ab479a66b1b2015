import type { z } from 'zod';
import { BoundbookError } from '../core/errors.js';
import { type AnswerGrader, isAnswerGrader } from '../grading/answer.js';

import { checkCommandGrader } from '../protocol/command-checks.js';
import { pointerOf } from '../protocol/json-pointer.js';
import { FaultCollector } from '../protocol/references.js';
import { type CommandGrader, commandGraderSchema } from '../protocol/schema/command-grader.js';
import { graderSchema } from '../protocol/schema/grader.js';

import { parseYaml, YamlSyntaxFault } from '../protocol/yaml.js';

export const MAX_GRADER_BYTES = 65_536;

/** A grader that outputs can be graded with again: it reads answers, or it is a command. */
export type CorrectedGrader = AnswerGrader | CommandGrader;

/**
 * A corrected grader as a person writes it, in YAML or JSON: the value of a condition's `grader`; one of kind `report` with
 * its command beside it.
 *
 * @throws {BoundbookError} GRADER_INVALID
 */
export function readGraderFile(bytes: Buffer, path: string): CorrectedGrader {
  const document = parseYaml(bytes.toString('utf8'));
  if (document instanceof YamlSyntaxFault) throw refuse(path, document.message);
  const [fault] = document.faults;
  if (fault !== undefined) throw refuse(path, fault.message);
  const { value } = document;
  const isCommand = typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'report';
  return isCommand ? commandGrader(value, path) : answerGrader(value, path);
}

function answerGrader(value: unknown, path: string): AnswerGrader {
  const reading = graderSchema.safeParse(value);
  if (!reading.success) throw refuse(path, issueText(reading.error));
  if (isAnswerGrader(reading.data)) return reading.data;
  throw refuse(path, 'trials of Harbor are not run again: their reward is that of the verifier in the task');
}

function commandGrader(value: unknown, path: string): CommandGrader {
  const reading = commandGraderSchema.safeParse(value);
  if (!reading.success) throw refuse(path, issueText(reading.error), COMMAND_HINT);
  const collector = new FaultCollector();
  checkCommandGrader(reading.data, collector);
  const [fault] = collector.faults;
  if (fault === undefined) return reading.data;
  throw refuse(path, `${pointerOf(fault.path)}: ${fault.message}`, fault.hint);
}

function issueText(error: z.ZodError): string {
  return error.issues
    .slice(0, 3)
    .map(({ path, message }) => `${path.length === 0 ? 'the whole' : path.join('.')}: ${message}`)
    .join('; ');
}

const ANSWER_HINT =
  "Write the value of a condition's grader, for example { kind: boxed, answer: answer, compare: integer }.";
const COMMAND_HINT =
  'Beside kind, reward and expected_tests it has grade (as runner.grade of a protocol), grace_s and sources.';

function refuse(path: string, what: string, hint = ANSWER_HINT): BoundbookError {
  return new BoundbookError('GRADER_INVALID', `${path} holds no grader that can regrade: ${what}`, { hint });
}
