import { z } from 'zod';
import { path } from './forms.js';

export const model = z.strictObject({
  training_seeds: z.array(z.int()).min(1).optional().describe('absent for a model that was not trained here'),
  weights: path.describe('a folder; {seed} stands for the training seed'),
  tokenizer: path.optional().describe('a file; {seed} stands for the training seed'),
});

export type Model = z.infer<typeof model>;
