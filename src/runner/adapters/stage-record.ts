import { join } from 'node:path';
import { z } from 'zod';
import type { FailureSignals } from '../../attempts/signals.js';
import { canonicalBytes } from '../../core/canonical-json.js';
import { type Digest, digestOf, isDigest } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import { readFileBounded, writeFileDurable } from '../../core/files.js';
import { parseStrictJson } from '../../core/strict-json.js';
import { type DraftOf, entryDraftSchema } from '../../ledger/entries/entry.js';
import { signals } from '../../ledger/entries/forms.js';
import type { LedgerObject } from '../../ledger/objects.js';

type StageDraft = DraftOf<'stage.finished'>;

export interface StageRecord {
  readonly draft: StageDraft;
  readonly objects: readonly LedgerObject[];
  /** Of a candidate: how its process ended, when that was no end by itself with exit status 0. */
  readonly cut?: FailureSignals;
}

const MAX_BYTES = 2 ** 31 - 1;
const LINE_FEED = 0x0a;

const headerSchema = z.strictObject({
  draft: entryDraftSchema,
  cut: signals.exactOptional(),
  objects: z.array(
    z.strictObject({ digest: z.custom<Digest>(isDigest, 'not a digest'), size: z.int().min(0) }),
  ),
});

/**
 * The durable mark that a stage of a command has ended, and in what: one file with the stage's entry in its first
 * line and then the bytes of every object that the entry names. It bridges the moment between the end of the process
 * and the ledger's commit: a session that finds it after a crash adopts exactly this end (law 3), whatever came later.
 */
export async function writeStageRecord(folder: string, { draft, objects, cut }: StageRecord): Promise<void> {
  const header = canonicalBytes({
    draft,
    ...(cut === undefined ? {} : { cut: { ...cut } }),
    objects: objects.map(({ digest, bytes }) => ({ digest, size: bytes.length })),
  });
  const parts = [header, Buffer.of(LINE_FEED), ...objects.map(({ bytes }) => bytes)];
  await writeFileDurable(join(folder, recordName(draft.stage)), Buffer.concat(parts));
}

/** The recorded end of a stage; null when there is none, or one that is torn, altered or about something else. */
export async function readStageRecord(
  folder: string,
  stage: StageDraft['stage'],
  attempt: string,
): Promise<StageRecord | null> {
  const path = join(folder, recordName(stage));
  try {
    const record = parseRecord(
      await readFileBounded(path, { maxBytes: MAX_BYTES, followLinks: false }),
      path,
    );
    return record?.draft.stage === stage && record.draft.attempt === attempt ? record : null;
  } catch (error) {
    if (error instanceof BoundbookError) return null;
    throw error;
  }
}

function parseRecord(bytes: Buffer, path: string): StageRecord | null {
  const end = bytes.indexOf(LINE_FEED);
  if (end < 0) return null;
  const header = headerSchema.safeParse(parseStrictJson(bytes.subarray(0, end), path));
  if (!header.success || header.data.draft.type !== 'stage.finished') return null;
  const objects: LedgerObject[] = [];
  let offset = end + 1;
  for (const { digest, size } of header.data.objects) {
    const content = bytes.subarray(offset, offset + size);
    if (digestOf(content) !== digest) return null;
    objects.push({ digest, bytes: content });
    offset += size;
  }
  if (offset !== bytes.length) return null;
  const { draft, cut } = header.data;
  return { draft, objects, ...(cut === undefined ? {} : { cut }) };
}

function recordName(stage: StageDraft['stage']): string {
  return `${stage}.ended`;
}
