import { z } from 'zod';
import { graderSchema } from './grader.js';

const decoding = z.strictObject({
  temperature: z.number().min(0).max(10),
  top_p: z.number().min(0).max(1),
  top_k: z.int().min(-1),
  min_p: z.number().min(0).max(1),
  max_tokens: z.int().min(1),
  stop: z.array(z.string().min(1)).max(4).optional(),
  presence_penalty: z.number().optional(),
  frequency_penalty: z.number().optional(),
  repetition_penalty: z.number().optional(),
});

const loopStop = z.strictObject({
  unit: z.enum(['words', 'characters']),
  length: z.int().min(1).max(256).describe('units in the repeated sequence'),
  repeats: z.int().min(2).max(65_536).describe('how often it must stand in the window'),
  window: z.int().min(2).max(65_536).describe('how many of the last units are looked at'),
});

export const condition = z.strictObject({
  prompt: z.strictObject({
    system: z.string().optional(),
    user: z.string().min(1).describe('{field} stands for a field of the task; {{ and }} for braces'),
  }),
  decoding,
  reasoning: z
    .enum(['on', 'off'])
    .optional()
    .describe(
      'sent as chat_template_kwargs.enable_thinking, which a template without such a flag ignores; absent: not sent',
    ),
  grader: graderSchema,
  loop_stop: loopStop
    .optional()
    .describe(
      'a generation that repeats itself so is ended there, and graded as it is; needs a streamed answer',
    ),
  execution: z
    .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
    .optional()
    .describe('further shared conditions (context, time factor, network) that are part of the identity'),
});

export type Condition = z.infer<typeof condition>;

export type Decoding = Condition['decoding'];

export type LoopStop = z.infer<typeof loopStop>;
