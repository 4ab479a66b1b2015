import { join } from 'node:path';
import { z } from 'zod';
import { type Digest, isDigest } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { readFileBounded } from '../../core/files.js';
import { parseStrictJson } from '../../core/strict-json.js';
import type { Stage } from '../../protocol/schema/signals.js';

const MAX_BYTES = 2000;

const folder = z.string().regex(/^[0-9]+:[0-9]+$/);

const beginning = z.strictObject({
  attempt: z.string(),
  /** What is graded; null while it is made. */
  candidate: z.custom<Digest>(isDigest, 'not a digest').nullable(),
  boot_id: z.string(),
  /** Name of the stage's room in the attempt's folder. */
  room: z.string().regex(/^(generate|grade)-[0-9a-f]{16}$/),
  /** Of the room and of its output folder. */
  folders: z.tuple([folder, folder]),
});

/** The mark that a stage began, and where. */
export type StageBeginning = z.infer<typeof beginning>;

export function beganName(stage: Stage): string {
  return `${stage}.began`;
}

/** Null when there is no such mark, or one that is torn, altered or about something else. */
export async function readBeginning(
  home: string,
  stage: Stage,
  attempt: string,
): Promise<StageBeginning | null> {
  const path = join(home, beganName(stage));
  try {
    const bytes = await readFileBounded(path, { maxBytes: MAX_BYTES, followLinks: false });
    const parsed = beginning.safeParse(parseStrictJson(bytes, path));
    if (!parsed.success) return null;
    const { data } = parsed;
    return data.attempt === attempt && data.room.startsWith(`${stage}-`) ? data : null;
  } catch (error) {
    if (error instanceof BoundbookError) return null;
    throw error;
  }
}
