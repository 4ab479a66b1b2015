import { z } from 'zod';
import { path } from './forms.js';

const rewardRange = z.strictObject({ min: z.number(), max: z.number() });

export const reportGrader = z.strictObject({
  kind: z.literal('report').describe("the grade command's report decides"),
  expected_tests: z.string().min(1).optional().describe('the task field that lists the expected tests'),
  reward: rewardRange,
  report_schema: path.optional().describe('a JSON Schema (2020-12) that every report must pass'),
});

export const graderSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('exact').describe('the answer equals the task field, after trimming white space'),
    answer: z.string().min(1).describe('the task field that holds the reference answer'),
  }),
  z.strictObject({
    kind: z.literal('integer').describe('the whole answer is one decimal integer of the same value'),
    answer: z.string().min(1).describe('the task field that holds the reference answer'),
  }),
  z.strictObject({
    kind: z
      .literal('boxed')
      .describe('what stands in the last \\boxed{…}; one that is not closed is no answer'),
    answer: z.string().min(1).describe('the task field that holds the reference answer'),
    compare: z.enum(['exact', 'integer']).describe('how both are compared'),
  }),
  reportGrader,
  z.strictObject({
    kind: z.literal('reward').describe("the reward that Harbor's verifier gives decides"),
    key: z.string().min(1).max(200).describe('the name of the reward; other rewards are not read'),
    reward: rewardRange,
  }),
]);

export type Grader = z.infer<typeof graderSchema>;
