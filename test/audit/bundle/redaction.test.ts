import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { auditBundle } from '../../../src/audit/audit.js';
import { parseSalts } from '../../../src/audit/bundle/disclosure.js';
import { type Exported, exportBundle } from '../../../src/audit/bundle/export.js';
import { commitmentOf } from '../../../src/audit/bundle/pack-format.js';
import { parseRedaction } from '../../../src/audit/bundle/redaction.js';
import { type Digest, digestOf, hexOf } from '../../../src/core/digest.js';
import { filesBelow, LooseBundle, readPack } from '../../support/loose-bundle.js';
import { makeSmallBook, type SmallBook, TASKS } from '../../support/small-book.js';
import { temporaryFolder } from './support.js';

let book: SmallBook;
let whole: LooseBundle;
let n = 0;

beforeAll(async () => {
  book = await makeSmallBook(temporaryFolder());
  const { folder } = await exportBundle(book.root, undefined, { out: 'whole' });
  whole = LooseBundle.read(folder);
});

function redacted(what: string): Promise<Exported> {
  n++;
  return exportBundle(book.root, undefined, {
    out: `redacted-${n}`,
    tar: `redacted-${n}.tar`,
    redact: parseRedaction(what),
  });
}

/** Everything that lies in a bundle, as one text. */
function contentOf(folder: string): string {
  return filesBelow(folder)
    .map((path) => readFileSync(join(folder, path), 'latin1'))
    .join('\n');
}

describe('tasks', () => {
  test('no question is left, every count stays, the audit is clean and says what it did not see', async () => {
    const exported = await redacted('tasks');
    expect(contentOf(exported.folder)).not.toContain('5+7=');
    expect(contentOf(exported.folder)).toContain('chatcmpl');
    for (const path of [exported.folder, `${exported.folder}.tar`]) {
      const result = await auditBundle(path);
      expect(result.findings).toEqual([]);
      expect(result.coverage?.map(({ settled }) => settled)).toEqual([6, 3]);
      expect(result.checked.join('\n')).toContain('from the stated ids');
      expect(result.notChecked).toEqual(
        expect.arrayContaining([
          'redacted: the contents of 1 task files',
          'redacted: the contents of 11 requests',
          'redacted: fields of the tasks in all, two, and ids of tasks there that no queue uses',
          'redacted: 14 requests against the plan',
          'redacted: 8 values against the answers: only against the reports',
        ]),
      );
    }
    const ids = readFileSync(join(exported.folder, 'ledger/task-ids.json'), 'utf8');
    expect(JSON.parse(ids)).toEqual({ all: TASKS.map(({ id }) => id) });
  });

  test('ids that are not those of the plan are found', async () => {
    const { folder } = await redacted('tasks');
    for (const ids of ['["sum-1","sum-3","sum-2"]', '["sum-1","sum-2"]', '["sum-1","sum-2","sum-4"]']) {
      const loose = LooseBundle.read(folder);
      loose.ledger.taskIds = Buffer.from(`{"all":${ids}}`);
      const { findings } = await auditBundle(loose.write(join(book.root, 'edited')));
      expect(findings.map(({ code }) => code)).toContain('PLAN_DIFFERS');
    }
    for (const text of [
      '{"all":["sum-1","sum-2","sum-3"] }',
      '[]',
      '{"all":["sum-1","sum-2","sum-3"],"two":["sum-1","sum-2"]}',
    ]) {
      const loose = LooseBundle.read(folder);
      loose.ledger.taskIds = Buffer.from(text);
      const { findings } = await auditBundle(loose.write(join(book.root, 'edited')));
      expect(findings.map(({ code }) => code)).toContain('BUNDLE_FORM');
    }
    const loose = LooseBundle.read(folder);
    loose.ledger.taskIds = null;
    const { findings } = await auditBundle(loose.write(join(book.root, 'edited')));
    expect(findings.map(({ code }) => code)).toEqual(expect.arrayContaining(['PLAN_DIFFERS', 'BUNDLE_FORM']));
  });

  test('a value that is not the reward of its report is found without the tasks', async () => {
    const { folder } = await redacted('tasks');
    const loose = LooseBundle.read(folder);
    const stage = loose.find('stage.finished', ({ result }) => result.kind === 'report');
    const settled = loose.find('slot.settled', ({ slot }) => slot === stage.slot);
    const result = stage.result as { value: number };
    result.value = 1 - result.value;
    settled.value = result.value;
    const { findings } = await auditBundle(loose.write(join(book.root, 'edited')));
    expect(findings.map(({ code }) => code)).toContain('VALUE_DIFFERS');
  });
});

describe('answers', () => {
  test('no answer is left; requests are still held against the plan', async () => {
    const exported = await redacted('answers');
    const content = contentOf(exported.folder);
    expect(content).not.toContain('chatcmpl');
    expect(content).not.toContain('twelve');
    expect(content).toContain('5+7=');
    const result = await auditBundle(exported.folder);
    expect(result.findings).toEqual([]);
    expect(result.notChecked).toEqual(
      expect.arrayContaining([
        'redacted: 8 candidates against the answers that they came in',
        'redacted: 2 failures against the answers that were kept',
        'redacted: 8 values against the answers: only against the reports',
        'redacted: 8 values at all: their reports are redacted',
      ]),
    );
    expect(exported.redaction?.guessable).toBeGreaterThan(0);
    const loose = LooseBundle.read(exported.folder);
    loose.find('attempt.started').sampling_seed = 1;
    const { findings } = await auditBundle(loose.write(join(book.root, 'edited')));
    expect(findings.map(({ code }) => code)).toEqual(expect.arrayContaining(['REQUEST_DIFFERS', 'UNLAWFUL']));
  });

  test('both at once, and a single object', async () => {
    const both = await redacted('tasks,answers');
    expect((await auditBundle(both.folder)).findings).toEqual([]);
    const request = whole.find('attempt.started').request as Digest;
    const one = await redacted(request);
    expect(one.redaction?.objects).toBe(1);
    const result = await auditBundle(one.folder);
    expect(result.findings).toEqual([]);
    expect(result.notChecked).toContain('redacted: the contents of 1 requests');
  });
});

describe('salts and disclosure', () => {
  test('salts are private, beside the bundle, and open every commitment', async () => {
    const { folder, redaction } = await redacted('tasks,answers');
    const file = redaction?.salts ?? '';
    expect(file).toBe(`${folder}.salts`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const salts = parseSalts(readFileSync(file), file);
    expect(salts.size).toBe(redaction?.objects);
    const records = readPack(readFileSync(join(folder, 'ledger/objects.pack')));
    const closed = records.filter(([, content]) => typeof content === 'string');
    expect(closed.length).toBe(redaction?.objects);
    const different = new Set([...salts.values()].map((salt) => salt.toString('hex')));
    expect(different.size).toBe(salts.size);
    for (const [hex, content] of closed) {
      const bytes = whole.object(`sha256:${hex}`);
      const commitment = commitmentOf(salts.get(`sha256:${hex}`) ?? Buffer.of(), bytes);
      expect(content).toBe(`redacted ${bytes.length} ${commitment}`);
    }
  });

  test('disclosed contents are judged like all others, and held against their commitments', async () => {
    const { folder, redaction } = await redacted('tasks,answers');
    const records = readPack(readFileSync(join(folder, 'ledger/objects.pack')));
    const files = records
      .filter(([, content]) => typeof content === 'string')
      .map(([hex]) => ({ name: hex, bytes: whole.object(`sha256:${hex}`) }));
    const salts = parseSalts(readFileSync(redaction?.salts ?? ''), 'salts');
    const all = await auditBundle(folder, { disclosed: { files, salts } });
    expect(all.findings).toEqual([]);
    expect(all.notChecked.filter((line) => line.startsWith('redacted'))).toEqual([]);
    expect(all.checked).toContain(
      `${files.length} disclosed contents against their digests, ${files.length} against their commitments`,
    );
    const unsalted = await auditBundle(folder, { disclosed: { files: files.slice(0, 1), salts: new Map() } });
    expect(unsalted.findings).toEqual([]);
    expect(unsalted.notChecked.join('\n')).toContain('no salt was given');
  });

  test('a content that was never redacted here, a false salt, a false commitment', async () => {
    const { folder, redaction } = await redacted('answers');
    const [hex = ''] = readPack(readFileSync(join(folder, 'ledger/objects.pack'))).find(
      ([, content]) => typeof content === 'string',
    ) ?? [''];
    const file = { name: 'answer.txt', bytes: whole.object(`sha256:${hex}`) };
    const salts = new Map(parseSalts(readFileSync(redaction?.salts ?? ''), 'salts'));
    const codes = async (path: string, disclosed: Parameters<typeof auditBundle>[1]) =>
      (await auditBundle(path, disclosed)).findings.map(({ code }) => code);
    const other = { name: 'other.txt', bytes: Buffer.from('another answer') };
    expect(await codes(folder, { disclosed: { files: [other], salts } })).toEqual(['DISCLOSURE_FALSE']);
    salts.set(`sha256:${hex}`, Buffer.alloc(32));
    expect(await codes(folder, { disclosed: { files: [file], salts } })).toEqual(['DISCLOSURE_FALSE']);
    const loose = LooseBundle.read(folder);
    const { length } = file.bytes;
    loose.ledger.objects.set(hex, `redacted ${length + 1} ${commitmentOf(Buffer.alloc(32), file.bytes)}`);
    const longer = loose.write(join(book.root, 'longer'));
    expect(await codes(longer, { disclosed: { files: [file], salts } })).toEqual(['DISCLOSURE_FALSE']);
  });

  test('what is no file of salts, and what is no redaction', () => {
    for (const text of ['x\n', `${'a'.repeat(64)}\n`, `${'a'.repeat(64)} ${'b'.repeat(63)}\n`]) {
      expect(() => parseSalts(Buffer.from(text), 'salts')).toThrow(
        expect.objectContaining({ code: 'USAGE' }),
      );
    }
    for (const text of ['', 'all', 'tasks;answers', 'sha256:12']) {
      expect(() => parseRedaction(text)).toThrow(expect.objectContaining({ code: 'USAGE' }));
    }
  });

  test('a digest that no entry names is refused, and nothing is left behind', async () => {
    const before = filesBelow(book.root);
    const digest = digestOf('nothing of this book');
    await expect(
      exportBundle(book.root, undefined, { out: 'none', tar: 'none.tar', redact: parseRedaction(digest) }),
    ).rejects.toMatchObject({ code: 'USAGE' });
    expect(filesBelow(book.root)).toEqual(before);
    expect(hexOf(digest)).toHaveLength(64);
  });

  test('names that are taken are refused before anything is written', async () => {
    writeFileSync(join(book.root, 'taken.salts'), 'precious');
    await expect(
      exportBundle(book.root, undefined, { out: 'taken', redact: parseRedaction('tasks') }),
    ).rejects.toMatchObject({ code: 'FILE_EXISTS' });
    expect(readFileSync(join(book.root, 'taken.salts'), 'utf8')).toBe('precious');
  });
});
