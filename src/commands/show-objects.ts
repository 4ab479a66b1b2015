import { type Digest, isDigest } from '../core/digest.js';
import type { JsonObject, JsonValue } from '../core/json.js';

/** An object that an attempt names, and may be shown. */
export interface ShownObject {
  readonly attempt: string;
  /** `request`, `candidate`, or what a stage kept: `generate, response`. */
  readonly name: string;
  readonly digest: Digest;
  /** Bytes; null when it is not at hand. */
  readonly size: number | null;
}

/**
 * The objects that the entries of a slot name, in order, each once for an attempt. Where a digest is masked nothing is named.
 *
 * @param read the bytes of an object, or null when it is not at hand
 */
export function objectsOf(
  entries: readonly JsonObject[],
  read: (digest: Digest) => Buffer | null,
): readonly ShownObject[] {
  const found: ShownObject[] = [];
  for (const entry of entries) {
    for (const [name, digest] of namedBy(entry)) {
      const attempt = String(entry.attempt);
      if (!isDigest(digest)) continue;
      if (found.some((one) => one.attempt === attempt && one.name === name && one.digest === digest))
        continue;
      found.push({ attempt, name, digest, size: read(digest)?.length ?? null });
    }
  }
  return found;
}

function namedBy({ type, stage, request, candidate, result, objects }: JsonObject): [string, JsonValue][] {
  if (type === 'attempt.started') {
    return [
      ['request', request ?? null],
      ['candidate', candidate ?? null],
    ];
  }
  if (type !== 'stage.finished') return [];
  const ended = isObject(result) ? result : {};
  return [
    ...Object.entries(isObject(objects) ? objects : {}).map(([name, digest]): [string, JsonValue] => [
      `${stage}, ${name}`,
      digest ?? null,
    ]),
    ['candidate', ended.candidate ?? null],
    ['report', ended.report ?? null],
  ];
}

/** Paragraphs for people, one for each attempt, and how to print an object. */
export function objectsText(objects: readonly ShownObject[]): readonly string[] {
  const attempts = [...new Set(objects.map(({ attempt }) => attempt))];
  return attempts.map((attempt, i) => {
    const rows = objects
      .filter((one) => one.attempt === attempt)
      .map(({ name, digest, size }) => {
        const bytes = size === null ? 'not at hand' : `${size} bytes`;
        return `  ${name} (${bytes})\n    ${digest}`;
      });
    const how = i === attempts.length - 1 ? ['`boundbook show DIGEST` prints one.'] : [];
    return [`Objects of attempt ${attempt.slice(0, 8)}:`, ...rows, ...how].join('\n');
  });
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
