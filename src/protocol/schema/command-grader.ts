import type { z } from 'zod';
import { cgroup, command } from './command-runner.js';
import { seconds, sources } from './forms.js';
import { reportGrader } from './grader.js';

/** A corrected grader that is a command: the condition's `grader`, and what the runner says of its grade stage (B6). */
export const commandGraderSchema = reportGrader.extend({
  grade: command,
  grace_s: seconds,
  cgroup: cgroup.optional(),
  sources: sources.refine((value) => Object.keys(value).length > 0, 'names no file of the grader'),
});

export type CommandGrader = z.infer<typeof commandGraderSchema>;
