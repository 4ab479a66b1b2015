import { createHash } from 'node:crypto';
import { BoundbookError } from '../../core/errors.js';

/** Git's objects, hashed and read here, so that no word of a repository has to be believed. Pure. */

/** How a repository names objects. */
export type ObjectFormat = 'sha1' | 'sha256';

/** The name of an object: its hash over `<type> <size>\0<content>`. */
export function objectId(
  type: 'blob' | 'commit' | 'tree',
  content: Uint8Array,
  format: ObjectFormat,
): string {
  return createHash(format).update(`${type} ${content.length}\0`).update(content).digest('hex');
}

export interface Commit {
  readonly tree: string;
  readonly parents: readonly string[];
}

/** The head of a commit: its tree, then its parents. @throws {BoundbookError} GIT_UNAVAILABLE for another form */
export function readCommit(content: Buffer): Commit {
  const lines = content.toString('latin1').split('\n');
  const tree = /^tree ([0-9a-f]{40,64})$/.exec(lines[0] ?? '')?.[1];
  if (tree === undefined) return refuse('a commit does not begin with its tree');
  const parents: string[] = [];
  for (const line of lines.slice(1)) {
    const parent = /^parent ([0-9a-f]{40,64})$/.exec(line)?.[1];
    if (parent === undefined) break;
    parents.push(parent);
  }
  return { tree, parents };
}

/** The object of an entry of a tree; null when there is none of that name. Names are bytes, here as Latin-1. */
export function findInTree(content: Buffer, name: string, format: ObjectFormat): string | null {
  const idBytes = format === 'sha1' ? 20 : 32;
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(0x20, at);
    const end = content.indexOf(0, space);
    if (space === -1 || end === -1 || end + 1 + idBytes > content.length) refuse('a tree is cut short');
    const id = content.subarray(end + 1, end + 1 + idBytes);
    if (content.toString('latin1', space + 1, end) === name) return id.toString('hex');
    at = end + 1 + idBytes;
  }
  return null;
}

function refuse(reason: string): never {
  throw new BoundbookError('GIT_UNAVAILABLE', `the repository is damaged: ${reason}`, {
    hint: 'Clone it anew; `git fsck` shows damage.',
  });
}
