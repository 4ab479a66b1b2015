import { createHash } from 'node:crypto';
import { type Digest, hexOf } from '../core/digest.js';

/** One file of a bound tree. */
export interface TreeEntry {
  /** Relative to the tree, `/` between the parts. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly digest: Digest;
}

/** What binds a tree: its files and the two digests over them. */
export interface Tree {
  /** Bytes of all files together. */
  readonly size: number;
  readonly files: number;
  readonly digest: Digest;
  readonly oms_root: Digest;
  readonly entries: readonly TreeEntry[];
}

/** UTF-8 byte order, which is code point order and differs from JavaScript's own order above U+FFFF. */
export function compareUtf8(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a, 'utf8'), Buffer.from(b, 'utf8'));
}

/** The tree over files in any order. */
export function treeOf(files: readonly TreeEntry[]): Tree {
  const entries = files
    .map(({ path, size, digest }) => ({ path, size, digest }))
    .sort((a, b) => compareUtf8(a.path, b.path));
  return {
    size: entries.reduce((sum, entry) => sum + entry.size, 0),
    files: entries.length,
    digest: treeDigest(entries),
    oms_root: omsRoot(entries),
    entries,
  };
}

/**
 * SHA-256 over the lines `<hex>  <path>\n` of entries in UTF-8 byte order (DESIGN §6): what `sha256sum` prints for
 * them, hashed once more. Names hold neither line breaks nor backslashes, so two trees can't share the lines.
 */
export function treeDigest(entries: readonly TreeEntry[]): Digest {
  const hash = createHash('sha256');
  for (const { path, digest } of entries) hash.update(`${hexOf(digest)}  ${path}\n`);
  return `sha256:${hash.digest('hex')}`;
}

/**
 * The root of OpenSSF model signing (model-signing-spec v1.0, section 6.5.1) over entries in code point order: the raw
 * digests, concatenated, hashed. It does not bind names; it serves to compare with a signed model.
 */
export function omsRoot(entries: readonly TreeEntry[]): Digest {
  const hash = createHash('sha256');
  for (const { digest } of entries) hash.update(Buffer.from(hexOf(digest), 'hex'));
  return `sha256:${hash.digest('hex')}`;
}
