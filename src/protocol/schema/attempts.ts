import { z } from 'zod';
import { id } from './forms.js';
import { CAUSES, HOST_EVENTS, PHASES, STAGES } from './signals.js';

const oneOrMore = <T extends z.ZodType>(item: T) => z.union([item, z.array(item).min(1)]);

const httpStatus = z.union([z.int().min(100).max(599), z.enum(['4xx', '5xx'])]);

const rule = z.strictObject({
  id,
  when: z
    .strictObject({
      stage: oneOrMore(z.enum(STAGES)).optional(),
      phase: oneOrMore(z.enum(PHASES)).optional(),
      cause: oneOrMore(z.enum(CAUSES)).optional(),
      http_status: oneOrMore(httpStatus).optional(),
      embedded_status: oneOrMore(httpStatus)
        .optional()
        .describe('the status inside an error body sent under 200'),
      exit_status: oneOrMore(z.int().min(0).max(255)).optional(),
      signal: oneOrMore(z.string().regex(/^SIG[A-Z0-9]+$/)).optional(),
      service_alive: z.boolean().optional(),
      first_token: z.boolean().optional().describe('of a streamed answer: whether any token had come'),
      oom_kill: z
        .boolean()
        .optional()
        .describe("whether the kernel ended a process of the stage's own control group for want of memory"),
      host_event: oneOrMore(z.enum(HOST_EVENTS)).optional(),
      exception: oneOrMore(z.string().min(1)).optional().describe('never suffices by itself'),
      text: z
        .string()
        .min(1)
        .optional()
        .describe('a regular expression over the error text; never suffices by itself'),
    })
    .refine((when) => Object.keys(when).length > 0, 'a rule needs at least one condition'),
  attribute: z.enum(['infrastructure', 'model', 'undetermined']),
  sufficient: z.boolean().describe('false: the signals hint at the cause but leave it undetermined'),
});

export const attempts = z.strictObject({
  replacements: z.int().min(0).max(1),
  regrades: z.int().min(0).max(1),
  breaker: z.int().min(1).describe('how many equal infrastructure failures in a row pause the run'),
  rules: z.array(rule).max(200),
  adjudication: z
    .enum(['required', 'none'])
    .optional()
    .describe('required: every undetermined slot has a verdict before outcomes are unblinded; absent: none'),
});

export type AttributionRule = z.infer<typeof rule>;

export type AttemptLimits = z.infer<typeof attempts>;
