import { z } from 'zod';
import { id } from './forms.js';

const contrast = z.strictObject({
  id,
  minuend: id,
  subtrahend: id,
  queue: id,
  role: z.enum(['primary', 'secondary', 'exploratory']),
});

const decision = z.strictObject({
  id,
  contrast: id,
  comparator: z.enum(['>', '>=', '<', '<=']),
  threshold: z.number(),
  when_met: z.string().min(1),
  otherwise: z.string().min(1),
});

export const analysis = z.strictObject({
  scores: z.array(z.strictObject({ id, queue: id })).min(1),
  contrasts: z.array(contrast),
  tables: z
    .array(
      z.strictObject({
        id,
        queue: id,
        partitions: z.array(id).min(1),
        role: z.enum(['secondary', 'exploratory']),
      }),
    )
    .optional(),
  decisions: z.array(decision).optional(),
  interval: z.strictObject({
    method: z.literal('two_way_bootstrap'),
    resamples: z.int().min(100).max(1_000_000),
    seed: z.int().min(0),
    level: z.number().gt(0).lt(1),
  }),
});

export const precision = z.strictObject({
  queue: id,
  assumed_accuracy: z.number().min(0).max(1),
  max_standard_error: z.number().positive(),
});

export type Contrast = z.infer<typeof contrast>;

export type Decision = z.infer<typeof decision>;
