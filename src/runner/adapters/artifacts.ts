import { closeSync } from 'node:fs';
import type { ObjectFolder } from '../../ledger/objects.js';
import { MAX_INLINE_BYTES } from '../../ledger/schema.js';
import type { Artifact } from '../../protocol/schema/command-runner.js';
import type { Evidence } from './adapter.js';
import type { ArtifactWord } from './capture.js';
import { collectFile, type Folder, openInside } from './collect.js';
import { blocksOf } from './spool.js';

export interface CollectedArtifacts {
  /** By `artifact/<name>`. */
  readonly objects: Readonly<Record<string, Evidence>>;
  /** Of those that are not kept, by name. */
  readonly words: Readonly<Record<string, ArtifactWord>>;
}

/**
 * Collects the declared artifacts that a hostile process left inside a folder; none of them is needed.
 *
 * @throws {BoundbookError} DISK_FULL or FILE_UNWRITABLE when one cannot be kept.
 */
export async function collectArtifacts(
  folder: Folder,
  artifacts: readonly Artifact[],
  store: ObjectFolder,
): Promise<CollectedArtifacts> {
  const objects: Record<string, Evidence> = {};
  const words: Record<string, ArtifactWord> = {};
  for (const { name, file, max_bytes } of artifacts) {
    const found = await collect(folder, file, max_bytes, store);
    if ('word' in found) words[name] = found.word;
    else objects[`artifact/${name}`] = found.evidence;
  }
  return { objects, words };
}

/** The same where the folder itself was damaged: none is kept. */
export function refusedArtifacts(artifacts: readonly Artifact[], reason: string): CollectedArtifacts {
  const words = artifacts.map(({ name }) => [name, { found: 'refused', reason }] as const);
  return { objects: {}, words: Object.fromEntries(words) };
}

async function collect(
  folder: Folder,
  file: string,
  maxBytes: number,
  store: ObjectFolder,
): Promise<{ readonly evidence: Evidence } | { readonly word: ArtifactWord }> {
  const opened = openInside(folder, file, maxBytes);
  switch (opened.kind) {
    case 'absent':
      return { word: { found: 'absent' } };
    case 'refused':
      return { word: { found: 'refused', reason: opened.reason } };
    case 'too_large':
      return { word: { found: 'too_large', size: opened.size } };
    case 'open':
  }
  try {
    if (opened.size > MAX_INLINE_BYTES) {
      return { evidence: { stored: await store.writeStream(blocksOf(opened.file)), size: opened.size } };
    }
  } finally {
    closeSync(opened.file);
  }
  const small = collectFile(folder, file, maxBytes);
  return small.kind === 'file'
    ? { evidence: small.bytes }
    : { word: { found: 'refused', reason: `${file} changed while it was read` } };
}
