import { readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { createSchema } from '../../src/ledger/schema.js';

test('docs/formats/ledger.md has the statements of a ledger file as SQLite keeps them', () => {
  const page = readFileSync(new URL('../../docs/formats/ledger.md', import.meta.url), 'utf8');
  const block = /```sql\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
  const db = new Database(':memory:');
  createSchema(db);
  const kept = db
    .prepare<[], string>('SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid')
    .pluck()
    .all();
  expect(kept).toHaveLength(8);
  expect(block).toBe(kept.map((sql) => `${sql};\n`).join(''));
  expect([
    db.pragma('application_id', { simple: true }),
    db.pragma('user_version', { simple: true }),
  ]).toEqual([0x42424f4b, 1]);
});
