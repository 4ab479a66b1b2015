import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeAll, describe, expect, test } from 'vitest';
import { exportBundle } from '../../../src/audit/bundle/export.js';
import { digestOf } from '../../../src/core/digest.js';
import { formatVerifierKey } from '../../../src/signing/keys.js';
import { FEW, KEY, signedBook } from '../../mutation/book.js';
import { filesBelow, LooseBundle, reindex } from '../../support/loose-bundle.js';
import { auditHostile } from './hostile-support.js';
import { temporaryFolder } from './support.js';

/** What a stranger may send as a bundle, through the program itself. Needs dist/, which `npm test` has built before. */

const MB = 1024 * 1024;
/** What any of these may take: the program alone has about 100 MB. */
const MAX_MEMORY = 300 * MB;
const ENTRIES = 'ledger/entries.jsonl';
const PACK = 'ledger/objects.pack';
const SQLITE = 'ledger/ledger.sqlite';

let sound: string;
beforeAll(async () => {
  const { root } = await signedBook(temporaryFolder(), FEW, true);
  await exportBundle(root, undefined, { out: 'bundle' });
  sound = join(root, 'bundle');
});

/** A copy of a sound bundle that somebody changed. */
function hostile(change: (folder: string) => void): string {
  const folder = join(temporaryFolder(), 'bundle');
  cpSync(sound, folder, { recursive: true });
  change(folder);
  return folder;
}

interface Expected {
  readonly status?: 2 | 4;
  /** What is printed, as patterns. */
  readonly says: readonly RegExp[];
}

async function expectOf(folder: string, { status = 4, says }: Expected): Promise<void> {
  const audited = await auditHostile(folder);
  for (const pattern of says) expect(audited.stdout + audited.stderr).toMatch(pattern);
  expect(audited.status).toBe(status);
  expect(audited.memory).toBeLessThan(MAX_MEMORY);
}

const replaceBy = (path: string, make: (file: string) => void) => (folder: string) => {
  rmSync(join(folder, path), { recursive: true });
  make(join(folder, path));
};
const edit = (path: string, change: (bytes: Buffer) => Buffer | string) => (folder: string) => {
  const file = join(folder, path);
  writeFileSync(file, change(readFileSync(file)));
};
const mkfifo = (file: string) => void execFileSync('mkfifo', [file]);
const isRoot = process.getuid?.() === 0;

test('the sound one is clean, and leaves nothing behind either', async () => {
  const { status, stderr, memory } = await auditHostile(sound);
  expect([status, stderr]).toEqual([0, '']);
  expect(memory).toBeLessThan(MAX_MEMORY);
});

describe('what is no regular file is named, never opened', () => {
  test.concurrent.each<[string, (folder: string) => void, Expected]>([
    [
      'a link in place of the index',
      replaceBy('bundle.json', (file) => symlinkSync('/etc/passwd', file)),
      { says: [/no bundle\.json.*\[BUNDLE_INVALID\]/] },
    ],
    [
      'a link in place of the entries',
      replaceBy(ENTRIES, (file) => symlinkSync('/dev/zero', file)),
      { says: [/no ledger\/entries\.jsonl.*\[BUNDLE_INVALID\]/] },
    ],
    [
      'a link in place of a folder',
      (folder) => {
        renameSync(join(folder, 'manifests'), join(folder, '../elsewhere'));
        symlinkSync('../elsewhere', join(folder, 'manifests'));
      },
      { says: [/BUNDLE_FILE .* manifests$/m, /a link, which is never followed/, /MANIFEST_MISSING/] },
    ],
    [
      'a link to itself',
      (folder) => symlinkSync('loop.txt', join(folder, 'report/loop.txt')),
      { says: [/BUNDLE_FILE .* report\/loop\.txt$/m, /a link/] },
    ],
    [
      'a hard link to a file elsewhere: another file',
      (folder) => {
        writeFileSync(join(folder, '../private'), 'a private text');
        linkSync(join(folder, '../private'), join(folder, 'report/private.txt'));
      },
      { says: [/BUNDLE_INDEX .* report\/private\.txt$/m, /does not list this file/] },
    ],
    [
      'a pipe that nobody writes to',
      replaceBy('report/report.txt', mkfifo),
      { says: [/BUNDLE_FILE .* report\/report\.txt$/m, /a pipe/, /which is not there/] },
    ],
    ['a pipe in place of the index', replaceBy('bundle.json', mkfifo), { says: [/\[BUNDLE_INVALID\]/] }],
    [
      'folders in place of files',
      (folder) => {
        replaceBy(PACK, (file) => mkdirSync(file))(folder);
        replaceBy(SQLITE, (file) => mkdirSync(file))(folder);
      },
      { says: [/BUNDLE_FILE .* ledger\/objects\.pack$/m, /a folder that no bundle holds/, /BUNDLE_COPY/] },
    ],
    ['an empty folder', replaceBy('.', (folder) => mkdirSync(folder)), { says: [/\[BUNDLE_INVALID\]/] }],
  ])('%s', (_, change, expected) => expectOf(hostile(change), expected));

  test('a socket', async () => {
    const folder = hostile(() => undefined);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(folder, 'report/s.txt'), resolve));
    try {
      await expectOf(folder, { says: [/BUNDLE_FILE .* report\/s\.txt$/m, /a socket/] });
    } finally {
      server.close();
    }
  });

  test.skipIf(!isRoot)('a device (needs root to make one)', async ({ skip }) => {
    const folder = hostile((at) => rmSync(join(at, 'report/report.txt')));
    const made = spawnSync('mknod', [join(folder, 'report/report.txt'), 'c', '1', '5']);
    if (made.status !== 0) return skip('this container may not make devices');
    await expectOf(folder, { says: [/BUNDLE_FILE .* report\/report\.txt$/m, /a device/] });
  });
});

describe('names', () => {
  test('that would steer a terminal or forge a line are printed as what they are', async () => {
    const folder = hostile((at) => {
      for (const name of [
        'a\nverdict: clean',
        '\u001b]0;owned\u0007\u001b[2J',
        '\u202egnp.exe',
        'tab\there',
      ]) {
        writeFileSync(join(at, 'report', name), 'x');
      }
    });
    await expectOf(folder, {
      says: [/report\/a\\u\{a\}verdict: clean/, /\\u\{1b\}\]0;owned/, /\\u\{202e\}gnp\.exe/],
    });
  });

  test('that are not UTF-8', async () => {
    const folder = hostile((at) => {
      writeFileSync(Buffer.concat([Buffer.from(`${at}/report/`), Buffer.of(0xff, 0xfe, 0x2e, 0x74)]), 'x');
    });
    await expectOf(folder, { says: [/BUNDLE_FILE/, /a file that no bundle holds/] });
  });

  test('in two cases', async () => {
    const folder = hostile((at) => writeFileSync(join(at, 'report/REPORT.TXT'), 'x'));
    await expectOf(folder, { says: [/in case only/] });
  });

  test('of folders, a thousand deep', async () => {
    const folder = hostile((at) => mkdirSync(join(at, 'd/'.repeat(1000)), { recursive: true }));
    await expectOf(folder, { says: [/BUNDLE_FILE .* d$/m, /a folder that no bundle holds/] });
  });
});

/** Puts text behind the opening brace of the index. */
const intoIndex = (text: string) =>
  edit('bundle.json', (bytes) => bytes.toString('utf8').replace('{', `{${text}`));

describe('the index', () => {
  test.concurrent.each<[string, (folder: string) => void, Expected]>([
    [
      'a prototype key',
      intoIndex('"__proto__":{"format":"x"},'),
      { says: [/BUNDLE_INDEX.*bundle\.json/, /__proto__/] },
    ],
    ['a key twice', intoIndex('"redacted":0,'), { says: [/BUNDLE_INDEX.*bundle\.json/, /occurs twice/] }],
    [
      'keys of every object as paths',
      edit('bundle.json', (bytes) => {
        const file = `{"digest":"${digestOf(Buffer.of())}","size":0}`;
        return bytes
          .toString('utf8')
          .replace('"files":{', `"files":{"constructor":${file},"toString":${file},`);
      }),
      { says: [/lists \\?"constructor\\?"/, /lists \\?"toString\\?"/] },
    ],
    [
      'a byte-order mark',
      edit('bundle.json', (bytes) => Buffer.concat([Buffer.of(0xef, 0xbb, 0xbf), bytes])),
      { says: [/BUNDLE_INDEX/, /byte-order mark/] },
    ],
    [
      'bytes that are not UTF-8',
      edit('bundle.json', (bytes) => Buffer.concat([bytes.subarray(0, 5), Buffer.of(0xff), bytes])),
      { says: [/BUNDLE_INDEX/, /UTF-8/] },
    ],
    ['nested without end', edit('bundle.json', () => '['.repeat(4 * MB)), { says: [/BUNDLE_INDEX/] }],
    [
      'nested a hundred thousand deep, and closed',
      edit('bundle.json', () => '['.repeat(100_000) + ']'.repeat(100_000)),
      { says: [/BUNDLE_INDEX/] },
    ],
    ['empty', edit('bundle.json', () => ''), { says: [/BUNDLE_INDEX/] }],
    ...['null', 'false', '0', '""', '[]'].map((text): [string, (folder: string) => void, Expected] => [
      text,
      edit('bundle.json', () => text),
      { says: [/BUNDLE_INDEX/] },
    ]),
    [
      'a text with escapes as the format',
      edit('bundle.json', () => '{"format":"\\u001b[2J\\nverdict: clean"}'),
      { says: [/BUNDLE_INDEX/] },
    ],
    [
      'three hundred megabytes',
      (folder) => truncateSync(join(folder, 'bundle.json'), 300 * MB),
      { status: 2, says: [/bundle\.json has 314572800 bytes.*\[FILE_TOO_LARGE\]/] },
    ],
    [
      'paths outside, absolute, and with line feeds',
      edit('bundle.json', (bytes) => {
        const file = `{"digest":"${digestOf(Buffer.of())}","size":0}`;
        const paths = ['../../etc/passwd', '/etc/passwd', 'report/../../x', 'a\\nverdict: clean'];
        const members = paths.map((path) => `"${path}":${file},`).join('');
        return bytes.toString('utf8').replace('"files":{', `"files":{${members}`);
      }),
      { says: [/lists "\.\.\/\.\.\/etc\/passwd"/, /lists "\/etc\/passwd"/] },
    ],
  ])('%s', (_, change, expected) => expectOf(hostile(change), expected));
});

/** The index agrees with the files as they are. */
const agreed = (change: (folder: string) => void) => (folder: string) => {
  change(folder);
  reindex(folder);
};

describe('entries and objects, with an index that agrees', () => {
  test.concurrent.each<[string, (folder: string) => void, Expected]>([
    ['no entry at all', agreed(edit(ENTRIES, () => '')), { says: [/LEDGER_DAMAGED .*entry 0/, /no entry/] }],
    [
      'one line of 40 MB',
      agreed(edit(ENTRIES, (bytes) => Buffer.concat([bytes, Buffer.alloc(40 * MB, 0x20)]))),
      { says: [/BUNDLE_FORM .*entries\.jsonl/, /more than 60000 bytes/] },
    ],
    [
      'a hole of 400 MB',
      (folder) => truncateSync(join(folder, ENTRIES), 400 * MB),
      { says: [/BUNDLE_FORM .*entries\.jsonl/, /more than 60000 bytes/] },
    ],
    [
      'bytes that are not UTF-8',
      agreed(edit(ENTRIES, (bytes) => Buffer.concat([bytes, Buffer.from('{"type":"\xff"}\n', 'latin1')]))),
      { says: [/CHAIN_BROKEN/] },
    ],
    [
      'a line nested without end',
      agreed(edit(ENTRIES, (bytes) => Buffer.concat([bytes, Buffer.from(`${'['.repeat(50_000)}\n`)]))),
      { says: [/CHAIN_BROKEN/] },
    ],
    [
      'two hundred thousand empty lines',
      agreed(edit(ENTRIES, (bytes) => Buffer.concat([bytes, Buffer.alloc(200_000, 0x0a)]))),
      { says: [/CHAIN_BROKEN/, /more were counted and are not listed/] },
    ],
    [
      'a type that steers the terminal',
      agreed(
        edit(ENTRIES, (bytes) =>
          Buffer.concat([bytes, Buffer.from('{"type":"\\u001b[2J\\nverdict: clean \\u202e"}\n')]),
        ),
      ),
      { says: [/CHAIN_BROKEN/] },
    ],
    ['an empty pack', agreed(edit(PACK, () => '')), { says: [/OBJECT_MISSING/] }],
    [
      'a pack of noise',
      agreed(edit(PACK, () => Buffer.alloc(MB, 0xa5))),
      { says: [/BUNDLE_FORM .*objects\.pack/, /no record begins there/] },
    ],
    [
      'a record that says a gigabyte',
      agreed(edit(PACK, (bytes) => Buffer.concat([Buffer.from(`${'a'.repeat(64)} 1000000000\n`), bytes]))),
      { says: [/BUNDLE_FORM .*objects\.pack/, /does not end after 1000000000 bytes/] },
    ],
    [
      'a record that says more digits than there are bytes',
      agreed(
        edit(PACK, (bytes) => Buffer.concat([Buffer.from(`${'a'.repeat(64)} ${'9'.repeat(400)}\n`), bytes])),
      ),
      { says: [/BUNDLE_FORM .*objects\.pack/, /no record begins there/] },
    ],
    [
      'a record of less than nothing',
      agreed(edit(PACK, (bytes) => Buffer.concat([Buffer.from(`${'a'.repeat(64)} -1\n`), bytes]))),
      { says: [/no record begins there/] },
    ],
    [
      'a pack cut in its middle',
      agreed(edit(PACK, (bytes) => bytes.subarray(0, bytes.length / 2))),
      { says: [/BUNDLE_FORM .*objects\.pack/, /OBJECT_MISSING/] },
    ],
    [
      'a hole of 400 MB behind the pack',
      (folder) => truncateSync(join(folder, PACK), 400 * MB),
      { says: [/BUNDLE_FORM .*objects\.pack/] },
    ],
    [
      'a manifest of 300 MB',
      (folder) => {
        const [path = ''] = filesBelow(join(folder, 'manifests'));
        truncateSync(join(folder, 'manifests', path), 300 * MB);
      },
      { says: [/MANIFEST_ALTERED/] },
    ],
    [
      'a manifest of 60 MB',
      agreed((folder) => {
        const [path = ''] = filesBelow(join(folder, 'manifests'));
        writeFileSync(join(folder, 'manifests', path), Buffer.alloc(60 * MB, 0x20));
      }),
      { says: [/MANIFEST_ALTERED/] },
    ],
    ['a report that is null', agreed(edit('report/report.json', () => 'null')), { says: [/REPORT_/] }],
    [
      'task ids that are null',
      agreed((folder) => writeFileSync(join(folder, 'ledger/task-ids.json'), 'null')),
      { says: [/BUNDLE_FORM .*task-ids/] },
    ],
    [
      'an entry that is null',
      agreed(edit(ENTRIES, (bytes) => Buffer.concat([bytes, Buffer.from('null\n')]))),
      { says: [/CHAIN_BROKEN/] },
    ],
    [
      'a report that is nested without end',
      agreed(edit('report/report.json', () => '['.repeat(MB))),
      { says: [/REPORT_FORM/] },
    ],
    [
      'notes and signatures of noise',
      agreed((folder) => {
        mkdirSync(join(folder, 'checkpoints'), { recursive: true });
        writeFileSync(join(folder, 'checkpoints/3.note'), '\u001b[2J\nverdict: clean\n');
        writeFileSync(join(folder, `attestations/${'0'.repeat(16)}.x.dsse.json`), '{"payload":"\u001b[2J"}');
        writeFileSync(join(folder, `attestations/${'0'.repeat(16)}.x.tsr`), Buffer.alloc(5000, 0x30));
      }),
      {
        says: [
          /CHECKPOINT_DIFFERS .*3\.note/,
          /ATTESTATION_INVALID .*dsse\.json/,
          /ATTESTATION_INVALID .*tsr/,
        ],
      },
    ],
  ])('%s', (_, change, expected) => expectOf(hostile(change), expected), 120_000);
});

describe('keys that come along', () => {
  test('a key, a policy and a host map in the bundle are strangers', async () => {
    const folder = hostile((at) => {
      writeFileSync(join(at, 'key.pub'), `${formatVerifierKey(KEY.verifier)}\n`);
      writeFileSync(join(at, 'policy.txt'), `log ${formatVerifierKey(KEY.verifier)}\n`);
      writeFileSync(join(at, 'boundbook.host.yaml'), 'models: /\n');
      reindex(at);
    });
    await expectOf(folder, {
      says: [/BUNDLE_FILE .* key\.pub$/m, /BUNDLE_FILE .* policy\.txt$/m, /host\.yaml/],
    });
  });

  test('a key where a report may lie makes no signature count', async () => {
    const folder = hostile((at) => {
      writeFileSync(join(at, 'report/key.pub'), `${formatVerifierKey(KEY.verifier)}\n`);
      reindex(at);
    });
    const without = await auditHostile(folder);
    expect(without.status).toBe(0);
    expect(without.stdout).toMatch(/not checked:[\s\S]*signed by "lab\.example\/eval/);
    expect(without.stdout).not.toMatch(/the signature of lab\.example/);
    const given = await auditHostile(folder, '--key', formatVerifierKey(KEY.verifier));
    expect(given.stdout).toMatch(/the signature of lab\.example/);
  });
});

/** The database of the bundle, changed by somebody who knows SQLite; the index agrees. */
const database = (change: (db: Database.Database) => void) =>
  agreed((folder) => {
    const db = new Database(join(folder, SQLITE));
    db.unsafeMode(true);
    db.pragma('writable_schema = ON');
    try {
      change(db);
    } finally {
      db.close();
    }
  });
const COPY: Expected = { says: [/BUNDLE_COPY .*ledger\/ledger\.sqlite$/m] };

describe('the database', () => {
  test.concurrent.each<[string, (folder: string) => void, Expected]>([
    [
      'a trigger',
      database((db) => db.exec('CREATE TRIGGER t AFTER INSERT ON object BEGIN SELECT 1; END')),
      COPY,
    ],
    ['a view', database((db) => db.exec('CREATE VIEW v AS SELECT * FROM entry')), COPY],
    [
      'a view without end in place of the entries',
      database((db) => {
        db.exec(`UPDATE sqlite_schema SET type = 'view', rootpage = 0, sql =
          'CREATE VIEW entry AS WITH RECURSIVE n(seq) AS (SELECT 0 UNION ALL SELECT seq FROM n) SELECT seq, NULL AS prev, x'''' AS leaf, x'''' AS body FROM n'
          WHERE name = 'entry'`);
      }),
      COPY,
    ],
    [
      'a trigger that hides behind a name of SQLite itself',
      database((db) => {
        db.exec(`INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES
          ('trigger', 'sqlite_hidden', 'object', 0, 'CREATE TRIGGER sqlite_hidden AFTER INSERT ON object BEGIN SELECT 1; END')`);
      }),
      COPY,
    ],
    [
      'a trigger that hides behind the name of a table',
      database((db) => {
        db.exec(`INSERT INTO sqlite_schema (rowid, type, name, tbl_name, rootpage, sql) VALUES
          (-5, 'trigger', 'entry', 'object', 0, 'CREATE TRIGGER entry AFTER INSERT ON object BEGIN SELECT 1; END')`);
      }),
      COPY,
    ],
    ['a virtual table', database((db) => db.exec('CREATE VIRTUAL TABLE f USING fts5(x)')), COPY],
    [
      'an object of 60 MB',
      database((db) => {
        db.exec('DROP TRIGGER IF EXISTS object_no_update');
        db.pragma('ignore_check_constraints = ON');
        db.exec(`INSERT INTO object (digest, bytes) VALUES (zeroblob(32), zeroblob(${60 * MB}))`);
      }),
      COPY,
    ],
    [
      'a schema of nonsense',
      database((db) => db.exec("UPDATE sqlite_schema SET sql = 'CREATE NONSENSE' WHERE type = 'trigger'")),
      COPY,
    ],
    [
      'pages that point to each other',
      agreed(
        edit(SQLITE, (bytes) => {
          for (let at = 4096; at < bytes.length; at += 4096) bytes.fill(0x05, at, at + 200);
          return bytes;
        }),
      ),
      COPY,
    ],
    [
      'a root page beyond the file',
      database((db) => db.exec("UPDATE sqlite_schema SET rootpage = 999999 WHERE name = 'entry'")),
      COPY,
    ],
    [
      'a log beside it',
      (folder) => {
        writeFileSync(join(folder, `${SQLITE}-wal`), Buffer.alloc(4096, 1));
        writeFileSync(join(folder, `${SQLITE}-journal`), Buffer.alloc(4096, 1));
      },
      { says: [/BUNDLE_FILE .*ledger\.sqlite-wal$/m, /BUNDLE_FILE .*ledger\.sqlite-journal$/m] },
    ],
    [
      'in WAL mode',
      agreed(
        edit(SQLITE, (bytes) => {
          bytes.fill(2, 18, 20);
          return bytes;
        }),
      ),
      { says: [/BUNDLE_COPY/, /rollback journal/] },
    ],
    ['cut in its header', agreed(edit(SQLITE, (bytes) => bytes.subarray(0, 50))), COPY],
    [
      'a page size of 1',
      agreed(
        edit(SQLITE, (bytes) => {
          bytes.writeUInt16BE(1, 16);
          return bytes;
        }),
      ),
      COPY,
    ],
  ])('%s', (_, change, expected) => expectOf(hostile(change), expected), 120_000);
});

test('a loose bundle with a pack that is broken is read by the tests themselves without hanging', () => {
  const folder = hostile(edit(PACK, (bytes) => bytes.subarray(0, bytes.length - 40)));
  expect(() => LooseBundle.read(folder)).not.toThrow();
});
