import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { audit, auditBundle } from '../../../src/audit/audit.js';
import { exportBundle } from '../../../src/audit/bundle/export.js';
import { openSnapshot } from '../../../src/audit/bundle/snapshot.js';
import { command } from '../../../src/commands/export.js';
import { digestOf } from '../../../src/core/digest.js';
import { openBook } from '../../../src/ledger/book.js';
import { LedgerStore } from '../../../src/ledger/store.js';
import { filesBelow, LooseBundle } from '../../support/loose-bundle.js';
import { LIVES, makeSmallBook, type SmallBook } from '../../support/small-book.js';
import { temporaryFolder } from './support.js';

function context(root: string) {
  const { signal } = new AbortController();
  const now = () => '2026-12-01T00:00:00.000Z';
  return { root, json: false, terminal: false, progress: () => undefined, signal, force: signal, now };
}

describe('the same ledger gives the same bytes', () => {
  test('in another workspace, under another name, as folder and as tar', async () => {
    const [a, b] = [await makeSmallBook(temporaryFolder()), await makeSmallBook(temporaryFolder())];
    const result = await audit(a.root, undefined);
    expect(result.findings).toEqual([]);
    expect(result.coverage?.map(({ settled, unresolved }) => [settled, unresolved])).toEqual([
      [6, 2],
      [3, 0],
    ]);
    const one = await exportBundle(a.root, undefined, { out: 'bundle', tar: 'bundle.tar' });
    const other = await exportBundle(b.root, undefined, { out: 'another', tar: 'another.tar' });
    expect(other.bundle).toBe(one.bundle);
    expect(one.bundle).toBe(digestOf(readFileSync(join(one.folder, 'bundle.json'))));
    const [tarA, tarB] = [one.tar, other.tar].map((tar) => readFileSync(tar?.file ?? ''));
    expect(tarA?.equals(tarB ?? Buffer.of())).toBe(true);
    expect(digestOf(tarA ?? '')).toBe(one.tar?.digest);
  });

  test('taken apart and written again it is the same', async () => {
    const { root } = await makeSmallBook(temporaryFolder());
    const { folder } = await exportBundle(root, undefined, { out: 'bundle' });
    const copy = LooseBundle.read(folder).write(join(root, 'copy'));
    expect(filesBelow(copy)).toEqual(filesBelow(folder));
    for (const path of filesBelow(folder)) {
      expect(readFileSync(join(copy, path)).equals(readFileSync(join(folder, path))), path).toBe(true);
    }
  });

  test('the tar is what GNU tar writes of such a folder, and unpacks to it', async ({ skip }) => {
    const { root } = await makeSmallBook(temporaryFolder());
    const { bundle, folder } = await exportBundle(root, undefined, { out: 'bundle', tar: 'bundle.tar' });
    const unpacked = join(root, 'unpacked');
    mkdirSync(unpacked);
    const tar = spawnSync('tar', ['-xf', 'bundle.tar', '-C', 'unpacked'], { cwd: root, encoding: 'utf8' });
    if (tar.error !== undefined) skip('no tar program');
    expect(tar).toMatchObject({ status: 0, stderr: '' });
    const top = `small.r1.${bundle.slice(7, 19)}`;
    expect(readdirSync(unpacked)).toEqual([top]);
    for (const path of filesBelow(folder)) {
      expect(readFileSync(join(unpacked, top, path)).equals(readFileSync(join(folder, path)))).toBe(true);
    }
    const written = ['-cf', 'gnu.tar', '-C', 'unpacked', top];
    execFileSync('tar', ['--format=gnu', ...written], { cwd: root });
    expect((await auditBundle(join(root, 'gnu.tar'))).findings).toEqual([]);
    execFileSync('tar', ['--format=posix', ...written], { cwd: root });
    expect((await auditBundle(join(root, 'gnu.tar'))).findings).toEqual([]);
  });
});

describe('one state of the ledger', () => {
  test('what is appended behind a snapshot is not in it', async () => {
    const book = await makeSmallBook(temporaryFolder(), { unblind: false });
    const snapshot = await openSnapshot(book.root, book.stored);
    try {
      append(book, 50);
      expect([...snapshot.records()].length).toBe(snapshot.head.size);
      expect((await audit(book.root, undefined)).ledger.head.size).toBe(snapshot.head.size + 50);
    } finally {
      snapshot.close();
    }
  });

  test('an export beside a writer gives a bundle that is whole', async () => {
    const book = await makeSmallBook(temporaryFolder(), { unblind: false, protocol: unblinded });
    const timer = setInterval(() => append(book, 3), 1);
    try {
      for (let i = 0; i < 5; i++) {
        const { folder, head } = await exportBundle(book.root, undefined, { out: `bundle-${i}` });
        const result = await auditBundle(folder);
        expect(result.findings).toEqual([]);
        expect(result.ledger.head).toEqual(head);
      }
    } finally {
      clearInterval(timer);
    }
  });
});

function unblinded(text: string): string {
  return text.replace('blinding: masked', 'blinding: none');
}

/** Entries that change nothing. */
function append(book: SmallBook, count: number): void {
  const store = LedgerStore.openWriter(book.ledger, { now: () => '2026-12-01T00:00:00.000Z' });
  try {
    const mismatches = [{ binding: 'weights/base', path: '.', expected: null, actual: null, reason: 'test' }];
    const refused = { type: 'gate.refused', manifest: book.stored.digest, mismatches, total: 1 } as const;
    store.append(Array.from({ length: count }, () => refused));
  } finally {
    store.close();
  }
}

describe('blinding (law 8)', () => {
  test('a blinded ledger does not leave, unless the ledger says why; nothing that is printed counts answers', async () => {
    const book = await makeSmallBook(temporaryFolder(), { unblind: false });
    const before = filesBelow(book.root);
    await expect(command.run([], { out: 'bundle' }, context(book.root))).rejects.toMatchObject({
      code: 'OUTCOME_BLINDED',
      exitCode: 2,
    });
    const added = filesBelow(book.root).filter((path) => !before.includes(path));
    expect(added.filter((path) => !/sqlite-(wal|shm)$/.test(path))).toEqual([]);
    const reason = 'the auditor asked for it';
    const { text, json } = await command.run(
      [],
      { out: 'bundle', beforeUnblinding: reason },
      context(book.root),
    );
    expect(text).not.toContain('objects');
    expect(json).toMatchObject({ objects: null });
    const opened = await openBook(book.root, book.stored, 'read');
    expect(opened.fold.noted).toMatchObject([
      { text: `Exported before unblinding, with every outcome by arm: ${reason}`, slots: { count: 11 } },
    ]);
    opened.close();
    const folder = join(book.root, 'bundle');
    expect(filesBelow(folder).filter((path) => path.startsWith('report/'))).toEqual([]);
    const result = await auditBundle(folder);
    expect(result.findings).toEqual([]);
    expect(result.remarks.join('\n')).toContain(reason);
    expect(JSON.stringify(result)).not.toContain('answers graded again":');
    expect(result.checked).toContain('answers graded again');
  });

  test('once outcomes are open, nothing is noted', async () => {
    const book = await makeSmallBook(temporaryFolder());
    const { head } = await exportBundle(book.root, undefined, { out: 'bundle', beforeUnblinding: 'no need' });
    const live = await audit(book.root, undefined);
    expect(live.ledger.head).toEqual(head);
  });
});

describe('what hinders an export', () => {
  test('a target that is there is never replaced, a folder that is not there never made', async () => {
    const book = await makeSmallBook(temporaryFolder());
    mkdirSync(join(book.root, 'taken'));
    writeFileSync(join(book.root, 'taken.tar'), 'precious');
    for (const options of [{ out: 'taken' }, { out: 'bundle', tar: 'taken.tar' }]) {
      await expect(exportBundle(book.root, undefined, options)).rejects.toMatchObject({
        code: 'FILE_EXISTS',
        exitCode: 2,
      });
    }
    await expect(exportBundle(book.root, undefined, { out: 'none/bundle' })).rejects.toMatchObject({
      code: 'FILE_NOT_FOUND',
    });
    expect(readFileSync(join(book.root, 'taken.tar'), 'utf8')).toBe('precious');
    expect(readdirSync(book.root).filter((name) => name.startsWith('.b'))).toEqual([]);
  });

  test('an object or a manifest that is not whole', async () => {
    const book = await makeSmallBook(temporaryFolder());
    const manifest = join(book.root, 'manifests', book.stored.file);
    const bytes = readFileSync(manifest);
    chmodSync(manifest, 0o644);
    writeFileSync(manifest, Buffer.concat([bytes, Buffer.from(' ')]));
    await expect(exportBundle(book.root, undefined, { out: 'bundle' })).rejects.toMatchObject({
      code: 'MANIFEST_ALTERED',
    });
    writeFileSync(manifest, bytes);
    expect((await exportBundle(book.root, undefined, { out: 'bundle' })).objects).toBeGreaterThan(30);
  });

  test('reports of one name, or with a name that no bundle holds', async () => {
    const book = await makeSmallBook(temporaryFolder());
    mkdirSync(join(book.root, 'a'));
    for (const name of ['r.json', 'a/R.json', '.hidden', 'a/two words.md']) {
      writeFileSync(join(book.root, name), 'x');
    }
    for (const reports of [['r.json', 'a/R.json'], ['.hidden'], ['a/two words.md']]) {
      await expect(exportBundle(book.root, undefined, { out: 'bundle', reports })).rejects.toMatchObject({
        code: 'USAGE',
      });
    }
  });

  test('given reports take the place of those that are built', async () => {
    const book = await makeSmallBook(temporaryFolder());
    const { folder } = await exportBundle(book.root, undefined, { out: 'first' });
    const report = readFileSync(join(folder, 'report/report.json'));
    writeFileSync(join(book.root, 'final.json'), report);
    writeFileSync(join(book.root, 'final.pdf'), 'a picture');
    const reports = ['final.json', 'final.pdf'];
    const other = await exportBundle(book.root, undefined, { out: 'second', reports });
    const result = await auditBundle(other.folder);
    expect(result.findings).toEqual([]);
    expect(result.checked).toContain(
      `the report report/final.json, made after entry ${other.head.size - 1}, byte by byte`,
    );
    expect(result.notChecked).toContain('report/final.pdf: not in a form that can be rebuilt');
  });
});

const mayMount = process.getuid?.() === 0 && process.platform === 'linux';

describe.skipIf(!mayMount)('a full disk (needs root to mount a small one)', () => {
  test('leaves nothing half-written, whatever it was that did not fit', async ({ skip }) => {
    const book = await makeSmallBook(temporaryFolder(), { lives: LIVES });
    const codes = new Set<string>();
    for (const kilobytes of [8, 24, 48, 80, 120, 180, 260]) {
      const disk = join(temporaryFolder(), 'disk');
      mkdirSync(disk);
      const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${kilobytes}k`, 'tmpfs', disk]);
      if (mounted.status !== 0) skip('this container may not mount a tmpfs');
      onTestFinished(() => void spawnSync('umount', ['-l', disk]));
      const options = { out: join(disk, 'bundle'), tar: join(disk, 'bundle.tar') };
      const code = await exportBundle(book.root, undefined, options).then(
        () => 'done',
        (error: { code: string }) => error.code,
      );
      codes.add(code);
      if (code !== 'done') expect(readdirSync(disk), `${kilobytes} kB`).toEqual([]);
    }
    expect([...codes]).toEqual(['DISK_FULL']);
  });
});
