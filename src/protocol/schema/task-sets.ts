import { z } from 'zod';
import { count, id, path } from './forms.js';

export const taskSet = z.union([
  z.strictObject({
    file: path.describe('a JSONL file, one task object a line'),
    id: z.string().min(1).describe('the field that holds the task id'),
    count,
  }),
  z.strictObject({
    subset_of: id,
    ids: path.describe('a text file, one task id a line'),
    count,
  }),
  z.strictObject({
    union_of: z.array(id).min(2).describe('task sets that are merged task by task'),
    count,
  }),
]);

export type TaskSet = z.infer<typeof taskSet>;
