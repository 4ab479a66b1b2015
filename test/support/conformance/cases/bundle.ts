import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { canonicalText } from '../../../../src/core/canonical-json.js';
import { reindex } from '../../loose-bundle.js';
import type { Case } from '../case.js';

/** The bundle as a folder of files, all of them hostile. */
export const BUNDLE: readonly Case[] = [
  {
    name: 'file-not-listed_fail',
    why: 'a file that the index does not list',
    after: (folder) => writeFileSync(join(folder, 'report/extra.txt'), 'surplus'),
  },
  {
    name: 'file-of-no-kind_fail',
    why: 'a path that bundles do not have, in the index as well',
    after: (folder) => {
      writeFileSync(join(folder, 'README'), 'trust us');
      reindex(folder);
    },
  },
  {
    name: 'listed-file-missing_fail',
    why: 'a listed file is not there',
    after: (folder) => rmSync(join(folder, 'report/report.md')),
  },
  {
    name: 'listed-with-another-size_fail',
    why: 'the index says another size',
    after: index((value) => {
      const file = value.files['report/report.txt'];
      if (file !== undefined) file.size += 1;
    }),
  },
  {
    name: 'listed-with-another-digest_fail',
    why: 'the index says another digest',
    after: index((value) => {
      const file = value.files['report/report.txt'];
      if (file !== undefined) file.digest = `sha256:${'a'.repeat(64)}`;
    }),
  },
  {
    name: 'path-that-leaves-the-folder_fail',
    why: 'the index lists a path outside; it is never opened',
    after: index((value) => {
      value.files['../why'] = { size: 1, digest: `sha256:${'a'.repeat(64)}` };
    }),
  },
  {
    name: 'index-is-null_fail',
    why: 'the index is null',
    after: (folder) => writeFileSync(join(folder, 'bundle.json'), 'null'),
  },
  {
    name: 'index-of-another-format_fail',
    why: 'the index says another format',
    after: index((value) => {
      value.format = 'boundbook/bundle/2';
    }),
  },
  {
    name: 'index-of-another-head_fail',
    why: 'the index says another root than the entries have',
    after: index((value) => {
      value.ledger.root = 'b'.repeat(64);
    }),
  },
  {
    name: 'index-of-a-longer-ledger_fail',
    why: 'the index says more entries than there are',
    after: index((value) => {
      value.ledger.size += 3;
    }),
  },
  {
    name: 'index-of-another-manifest_fail',
    why: 'the index names a manifest that is not there',
    after: index((value) => {
      value.manifest = `sha256:${'c'.repeat(64)}`;
    }),
  },
  {
    name: 'index-with-a-surplus-member_fail',
    why: 'the index has five members and no others',
    after: index((value) => {
      Object.assign(value, { keys: ['lab+00000000+AAAA'] });
    }),
  },
  {
    name: 'index-not-canonical_fail',
    why: 'the index in other bytes than canonical JSON',
    after: (folder) => {
      const file = join(folder, 'bundle.json');
      writeFileSync(file, JSON.stringify(JSON.parse(readFileSync(file, 'utf8')), null, 1));
    },
  },
  {
    name: 'database-with-other-rows_fail',
    why: 'the database of the bundle is that of a shorter ledger',
    after: (folder) => {
      const path = join(folder, 'ledger/ledger.sqlite');
      const bytes = readFileSync(path);
      const at = bytes.indexOf('"outcome":"report"');
      bytes.write('"outcome":"failur"', at);
      writeFileSync(path, bytes);
      reindex(folder);
    },
  },
  {
    name: 'database-with-a-trigger_fail',
    why: 'the database of the bundle has a trigger more than a ledger, under a name of SQLite itself',
    after: (folder) => {
      const db = new Database(join(folder, 'ledger/ledger.sqlite'));
      try {
        db.unsafeMode(true);
        db.pragma('writable_schema = ON');
        db.exec(`INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES
          ('trigger', 'sqlite_hidden', 'object', 0,
           'CREATE TRIGGER sqlite_hidden AFTER INSERT ON object BEGIN SELECT 1; END')`);
      } finally {
        db.close();
      }
      reindex(folder);
    },
  },
  {
    name: 'database-is-no-database_fail',
    why: 'a text in place of the database',
    after: (folder) => {
      writeFileSync(join(folder, 'ledger/ledger.sqlite'), 'SQLite format 4');
      reindex(folder);
    },
  },
  {
    name: 'manifest-missing_fail',
    why: 'the manifest of the ledger is not in the bundle',
    after: (folder) => {
      rmSync(join(folder, 'manifests'), { recursive: true });
      reindex(folder);
    },
  },
  {
    name: 'manifest-renamed_fail',
    why: 'the name of the manifest carries another digest',
    after: (folder) => {
      const manifests = join(folder, 'manifests');
      const { files } = JSON.parse(readFileSync(join(folder, 'bundle.json'), 'utf8')) as Index;
      const [path = ''] = Object.keys(files).filter((name) => name.startsWith('manifests/'));
      renameSync(join(folder, path), join(manifests, 'small.r1.000000000000.json'));
      reindex(folder);
    },
  },
  {
    name: 'note-of-another-ledger_fail',
    why: 'a note in the folder of checkpoints that is no checkpoint of this ledger',
    after: (folder) => {
      mkdirSync(join(folder, 'checkpoints'), { recursive: true });
      writeFileSync(join(folder, 'checkpoints/2.note'), 'not a note\n');
      reindex(folder);
    },
  },
  {
    name: 'link-in-the-folder_fail',
    why: 'a link in place of a file; it is never followed',
    after: (folder) => {
      rmSync(join(folder, 'report/report.txt'));
      symlinkSync('report.md', join(folder, 'report/report.txt'));
    },
  },
];

interface Index {
  format: string;
  manifest: string;
  ledger: { size: number; root: string };
  files: Record<string, { size: number; digest: string }>;
}

function index(change: (value: Index) => void): (folder: string) => void {
  return (folder) => {
    const file = join(folder, 'bundle.json');
    const value = JSON.parse(readFileSync(file, 'utf8')) as Index;
    change(value);
    writeFileSync(file, canonicalText(value));
  };
}
