import { z } from 'zod';
import { analysis, precision } from './analysis.js';
import { attempts } from './attempts.js';
import { condition } from './conditions.js';
import { fileName, id } from './forms.js';
import { model } from './models.js';
import { queue } from './queues.js';
import { runner } from './runner.js';
import { taskSet } from './task-sets.js';

/**
 * The protocol's shape (DESIGN §5). zod holds the form of each part; what refers to something else (arms to
 * models, queues to task sets) and what depends on the text (quoting, number forms) is checked in `read.ts`.
 * Nothing that affects an outcome has a default: a misspelt key must never silently change a run.
 */
export const protocolSchema = z.strictObject({
  boundbook: z.literal(1).describe('version of this format'),
  name: fileName,
  revision: z.int().min(1).max(9999),
  title: z.string().min(1),
  due: z.iso.date().optional().describe('when the report is due, quoted: "2026-12-31"'),
  task_sets: z.record(id, taskSet),
  models: z.record(id, model),
  conditions: z.record(id, condition),
  arms: z.record(id, z.strictObject({ model: id, condition: id })),
  queues: z.record(id, queue),
  sampling: z.strictObject({ namespace: id, bits: z.int().min(8).max(53) }),
  order: z.strictObject({
    group_by: z.array(z.enum(['queue', 'arm', 'training_seed', 'evaluation_seed'])),
    within: z.literal('hash'),
  }),
  runner,
  attempts,
  blinding: z.enum(['masked', 'none']),
  analysis,
  precision: z.array(precision).optional(),
  checkpoints: z
    .strictObject({
      every_attempts: z
        .int()
        .min(1)
        .max(1_000_000)
        .describe('attempts started between two checkpoints of a run'),
    })
    .optional()
    .describe('absent: at the start and the end of a run, and every 1000 attempts'),
  pending: z.array(id),
});

export type Protocol = z.infer<typeof protocolSchema>;
