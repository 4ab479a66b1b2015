import { z } from 'zod';
import { digest, ended, hex32, processIdentity, seconds, signals } from './forms.js';

/** A file or folder of a corrected grader. */
const graderSource = z.strictObject({
  kind: z.enum(['file', 'tree']),
  files: z.int().min(1),
  size: z.int().min(0).describe('bytes of all files'),
  digest: digest.describe('of the file, or of the tree as manifests have it'),
});

/** B6: outputs graded again with a corrected grader. */
export const REGRADING_ENTRIES = [
  /** B6: outputs are graded again with a corrected grader, beside what they settled on. */
  z.strictObject({
    type: z.literal('regrading.opened'),
    regrading: hex32,
    grader: digest.describe('canonical JSON of the grader, as an object'),
    conditions: z.array(z.string()).min(1).max(1000),
    reason: z.string().min(1).max(4000),
    slots: z.strictObject({
      count: z.int().min(1),
      digest: digest.describe(
        'file digest of the ids of all slots that a report settled, ascending, one a line',
      ),
    }),
    command: z
      .strictObject({
        process: processIdentity,
        schema: digest.exactOptional().describe('the declared schema of its reports, as an object'),
        sources: z.record(z.string(), graderSource),
      })
      .exactOptional()
      .describe('the grader is a command: its files as they were hashed, and the process that runs it'),
  }),
  /** A regrading by a command goes on, with the same files, when the process that ran it is gone. */
  z.strictObject({ type: z.literal('regrading.resumed'), regrading: hex32, process: processIdentity }),
  z.strictObject({
    type: z.literal('regrading.recorded'),
    regrading: hex32,
    slot: hex32,
    candidate: digest,
    before: z.strictObject({ value: z.number(), report: digest }).describe('what the slot settled on'),
    result: z.discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('graded'), value: z.number(), report: digest }),
      z.strictObject({ kind: z.literal('truncated') }),
      z.strictObject({ kind: z.literal('failed'), signals }).describe('the command gave no valid report'),
    ]),
    stage: z
      .strictObject({ objects: ended.objects, finish_reason: ended.finish_reason, seconds })
      .exactOptional()
      .describe('how the command ended; absent when the grader reads an answer'),
  }),
  z.strictObject({
    type: z.literal('regrading.closed'),
    regrading: hex32,
    changed: z.int().min(0),
    same: z.int().min(0),
    truncated: z.int().min(0),
    failed: z.int().min(0).exactOptional().describe('of a command; absent when the grader reads an answer'),
  }),
] as const;
