import { z } from 'zod';
import { byteCount, seconds, sources } from './forms.js';
import { externalService, managedService } from './services.js';

export const openaiRunner = z.strictObject({
  adapter: z.literal('openai'),
  endpoint: z.enum(['chat', 'completions']),
  stream: z
    .boolean()
    .optional()
    .describe(
      'true: answers are streamed, so that what came of one that is cut is kept; absent: they are not',
    ),
  service: z.union([managedService, externalService]),
  limits: z.strictObject({
    request_s: seconds,
    queue_wait_s: z
      .number()
      .min(0)
      .max(24 * 3600),
    response_bytes: byteCount,
  }),
  sources,
});

export type OpenaiRunner = z.infer<typeof openaiRunner>;
