import { canonicalBytes } from '../../core/canonical-json.js';
import { type Digest, digestOf } from '../../core/digest.js';
import { BoundbookError } from '../../core/errors.js';
import type { JsonValue } from '../../core/json.js';
import { parseStrictJson } from '../../core/strict-json.js';
import type { LedgerHead } from '../../ledger/reader.js';
import type { Findings } from '../finding.js';
import type { BundleFiles } from './files.js';
import { type BundleIndex, bundleIndexSchema } from './index-file.js';
import { BUNDLE_FORMAT, INDEX_FILE } from './layout.js';
import { digestOfRegion, readWhole } from './region.js';

export const MAX_INDEX_BYTES = 64 * 1024 * 1024;
const where = { file: INDEX_FILE };

export interface ReadIndex {
  /** Identity of the bundle. */
  readonly digest: Digest;
  /** null when it has not the declared form. */
  readonly index: BundleIndex | null;
}

/**
 * Reads the index of a bundle. What is wrong with it is a finding.
 *
 * @throws {BoundbookError} BUNDLE_INVALID when there is none, or one of another version of the format.
 */
export function readIndex(files: BundleFiles, findings: Findings): ReadIndex {
  if (!files.sizes.has(INDEX_FILE)) {
    throw new BoundbookError('BUNDLE_INVALID', `${files.name} has no ${INDEX_FILE}: it is no bundle`, {
      hint: '`boundbook export` writes bundles; name the folder or the tar itself.',
    });
  }
  const bytes = readWhole(files.open(INDEX_FILE), MAX_INDEX_BYTES);
  const digest = digestOf(bytes);
  const value = parseOrFind(bytes, findings);
  if (value === undefined) return { digest, index: null };
  assertFormat(value);
  const parsed = bundleIndexSchema.safeParse(value);
  if (!parsed.success) {
    for (const { path, message } of parsed.error.issues.slice(0, 100)) {
      const pointer = `/${path.map(String).join('/')}`;
      findings.add({ code: 'BUNDLE_INDEX', where: { ...where, pointer }, message });
    }
    return { digest, index: null };
  }
  if (!canonicalBytes(value).equals(bytes)) {
    findings.add({
      code: 'BUNDLE_INDEX',
      where,
      message: 'its bytes are not the canonical form of its content',
    });
  }
  return { digest, index: parsed.data };
}

/**
 * Holds the files against the index: none missing, none surplus, all of them with their size and digest.
 *
 * @param later files whose digests are still being computed, see {@link checkFile}
 * @returns the digests of all others
 */
export function checkFiles(
  files: BundleFiles,
  index: BundleIndex | null,
  findings: Findings,
  later: ReadonlySet<string> = new Set(),
): ReadonlyMap<string, Digest> {
  for (const { path, what } of files.strangers) {
    findings.add({ code: 'BUNDLE_FILE', where: { file: path }, message: what });
  }
  const digests = new Map<string, Digest>();
  for (const path of [...files.sizes.keys()].filter((one) => one !== INDEX_FILE).sort()) {
    if (later.has(path)) continue;
    const digest = digestOfRegion(files.open(path));
    digests.set(path, digest);
    checkFile(path, { size: files.sizes.get(path) ?? 0, digest }, index, findings);
  }
  for (const path of Object.keys(index?.files ?? {}).sort()) {
    if (path !== INDEX_FILE && files.sizes.has(path)) continue;
    const message = `the index lists ${JSON.stringify(path.slice(0, 200))}, which is not there`;
    findings.add({ code: 'BUNDLE_INDEX', where, message });
  }
  return digests;
}

/** Holds one file against the index. */
export function checkFile(
  path: string,
  actual: { readonly size: number; readonly digest: Digest },
  index: BundleIndex | null,
  findings: Findings,
): void {
  if (index === null) return;
  const listed = Object.hasOwn(index.files, path) ? (index.files[path] ?? null) : null;
  if (listed === null) {
    const message = 'the index does not list this file';
    findings.add({ code: 'BUNDLE_INDEX', where: { file: path }, message });
  } else if (listed.size !== actual.size || listed.digest !== actual.digest) {
    findings.add({
      code: 'BUNDLE_INDEX',
      where: { file: path },
      message: `the index says ${listed.size} bytes with ${listed.digest}; there are ${actual.size} with ${actual.digest}`,
      evidence: { expected: { ...listed }, actual: { ...actual } },
    });
  }
}

/** Holds what the index says of the ledger against the ledger. */
export function checkStatements(
  index: BundleIndex,
  actual: {
    readonly manifest: Digest | null;
    readonly id: string | null;
    readonly head: LedgerHead;
    readonly redacted: number;
  },
  findings: Findings,
): void {
  const { head } = actual;
  const pairs: readonly (readonly [pointer: string, said: JsonValue, found: JsonValue])[] = [
    ['/manifest', index.manifest, actual.manifest],
    ['/ledger/id', index.ledger.id, actual.id],
    ['/ledger/size', index.ledger.size, head.size],
    ['/ledger/leaf', index.ledger.leaf, head.leaf],
    ['/ledger/root', index.ledger.root, head.root],
    ['/redacted', index.redacted, actual.redacted],
  ];
  for (const [pointer, said, found] of pairs) {
    if (said === found) continue;
    findings.add({
      code: 'BUNDLE_INDEX',
      where: { ...where, pointer },
      message: `the index says ${JSON.stringify(said)}; the ledger gives ${JSON.stringify(found)}`,
      evidence: { expected: found, actual: said },
    });
  }
}

/** undefined, with a finding, for what is no JSON: null is a value, and no index. */
function parseOrFind(bytes: Buffer, findings: Findings): JsonValue | undefined {
  try {
    return parseStrictJson(bytes, INDEX_FILE);
  } catch (error) {
    if (!(error instanceof BoundbookError)) throw error;
    findings.add({ code: 'BUNDLE_INDEX', where, message: error.message });
    return undefined;
  }
}

/** A later version may mean something else by everything. */
function assertFormat(value: JsonValue): void {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const format = isObject && Object.hasOwn(value, 'format') ? (value as { format: JsonValue }).format : null;
  if (typeof format !== 'string' || !/^boundbook\/bundle\/[0-9]+$/.test(format) || format === BUNDLE_FORMAT)
    return;
  throw new BoundbookError(
    'BUNDLE_INVALID',
    `the bundle has the format ${format}; this program knows ${BUNDLE_FORMAT}`,
    {
      hint: 'Use a newer release of Boundbook.',
    },
  );
}
