import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { auditBundle } from '../../src/audit/audit.js';
import { readManifests } from '../../src/audit/bundle/bundle-manifests.js';
import { EntriesFile } from '../../src/audit/bundle/entries-file.js';
import { exportBundle } from '../../src/audit/bundle/export.js';
import type { BundleFiles } from '../../src/audit/bundle/files.js';
import { openFolder } from '../../src/audit/bundle/folder-files.js';
import { checkFiles, checkStatements, readIndex } from '../../src/audit/bundle/index-audit.js';
import { PackObjects } from '../../src/audit/bundle/pack-objects.js';
import type { Region } from '../../src/audit/bundle/region.js';
import { openTar } from '../../src/audit/bundle/tar-files.js';
import { Findings } from '../../src/audit/finding.js';
import { ObjectShelf } from '../../src/audit/objects.js';
import type { AuditResult } from '../../src/audit/result.js';
import { canonicalText } from '../../src/core/canonical-json.js';
import { digestOf } from '../../src/core/digest.js';
import { ChainVerifier } from '../../src/ledger/chain.js';
import { decodeEntry } from '../../src/ledger/codec.js';
import type { Entry } from '../../src/ledger/entries/entry.js';
import { CompactRange, leafHash } from '../../src/ledger/merkle.js';
import { readAttestation } from '../../src/manifest/attestations.js';
import { temporaryFolder } from '../audit/bundle/support.js';
import { filesBelow, linesOf } from '../support/loose-bundle.js';
import { FEW, outcomeOf, signedBook, TRUST } from './book.js';
import { FlippedFile, flipAll, flipped, maskAt, type Outcome, refusedOr, Tally } from './flips.js';

/**
 * Every byte of every file of a bundle is flipped. The index alone finds each of them by a digest, which is the first
 * layer. The second asks more: the index was made to agree, as somebody would who has the files, and what lies inside must
 * give the flip away. A flip goes through the very function of the audit that judges its kind of file; samples of each
 * kind go through the whole audit.
 */

/** Thousands of looks at files; a busy machine takes its time. */
vi.setConfig({ testTimeout: 300_000 });

const tally = new Tally('flips of a bundle');
let folder: string;
let tar: string;
let paths: string[];
let clean: AuditResult;

beforeAll(async () => {
  const { root } = await signedBook(temporaryFolder(), FEW, true);
  await exportBundle(root, undefined, { out: 'bundle', tar: 'bundle.tar' });
  folder = join(root, 'bundle');
  tar = join(root, 'bundle.tar');
  paths = filesBelow(folder);
  clean = await auditBundle(folder, TRUST);
  expect(clean.findings).toEqual([]);
});

const found = (findings: Findings): Outcome => (findings.total > 0 ? 'found' : 'unnoticed');
const place = (path: string): string => join(folder, path);

function only(pattern: RegExp): string {
  const [path, ...more] = paths.filter((one) => pattern.test(one));
  if (path === undefined || more.length > 0) throw new Error(`${pattern} is not one file`);
  return path;
}

/** Opens the folder for one look at it. */
function look<T>(use: (files: BundleFiles) => T): T {
  const files = openFolder(folder);
  try {
    return use(files);
  } finally {
    files.close();
  }
}

/** Size and digest of a file in the index as the file is now; the rest of the index stays. */
async function reindexed<T>(path: string, use: () => Promise<T>): Promise<T> {
  const file = place('bundle.json');
  const before = readFileSync(file);
  const index = JSON.parse(before.toString('utf8')) as { files: Record<string, object> };
  const bytes = readFileSync(place(path));
  index.files[path] = { size: bytes.length, digest: digestOf(bytes) };
  writeFileSync(file, canonicalText(index));
  try {
    return await use();
  } finally {
    writeFileSync(file, before);
  }
}

const whole = async () =>
  refusedOr(async () => {
    const result = await auditBundle(folder, TRUST);
    return outcomeOf(result, clean);
  });

describe('the index', () => {
  test('knows each byte of each file', async () => {
    const { index } = look((files) => readIndex(files, new Findings()));
    if (index === null) throw new Error('no index');
    for (const path of paths.filter((one) => one !== 'bundle.json')) {
      const files = openFolder(folder);
      // The file alone: hashing the others again and again would prove nothing.
      const alone = { ...files, sizes: new Map([[path, statSync(place(path)).size]]) };
      const listed = { ...index, files: { [path]: index.files[path] ?? { size: 0, digest: digestOf('') } } };
      let opened = 0;
      await flipAll(
        place(path),
        () => {
          const findings = new Findings();
          checkFiles(alone, listed, findings);
          if (++opened % 256 === 0) files.close();
          return found(findings);
        },
        (outcome, at) => tally.count(`${kindOf(path)}, by the index`, `${path} byte ${at}`, outcome),
        { masks: (at) => [maskAt(at)] },
      );
      files.close();
    }
    expect(tally.unnoticed()).toEqual([]);
  });

  test('is known itself by what it speaks of', async () => {
    const { head } = clean.ledger;
    const opened = entriesOf(readFileSync(place('ledger/entries.jsonl')))[0];
    if (opened?.type !== 'ledger.opened') throw new Error('no opening');
    const actual = { manifest: opened.manifest, id: opened.ledger, head, redacted: 0 };
    await flipAll(
      place('bundle.json'),
      () =>
        refusedOr(() =>
          look((files) => {
            const findings = new Findings();
            const { index } = readIndex(files, findings);
            checkFiles(files, index, findings);
            if (index !== null) checkStatements(index, actual, findings);
            return found(findings);
          }),
        ),
      (outcome, at) => tally.count('bundle.json', `byte ${at}`, outcome),
      { masks: (at) => [maskAt(at)] },
    );
    expect(tally.unnoticed()).toEqual([]);
  });

  test('samples of every file through the whole audit', async () => {
    for (const path of paths) {
      const { size } = statSync(place(path));
      await flipAll(
        place(path),
        whole,
        (outcome, at) => tally.count('whole audits', `${path} byte ${at}`, outcome),
        { every: Math.ceil(size / 6), masks: (at) => [maskAt(at)] },
      );
    }
    expect(tally.unnoticed()).toEqual([]);
  });
});

function kindOf(path: string): string {
  return path.includes('/') ? path.replace(/\/.*\./, '/*.') : path;
}

function entriesOf(bytes: Buffer): Entry[] {
  return linesOf(bytes).map((body) => {
    const decoded = decodeEntry(body);
    if (!decoded.ok) throw new Error(decoded.reason);
    return decoded.entry;
  });
}

describe('with an index that agrees', () => {
  test('entries: each byte breaks the chain, and in the last entry alone the head', async () => {
    const path = 'ledger/entries.jsonl';
    const lines = linesOf(readFileSync(place(path)));
    const entries = entriesOf(readFileSync(place(path)));
    const starts = lines.map((_, i) => lines.slice(0, i).reduce((sum, { length }) => sum + length + 1, 0));
    // What lies before the flipped entry is as it was: the chain is taken up there.
    const tailAt = (size: number) => ({
      size,
      leaf: size === 0 ? null : leafHash(lines[size - 1] ?? Buffer.of()),
      time: entries[size - 1]?.time ?? null,
    });
    const judge = (from: number, region: Region): Outcome => {
      const findings = new Findings();
      const verifier = new ChainVerifier(tailAt(from));
      const range = new CompactRange();
      for (const row of new EntriesFile(region, findings).rows(from)) {
        if (verifier.check(row).faults.length > 0 || findings.total > 0) return 'found';
        if (range.size === 0) for (const line of lines.slice(0, from)) range.append(leafHash(line));
        range.append(leafHash(row.body));
      }
      if (findings.total > 0) return 'found';
      expect(from).toBe(lines.length - 1);
      return range.root().toString('hex') === clean.ledger.head.root ? 'unnoticed' : 'found';
    };
    await flipAll(
      place(path),
      (at, region) =>
        judge(
          starts.findLastIndex((start) => start <= at),
          region,
        ),
      (outcome, at) => tally.count('entries, by chain and head', `byte ${at}`, outcome),
      { masks: (at) => [maskAt(at)] },
    );
    expect(tally.unnoticed()).toEqual([]);
  });

  test('objects: each byte of the pack, of headers and contents', async () => {
    const path = 'ledger/objects.pack';
    const entries = entriesOf(readFileSync(place('ledger/entries.jsonl')));
    await flipAll(
      place(path),
      (_, region) => {
        const findings = new Findings();
        const objects = new PackObjects(region, findings, null);
        const shelf = new ObjectShelf(objects, findings);
        for (const entry of entries) {
          shelf.meet(entry);
          if (findings.total > 0) return 'found';
        }
        objects.conclude(shelf);
        return found(findings);
      },
      (outcome, at) => tally.count('objects in the pack', `byte ${at}`, outcome),
    );
    expect(tally.unnoticed()).toEqual([]);
  });

  test('the manifest: each byte, by its name', async () => {
    await flipAll(
      place(only(/^manifests\//)),
      () =>
        look((files) => {
          const findings = new Findings();
          readManifests(files, findings);
          return found(findings);
        }),
      (outcome, at) => tally.count('manifest', `byte ${at}`, outcome),
      { masks: (at) => [maskAt(at)] },
    );
    expect(tally.unnoticed()).toEqual([]);
  });

  test('the signed checkpoint: each byte', async () => {
    const path = only(/^checkpoints\//);
    await flipAll(
      place(path),
      () => reindexed(path, whole),
      (outcome, at) => tally.count('checkpoint note', `byte ${at}`, outcome),
      { masks: (at) => [maskAt(at)] },
    );
    expect(tally.unnoticed()).toEqual([]);
  });

  test('the signature of the manifest: each byte', async () => {
    const path = only(/^attestations\//);
    const name = path.replace(/^.*\//, '');
    const original = readFileSync(place(path));
    const hint = original.indexOf('"keyid":"');
    const end = original.indexOf('"', hint + '"keyid":"'.length);
    for (let at = 0; at < original.length; at++) {
      const bytes = flipped(original, at, maskAt(at));
      const outcome = await refusedOr(async () => {
        // What is no attestation any more is the finding ATTESTATION_INVALID; the rest goes through the whole audit.
        readAttestation(name, bytes);
        writeFileSync(place(path), bytes);
        return reindexed(path, whole);
      });
      if (outcome === 'unnoticed' && at >= hint && at < end) {
        tally.exclude(
          'signature',
          'keyid is optional and a hint in DSSE: what counts is the key that verifies',
        );
      } else tally.count('signature', `byte ${at}`, outcome);
    }
    writeFileSync(place(path), original);
    expect(tally.unnoticed()).toEqual([]);
  });

  test('samples of every file that the rest vouches for', async () => {
    for (const path of paths.filter((one) => !/^bundle\.json$|sqlite$/.test(one))) {
      await flipAll(
        place(path),
        () => reindexed(path, whole),
        (outcome, at) => tally.count('whole audits, index made to agree', `${path} byte ${at}`, outcome),
        { every: Math.ceil(statSync(place(path)).size / 12), masks: (at) => [maskAt(at)] },
      );
    }
    expect(tally.unnoticed()).toEqual([]);
  });
});

describe('the tar', () => {
  test('each byte of its headers; what fills up a block belongs to no file', async () => {
    const members = openTar(tar);
    // Contents of files, where the index looks.
    const regions = [...members.sizes.keys()].map((path) => members.open(path));
    members.close();
    const flippedTar = new FlippedFile(tar);
    const isSumEnd = (at: number) => at % 512 === 154 || at % 512 === 155;
    const inContent = (at: number) => regions.find(({ start, size }) => at >= start && at < start + size);
    const inFill = (at: number) =>
      regions.some(({ start, size }) => at >= start + size && at < start + Math.ceil(size / 512) * 512);
    for (let at = 0; at < flippedTar.bytes.length; at++) {
      if (inContent(at) !== undefined) continue;
      if (inFill(at)) {
        tally.exclude('tar headers', 'zeros behind a file, up to the end of its block: part of no file');
        continue;
      }
      flippedTar.flip(at, maskAt(at));
      const outcome = await refusedOr(() => {
        const files = openTar(tar);
        files.close();
        const differs = [...members.sizes].some(([path, size]) => files.sizes.get(path) !== size);
        return files.strangers.length > 0 || differs ? 'found' : 'unnoticed';
      });
      if (outcome === 'unnoticed' && isSumEnd(at)) {
        tally.exclude('tar headers', 'what ends the digits of a checksum: part of no name and no size');
      } else tally.count('tar headers', `byte ${at}`, outcome);
      flippedTar.restore(at);
    }
    flippedTar.close();
    expect(tally.unnoticed()).toEqual([]);
  });
});
