import { type Digest, isDigest } from '../core/digest.js';
import type { JsonObject, JsonValue } from '../core/json.js';
import { type Capture, readCapture } from '../runner/adapters/capture.js';

/** What a stage says of its own evidence. */
export interface ShownCapture {
  readonly attempt: string;
  readonly stage: string;
  readonly capture: Capture;
}

/**
 * Reads the captures that the entries of a slot name. Of masked entries nothing is named.
 *
 * @param read the bytes of an object, or null when it is not at hand
 */
export function capturesOf(
  entries: readonly JsonObject[],
  read: (digest: Digest) => Buffer | null,
): readonly ShownCapture[] {
  return entries.flatMap(({ type, attempt, stage, objects }) => {
    if (type !== 'stage.finished' || !isObject(objects)) return [];
    const digest = objects.capture;
    const bytes = typeof digest === 'string' && isDigest(digest) ? read(digest) : null;
    const capture = bytes === null ? null : readCapture(bytes);
    return capture === null ? [] : [{ attempt: String(attempt), stage: String(stage), capture }];
  });
}

/** Paragraphs for people. */
export function capturesText(captures: readonly ShownCapture[]): readonly string[] {
  return captures.map(({ attempt, stage, capture: { streams = {}, artifacts = {}, stop } }) =>
    [
      `Evidence of ${stage} in attempt ${attempt.slice(0, 8)}:`,
      ...Object.entries(streams).map(
        ([name, { seen, kept }]) => `  ${name} was cut: ${kept} of ${seen} bytes are kept`,
      ),
      ...Object.entries(artifacts).map(([name, word]) => `  artifact ${name} is not kept: ${reasonOf(word)}`),
      ...(stop === undefined ? [] : [`  the stop command failed: ${endOf(stop)}`]),
    ].join('\n'),
  );
}

export function capturesJson(captures: readonly ShownCapture[]): JsonValue {
  return captures.map(({ attempt, stage, capture }) => ({
    attempt,
    stage,
    capture: JSON.parse(JSON.stringify(capture)) as JsonValue,
  }));
}

function reasonOf(word: NonNullable<Capture['artifacts']>[string]): string {
  switch (word.found) {
    case 'absent':
      return 'there was no such file';
    case 'refused':
      return word.reason;
    case 'too_large':
      return `it had ${word.size} bytes`;
  }
}

function endOf({ exit_status, signal, timed_out, text }: NonNullable<Capture['stop']>): string {
  const end = timed_out ? 'it took longer than the grace time' : (signal ?? `exit ${exit_status}`);
  return text === null ? end : `${end}, ${JSON.stringify(text)}`;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
