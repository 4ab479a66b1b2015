import { z } from 'zod';
import { id } from './forms.js';

export const queue = z.strictObject({
  tasks: id,
  reps: z.int().min(1).max(100_000),
  arms: z.array(id).min(1),
  role: z.enum(['confirmatory', 'exploratory']),
  evaluation_seeds: z.array(z.int().min(0)).min(1).optional().describe('absent: one evaluation, seed 0'),
});

export type Queue = z.infer<typeof queue>;
