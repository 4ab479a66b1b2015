import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  auditBundle,
  auditJson,
  BoundbookError,
  CompactRange,
  canonicalText,
  decodeEntry,
  digestOf,
  exportBundle,
  FINDINGS,
  inclusionProof,
  leafHash,
  nodeHash,
  parseManifest,
  renderAudit,
  type SubtreeSource,
  verifyInclusion,
} from '../../src/index.js';
import { makeSmallBook } from '../support/small-book.js';

/** What an auditor would write with the library alone, against a bundle from a stranger. */
let root: string;
let bundle: string;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'boundbook-library-'));
  await makeSmallBook(root);
  bundle = (await exportBundle(root, undefined, { out: 'bundle' })).folder;
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

function bodies(): Buffer[] {
  const lines = readFileSync(join(bundle, 'ledger/entries.jsonl'), 'utf8').trimEnd().split('\n');
  return lines.map((line) => Buffer.from(line));
}

test('a whole audit, as value, as JSON and as text', async () => {
  const result = await auditBundle(bundle);
  expect(result.verdict).toBe('clean');
  expect(auditJson(result)).toMatchObject({ schema: 'boundbook/audit/1', findings: [] });
  expect(renderAudit(result)).toContain('audit: clean, no findings');
  expect(Object.keys(FINDINGS)).toContain('EXPOSURE_UNDERSTATED');
  await expect(auditBundle(join(root, 'nothing'))).rejects.toBeInstanceOf(BoundbookError);
});

test('the tree of the entries, and the proof that one of them is in it', async () => {
  const leaves = bodies().map((body) => leafHash(body));
  const range = new CompactRange();
  for (const leaf of leaves) range.append(leaf);
  const { ledger } = await auditBundle(bundle);
  expect(range.root().toString('hex')).toBe(ledger.head.root);
  const rootOf = (from: number, count: number): Buffer => {
    if (count === 1) return leaves[from] ?? Buffer.alloc(0);
    return nodeHash(rootOf(from, count / 2), rootOf(from + count / 2, count / 2));
  };
  const source: SubtreeSource = {
    size: leaves.length,
    subtree: (level, index) => rootOf(index * 2 ** level, 2 ** level),
  };
  const proof = inclusionProof(source, 5, leaves.length);
  const claim = { index: 5n, size: BigInt(leaves.length), root: range.root(), proof };
  verifyInclusion({ ...claim, leaf: leaves[5] ?? Buffer.alloc(32) });
  expect(() => verifyInclusion({ ...claim, leaf: leaves[6] ?? Buffer.alloc(32) })).toThrowError(
    expect.objectContaining({ code: 'PROOF_INVALID' }) as Error,
  );
});

test('entries and manifest are what their bytes say', () => {
  const [first] = bodies().map((body) => decodeEntry(body));
  if (first?.ok !== true || first.entry.type !== 'ledger.opened') throw new Error('no opening');
  const { manifest } = first.entry;
  const files = readdirSync(join(bundle, 'manifests')).map((name) => join(bundle, 'manifests', name));
  const file = files.find((path) => digestOf(readFileSync(path)) === manifest) ?? '';
  const bytes = readFileSync(file);
  expect(digestOf(bytes)).toBe(manifest);
  const parsed = parseManifest(bytes, basename(file));
  expect(parsed.digest).toBe(manifest);
  expect(canonicalText(parsed.manifest)).toBe(bytes.toString());
});
