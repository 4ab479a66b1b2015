import { z } from 'zod';
import { argv, byteCount, environmentNames, seconds, sources } from './forms.js';

export const command = z.strictObject({
  argv: argv.describe(
    '{request} {output} {task} {candidate} stand for paths, {container} for a name; never a shell',
  ),
  wall_s: seconds,
  idle_s: seconds.optional().describe('ends the stage when no byte was written for so long; absent: never'),
  output_bytes: byteCount.describe('how much of each output stream is kept'),
  env: environmentNames.optional().describe('environment variables that are passed on'),
  stop: argv
    .optional()
    .describe('run when the stage is over, however it ended: ends {container}, which may outlive its client'),
});

const artifact = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'is lower case letters, digits, dots, - and _'),
  file: z.string().min(1).describe('the file in the output folder of generate'),
  max_bytes: z
    .int()
    .min(1)
    .max(2 ** 28),
});

export const cgroup = z.strictObject({
  path: z
    .string()
    .regex(/^\//, 'begins with a slash')
    .max(4096)
    .describe('a cgroup folder that the runner may write'),
  memory_bytes: z
    .int()
    .min(2 ** 24)
    .max(2 ** 40)
    .optional()
    .describe('what each stage may use; absent: no limit of its own'),
});

export const commandRunner = z.strictObject({
  adapter: z.literal('command'),
  generate: command,
  grade: command,
  grace_s: seconds,
  candidate: z.string().min(1).describe('the file in the output folder that is the candidate'),
  artifacts: z
    .array(artifact)
    .max(32)
    .optional()
    .describe('further files of generate that are kept as evidence; none of them is needed'),
  cgroup: cgroup
    .optional()
    .describe('each stage runs in a control group of its own, and its memory is watched'),
  gpus: z.int().min(0),
  sources,
});

export type CommandRunner = z.infer<typeof commandRunner>;

export type Artifact = z.infer<typeof artifact>;
