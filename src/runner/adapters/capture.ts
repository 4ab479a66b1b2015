import { z } from 'zod';
import { canonicalBytes } from '../../core/canonical-json.js';
import { BoundbookError } from '../../core/errors.js';
import { parseStrictJson } from '../../core/strict-json.js';
import type { StageExit } from './stage-process.js';

/** Name of the object in a stage's entry. */
export const CAPTURE = 'capture';

const bytes = z.int().min(0);
const stream = z.strictObject({ seen: bytes, kept: bytes });

/** What has to be said of a stage's evidence beside the evidence itself; docs/formats/evidence.md. */
const captureSchema = z
  .strictObject({
    /** Output streams of which more was seen than kept. */
    streams: z
      .strictObject({ stdout: stream.exactOptional(), stderr: stream.exactOptional() })
      .exactOptional(),
    /** Declared artifacts that were not kept, and why. */
    artifacts: z
      .record(
        z.string(),
        z.discriminatedUnion('found', [
          z.strictObject({ found: z.literal('absent') }),
          z.strictObject({ found: z.literal('refused'), reason: z.string().min(1) }),
          z.strictObject({ found: z.literal('too_large'), size: bytes }),
        ]),
      )
      .exactOptional(),
    /** A stop command that did not end with exit status 0. */
    stop: z
      .strictObject({
        exit_status: z.int().nullable(),
        signal: z.string().nullable(),
        timed_out: z.boolean(),
        text: z.string().nullable(),
      })
      .exactOptional(),
  })
  .refine((capture) => Object.values(capture).every((part) => Object.keys(part).length > 0))
  .refine((capture) => Object.keys(capture).length > 0);

export type Capture = z.infer<typeof captureSchema>;
export type ArtifactWord = NonNullable<Capture['artifacts']>[string];

type Ended = Pick<StageExit, 'stdout' | 'stderr' | 'stopFailure'>;

/** Null when there is nothing to say. @param exit null for a command that was not run */
export function captureOf(exit: Ended | null, words: Readonly<Record<string, ArtifactWord>>): Buffer | null {
  const streams = exit === null ? {} : cutStreams(exit);
  const capture: Capture = {
    ...(Object.keys(streams).length === 0 ? {} : { streams }),
    ...(Object.keys(words).length === 0 ? {} : { artifacts: { ...words } }),
    ...(exit === null || exit.stopFailure === null ? {} : { stop: { ...exit.stopFailure } }),
  };
  return Object.keys(capture).length === 0 ? null : canonicalBytes(capture);
}

function cutStreams(exit: Ended): NonNullable<Capture['streams']> {
  const streams: Capture['streams'] = {};
  for (const name of ['stdout', 'stderr'] as const) {
    const { seen, kept, lost } = exit[name];
    if (seen > kept && lost === null) streams[name] = { seen, kept };
  }
  return streams;
}

/** Null when the bytes are not the canonical JSON of a capture. */
export function readCapture(content: Buffer): Capture | null {
  try {
    const value = parseStrictJson(content, CAPTURE);
    const capture = captureSchema.safeParse(value);
    return capture.success && canonicalBytes(capture.data).equals(content) ? capture.data : null;
  } catch (error) {
    if (error instanceof BoundbookError) return null;
    throw error;
  }
}
